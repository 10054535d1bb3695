"""Files that stages hand to each other: written whole or not at all, and checked when read.

Every parquet file carries its schema and, under the metadata key ``mela``, which stage made it from which parameters.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from mela.errors import MelaError, one_line

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


def features_schema(dimensions: int) -> pa.Schema:
    """Schema of a feature table: ``image_id`` and a list of exactly `dimensions` float32."""
    return pa.schema([("image_id", pa.int64()), ("feature", pa.list_(pa.float32(), dimensions))])


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path` that takes its place, synced to disk, once the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_table(
    path: Path, columns: pd.DataFrame | pa.Table, schema: pa.Schema, *, stage: str, params: Mapping[str, Any]
) -> None:
    """Write a parquet file of the given schema, in the schema's column order."""
    if isinstance(columns, pd.DataFrame):
        columns = pa.Table.from_pandas(columns[schema.names], schema=schema, preserve_index=False)
    made_by = json.dumps({"stage": stage, "params": params}, sort_keys=True)
    table = columns.cast(schema).replace_schema_metadata({"mela": made_by})
    with replacing(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def read_table(path: Path, schema: pa.Schema) -> pd.DataFrame:
    """Read a parquet file that a stage wrote.

    Raises
    ------
    MelaError
        The file is missing, no parquet file, not written by a stage, or of another schema.
    """
    return _read_arrow(path, schema).to_pandas()


def _read_arrow(path: Path, schema: pa.Schema | None) -> pa.Table:
    _require(path)
    try:
        table = pq.read_table(path, partitioning=None)
    except (pa.ArrowException, OSError) as error:
        raise MelaError(
            f"{path}: expected a parquet file, got {one_line(error)}; rerun the stage that makes it"
        ) from None
    if b"mela" not in (table.schema.metadata or {}):
        raise MelaError(
            f"{path}: expected a table written by a stage (metadata key `mela`), found none; rerun its stage"
        )
    if schema is not None and not table.schema.equals(schema, check_metadata=False):
        expected = ", ".join(f"{field.name}: {field.type}" for field in schema)
        found = ", ".join(f"{field.name}: {field.type}" for field in table.schema)
        raise MelaError(f"{path}: expected columns ({expected}), found ({found}); rerun the stage that makes it")
    return table


def read_features(path: Path) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Image ids (n,) and features (n, m) of a feature table."""
    table = _read_arrow(path, None)
    if table.column_names != ["image_id", "feature"] or not pa.types.is_fixed_size_list(
        table.schema.field("feature").type
    ):
        raise MelaError(f"{path}: expected columns image_id and feature (fixed-size list), found {table.column_names}")
    kind = table.schema.field("feature").type
    column = table.column("feature").combine_chunks()
    features = np.asarray(column.flatten(), dtype=np.float32).reshape(-1, kind.list_size)
    if not np.isfinite(features).all():
        row = int(np.flatnonzero(~np.isfinite(features).all(axis=1))[0])
        raise MelaError(f"{path}: row {row}: expected finite features, found NaN or infinity; rerun embed and extract")
    return table.column("image_id").to_numpy(), features


def write_features(
    path: Path,
    image_ids: npt.NDArray[np.int64],
    features: npt.NDArray[np.float32],
    *,
    stage: str,
    params: Mapping[str, Any],
) -> None:
    """Write image ids (n,) with features (n, m)."""
    schema = features_schema(features.shape[1])
    values = pa.FixedSizeListArray.from_arrays(pa.array(features.reshape(-1)), features.shape[1])
    table = pa.Table.from_arrays([pa.array(image_ids), values], schema=schema)
    write_table(path, table, schema, stage=stage, params=params)


def open_images(path: Path) -> npt.NDArray[np.uint8]:
    """The packed images (N, H, W, C) uint8, memory-mapped."""
    _require(path)
    try:
        images = np.lib.format.open_memmap(path, mode="r")
    except (ValueError, OSError, EOFError) as error:
        raise MelaError(
            f"{path}: expected packed images (.npy), got {one_line(error)}; rerun the stage images"
        ) from None
    if images.ndim != 4 or images.dtype != np.uint8:
        raise MelaError(
            f"{path}: expected images (N, H, W, C) of uint8, found shape {images.shape} of {images.dtype}; "
            "rerun the stage images"
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
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def write_csv(path: Path, columns: pd.DataFrame) -> None:
    """Write a small table of plot points."""
    with replacing(path) as temporary:
        columns.to_csv(temporary, index=False, float_format="%.6g", lineterminator="\n")


def read_csv(path: Path) -> pd.DataFrame:
    """Read a table of plot points."""
    _require(path)
    try:
        return pd.read_csv(path)
    except ValueError as error:
        raise MelaError(f"{path}: expected a table, got {one_line(error)}; rerun the stage that makes it") from None


def _require(path: Path) -> None:
    if not path.is_file():
        raise MelaError(f"{path}: no such file; run `dvc repro`, or the stage that makes it, first")
