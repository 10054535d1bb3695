"""Files that stages hand to each other: written whole or not at all, and checked when read.

Every parquet file carries its schema and, under the metadata key ``mela``, which stage made it from which parameters.
"""

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mela.atomic import replacing
from mela.errors import MelaError, one_line, raise_if_machine

ROW_GROUP_BYTES = 2**22

INDEX = pa.schema([("image_id", pa.int64()), ("split", pa.string()), ("source", pa.string())])
TRUTH = pa.schema([("image_id", pa.int64()), ("class", pa.string())])
TASKS = pa.schema(
    [
        ("split", pa.string()),
        ("task_id", pa.int64()),
        ("image_id", pa.int64()),
        ("local_label", pa.int64()),
        ("role", pa.string()),
    ]
)
MANIFEST = TASKS.remove(0)
LISTING = pa.schema([("image_id", pa.int64())])
LABELS = pa.schema([("image_id", pa.int64()), ("label", pa.int64())])
SOFT_LABELS = LABELS.append(pa.field("weight", pa.float64()))
ASSIGNMENTS = pa.schema(
    [("task_id", pa.int64()), ("local_label", pa.int64()), ("cluster", pa.int64()), ("clustered", pa.bool_())]
)
ACCURACIES = pa.schema(
    [
        ("split", pa.string()),
        ("task_id", pa.int64()),
        ("model", pa.string()),
        ("setting", pa.string()),
        ("accuracy", pa.float64()),
    ]
)
RESULTS = pa.schema([("task_id", pa.int64()), ("setting", pa.string()), ("accuracy", pa.float64())])
HEADS = pa.schema(
    [
        ("head", pa.string()),
        ("setting", pa.string()),
        ("tasks", pa.int64()),
        ("mean", pa.float64()),
        ("ci95", pa.float64()),
    ]
)
CURVE = pa.schema(
    [("epoch", pa.int64()), ("loss", pa.float64()), ("accuracy", pa.float64()), ("learning_rate", pa.float64())]
)
PASSES = pa.schema(
    [
        ("pass", pa.int64()),
        ("clusters", pa.int64()),
        ("threshold", pa.float64()),
        ("kept", pa.int64()),
        ("tasks_clustered", pa.float64()),
        ("precision", pa.float64()),
    ]
)
MERGES = pa.schema([("round", pa.int64()), ("clusters", pa.int64()), ("log_odds", pa.float64()), ("made", pa.bool_())])
SIZES = pa.schema([("rank", pa.int64()), ("tasks", pa.int64()), ("threshold", pa.float64())])
CLUSTERS = pa.schema(
    [("label", pa.int64()), ("images", pa.int64()), ("task_classes", pa.int64()), ("certainty", pa.float64())]
)
PURITIES = pa.schema([("label", pa.int64()), ("class", pa.string()), ("purity", pa.float64()), ("classes", pa.int64())])
POINTS = pa.schema(
    [
        ("image_id", pa.int64()),
        ("label", pa.int64()),
        ("before_x", pa.float64()),
        ("before_y", pa.float64()),
        ("after_x", pa.float64()),
        ("after_y", pa.float64()),
    ]
)


KINDS = {
    pa.int64(): pd.api.types.is_integer_dtype,
    pa.float64(): pd.api.types.is_numeric_dtype,
    pa.bool_(): pd.api.types.is_bool_dtype,
    pa.string(): lambda column: True,
}


def features_schema(dimensions: int) -> pa.Schema:
    """Schema of a feature table: ``image_id`` and a list of exactly `dimensions` float32."""
    return pa.schema([("image_id", pa.int64()), ("feature", pa.list_(pa.float32(), dimensions))])


