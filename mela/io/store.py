"""Write files for other stages so that each is complete or absent, and check them when they are read.

Every parquet file carries its schema and, under the metadata key ``mela``, which stage made it from which parameters.

Pandera checks columns too, but a reader also has to hear which file is damaged, whether a stage wrote it, and what to
rerun.
"""

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mela.errors import MelaError, one_line, raise_if_machine
from mela.io.atomic import replacing

KINDS = {
    pa.int64(): pd.api.types.is_integer_dtype,
    pa.float64(): pd.api.types.is_numeric_dtype,
    pa.bool_(): pd.api.types.is_bool_dtype,
    pa.string(): lambda column: True,
}


def write_table(
    path: Path, columns: pd.DataFrame | pa.Table, schema: pa.Schema, *, stage: str, params: Mapping[str, Any]
) -> None:
    """Write a parquet file of the given schema, in the schema's column order."""
    if isinstance(columns, pd.DataFrame):
        columns = pa.Table.from_pandas(columns[schema.names], schema=schema, preserve_index=False)
    table = columns.cast(schema).replace_schema_metadata(made_by(stage, params))
    with replacing(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def made_by(stage: str, params: Mapping[str, Any]) -> dict[str, str]:
    """Return the metadata that says which stage made a file, and from which parameters."""
    return {"mela": json.dumps({"stage": stage, "params": params}, sort_keys=True)}


def read_table(path: Path, schema: pa.Schema, *others: pa.Schema) -> pd.DataFrame:
    """Read a parquet file that a stage wrote, of one of several schemas.

    Raises
    ------
    MelaError
        The file is missing, no parquet file, not written by a stage, of another schema, or lacks a value.
    """
    with opened(path) as file:
        found = file.schema_arrow
        if not any(found.equals(known, check_metadata=False) for known in (schema, *others)):
            expected, got = (", ".join(f"{field.name}: {field.type}" for field in kind) for kind in (schema, found))
            raise MelaError(f"{path}: expected columns ({expected}), found ({got}); rerun the stage that makes it")
        table = file.read()
        require_values(path, table, 0)
        return table.to_pandas()


@contextmanager
def opened(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a parquet file that a stage wrote; what pyarrow cannot read within the block is an error of the file."""
    _require(path)
    try:
        # else whole row groups are read ahead
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=2**16) as file:
            if b"mela" not in (file.schema_arrow.metadata or {}):
                raise MelaError(
                    f"{path}: expected a table written by a stage (metadata key `mela`), found none; rerun its stage"
                )
            yield file
    except MelaError:
        raise
    # ValueError: names that are no UTF-8, lengths that do not agree
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise_if_machine(error, path)
        raise MelaError(
            f"{path}: expected a parquet file, got {one_line(error)}; rerun the stage that makes it"
        ) from None


def require_values(path: Path, table: pa.Table | pa.RecordBatch, first: int) -> None:
    """Raise MelaError if a value is missing; `first` is the number of the table's first row in the file."""
    for name in table.column_names:
        column = table.column(name)
        if column.null_count:
            row = first + pc.index(column.is_null(), value=True).as_py()
            raise MelaError(f"{path}: row {row}: expected a value in column {name}, found none; rerun its stage")


def open_images(path: Path) -> npt.NDArray[np.uint8]:
    """Open the packed images (N, H, W, C) uint8, memory-mapped."""
    _require(path)
    try:
        images = np.lib.format.open_memmap(path, mode="r")
    # the header is a Python literal, and reading a damaged one raises almost anything
    except Exception as error:
        raise_if_machine(error, path)
        raise MelaError(
            f"{path}: expected packed images (.npy), got {one_line(error)}; rerun the stage images"
        ) from None
    fits = images.ndim == 4 and images.shape[1] == images.shape[2] >= 16 and images.shape[3] in (1, 3)
    if not fits or images.dtype != np.uint8:
        raise MelaError(
            f"{path}: expected images (N, side, side, channels) of uint8, side 16 or more, 1 or 3 channels, found "
            f"{images.shape} of {images.dtype}; rerun the stage images"
        )
    return images


def write_json(path: Path, content: Mapping[str, Any] | list[Any]) -> None:
    """Write metrics; refuse NaN and infinity, since they are no JSON and hide a failure."""
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read metrics that a stage wrote."""
    _require(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise MelaError(f"{path}: expected JSON, got {one_line(error)}; rerun the stage that makes it") from None
    if not isinstance(content, dict):
        what = type(content).__name__
        raise MelaError(f"{path}: expected a JSON object, got {what}; rerun the stage that makes it")
    return content


def write_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Write one array as ``.npy``."""
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    with replacing(path) as temporary:
        # numpy does not say why it fails to write a file
        temporary.write_bytes(content.getbuffer())


def write_csv(path: Path, columns: pd.DataFrame) -> None:
    """Write a small table of plot points."""
    with replacing(path) as temporary:
        columns.to_csv(temporary, index=False, float_format="%.6g", lineterminator="\n")


def read_csv(path: Path, schema: pa.Schema) -> pd.DataFrame:
    """Read a table of plot points.

    Parameters
    ----------
    path : Path
    schema : Schema
        Columns that it has to have, of int64, float64, bool or string; numbers may be infinite or missing where they
        are float64.

    Raises
    ------
    MelaError
        It is missing or no table, or a column is missing or of another kind; names it.
    """
    _require(path)
    texts = [field.name for field in schema if field.type == pa.string()]
    numbers = {field.name: [""] for field in schema if field.type != pa.string()}
    try:
        table = pd.read_csv(path, dtype=dict.fromkeys(texts, str), keep_default_na=False, na_values=numbers)
    except ValueError as error:
        raise MelaError(f"{path}: expected a table, got {one_line(error)}; rerun the stage that makes it") from None
    for field in schema:
        if field.name not in table:
            raise MelaError(
                f"{path}: expected the column {field.name}, found {', '.join(map(str, table))}; "
                "rerun the stage that makes it"
            )
        column = table[field.name]
        if not len(column):
            table[field.name] = column.astype(field.type.to_pandas_dtype())
        elif not KINDS[field.type](column):
            raise MelaError(
                f"{path}: expected {field.type} in the column {field.name}, found {column.dtype}; "
                "rerun the stage that makes it"
            )
    return table


def _require(path: Path) -> None:
    if not path.is_file():
        raise MelaError(f"{path}: no such file; run `dvc repro`, or the stage that makes it, first")
