"""Write and read tables of features in blocks, since they may be larger than memory."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mela.errors import MelaError
from mela.io.atomic import replacing
from mela.io.store import made_by, opened, require_values

ROW_GROUP_BYTES = 2**22


def features_schema(dimensions: int) -> pa.Schema:
    """Return the schema of a feature table: ``image_id`` and a list of exactly `dimensions` float32."""
    return pa.schema([("image_id", pa.int64()), ("feature", pa.list_(pa.float32(), dimensions))])


def read_features(path: Path) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Read image ids (n,) and features (n, m) of a feature table, with one row group at a time beside them in memory.

    Raises
    ------
    MelaError
        As `read_table`; a feature is NaN or infinite.
    """
    with opened(path) as file:
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
            require_values(path, batch, done)
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


def rows_per_group(dimensions: int) -> int:
    """Return how many rows of a feature table are written and read at once: 4 MiB of features."""
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
        Image ids and features, of any length, which nobody changes later; the file does not depend on where they are
        divided.
    dimensions : int
        m.
    stage : str
    params : mapping
        What made them.
    """
    schema = features_schema(dimensions).with_metadata(made_by(stage, params))
    with (
        replacing(path) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd", use_dictionary=False) as writer,
    ):
        rows, waiting = rows_per_group(dimensions), schema.empty_table()
        for image_ids, features in batches:
            values = pa.FixedSizeListArray.from_arrays(pa.array(features.reshape(-1)), dimensions)
            new = pa.Table.from_arrays([pa.array(image_ids), values], schema=schema)
            waiting = pa.concat_tables([waiting, new])
            while len(waiting) >= rows:
                writer.write_table(waiting.slice(0, rows).combine_chunks())
                waiting = waiting.slice(rows)
        if len(waiting):
            writer.write_table(waiting.combine_chunks())