def write_table(
    path: Path, columns: pd.DataFrame | pa.Table, schema: pa.Schema, *, stage: str, params: Mapping[str, Any]
) -> None:
    """Write a parquet file of the given schema, in the schema's column order."""
    if isinstance(columns, pd.DataFrame):
        columns = pa.Table.from_pandas(columns[schema.names], schema=schema, preserve_index=False)
    table = columns.cast(schema).replace_schema_metadata(_made_by(stage, params))
    with replacing(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def _made_by(stage: str, params: Mapping[str, Any]) -> dict[str, str]:
    return {"mela": json.dumps({"stage": stage, "params": params}, sort_keys=True)}


def read_table(path: Path, schema: pa.Schema) -> pd.DataFrame:
    """Read a parquet file that a stage wrote.

    Raises
    ------
    MelaError
        The file is missing, no parquet file, not written by a stage, of another schema, or lacks a value.
    """
    with _opened(path) as file:
        found = file.schema_arrow
        if not found.equals(schema, check_metadata=False):
            expected, got = (", ".join(f"{field.name}: {field.type}" for field in kind) for kind in (schema, found))
            raise MelaError(f"{path}: expected columns ({expected}), found ({got}); rerun the stage that makes it")
        table = file.read()
        _require_values(path, table, 0)
        return table.to_pandas()


@contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    """A parquet file that a stage wrote; what pyarrow cannot read in it within the block is an error of the file."""
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


def read_features(path: Path) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Image ids (n,) and features (n, m) of a feature table; beside them one row group at a time is in memory.

    Raises
    ------
    MelaError
        As `read_table`; a feature is NaN or infinite.
    """
    with _opened(path) as file:
        schema = file.schema_arrow
        kind = schema.field("feature").type if "feature" in schema.names else pa.null()
        dimensions = kind.list_size if isinstance(kind, pa.FixedSizeListType) else 0
        if not schema.equals(features_schema(dimensions), check_metadata=False):
            found = ", ".join(f"{field.name}: {field.type}" for field in schema)
            raise MelaError(
                f"{path}: expected columns image_id (int64) and feature (fixed-size list of float32), found ({found}); "
                "rerun extract"
            )
        there = sum(file.metadata.row_group(group).total_byte_size for group in range(file.metadata.num_row_groups))
        if there < 4 * dimensions * file.metadata.num_rows:
            raise MelaError(
                f"{path}: expected {dimensions} features of {file.metadata.num_rows} images, got {there} bytes in all; "
                "rerun extract"
            )
        image_ids = np.empty(file.metadata.num_rows, dtype=np.int64)
        features = np.empty((file.metadata.num_rows, dimensions), dtype=np.float32)
        done = 0
        for batch in file.iter_batches(batch_size=rows_per_group(dimensions)):
            rows = slice(done, done + batch.num_rows)
            _require_values(path, batch, done)
            image_ids[rows] = batch.column("image_id")
            features[rows] = np.asarray(batch.column("feature").flatten()).reshape(-1, dimensions)
            finite = np.isfinite(features[rows]).all(axis=1)
            if not finite.all():
                raise MelaError(
                    f"{path}: row {done + int(finite.argmin())}: expected finite features, found NaN or infinity; "
                    "rerun embed and extract"
                )
            done += batch.num_rows
    return image_ids, features


def _require_values(path: Path, table: pa.Table | pa.RecordBatch, first: int) -> None:
    """Raise MelaError where a value is missing; `first` is the number of the table's first row in the file."""
    for name in table.column_names:
        column = table.column(name)
        if column.null_count:
            row = first + pc.index(column.is_null(), value=True).as_py()
            raise MelaError(f"{path}: row {row}: expected a value in column {name}, found none; rerun its stage")


def rows_per_group(dimensions: int) -> int:
    """Rows of a feature table that are written and read at once: 4 MiB of features."""
    return max(1, ROW_GROUP_BYTES // (4 * max(1, dimensions)))


def write_features(
    path: Path,
    batches: Iterable[tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]],
    dimensions: int,
    *,
    stage: str,
    params: Mapping[str, Any],
) -> None:
    """Write features as they come, so that no more than one row group of them is in memory.

    Parameters
    ----------
    path : Path
    batches : iterable of (int64 (b,), float32 (b, m))
        Image ids and features, of any length; the file does not depend on where they are divided.
    dimensions : int
        m.
    stage : str
    params : mapping
        What made them.
    """
    schema = features_schema(dimensions).with_metadata(_made_by(stage, params))
    with (
        replacing(path) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd", use_dictionary=False) as writer,
    ):
        for image_ids, features in _regrouped(batches, dimensions):
            values = pa.FixedSizeListArray.from_arrays(pa.array(features.reshape(-1)), dimensions)
            writer.write_table(pa.Table.from_arrays([pa.array(image_ids), values], schema=schema))


def _regrouped(
    batches: Iterable[tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]], dimensions: int
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]]:
    """The same rows in groups of `rows_per_group`, but for the last; a group is overwritten by the next."""
    size = rows_per_group(dimensions)
    image_ids, features = np.empty(size, dtype=np.int64), np.empty((size, dimensions), dtype=np.float32)
    filled = 0
    for new_ids, new_features in batches:
        taken = 0
        while taken < len(new_ids):
            some = min(size - filled, len(new_ids) - taken)
            image_ids[filled : filled + some] = new_ids[taken : taken + some]
            features[filled : filled + some] = new_features[taken : taken + some]
            filled, taken = filled + some, taken + some
            if filled == size:
                yield image_ids, features
                filled = 0
    if filled:
        yield image_ids[:filled], features[:filled]


def open_images(path: Path) -> npt.NDArray[np.uint8]:
    """The packed images (N, H, W, C) uint8, memory-mapped."""
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
    """Write metrics; NaN and infinity are refused, since they are no JSON and hide a failure."""
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
        raise MelaError(f"{path}: expected a JSON object, got {type(content).__name__}")
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
