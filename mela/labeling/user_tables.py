"""Read and check users' features and tasks for a labeler, and match them by image."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mela.data.array_types import AnyFeatures
from mela.errors import MelaError, one_line, raise_if_machine
from mela.io.text_tables import TEXT_SUFFIXES, parse_csv, read_text, require_columns
from mela.labeling.task_classes import TaskSamples, group_samples, with_sources

COLUMNS = ("task_id", "image_id", "local_label")
OPTIONAL = ("source",)


def read_user_features(path: Path) -> tuple[pd.Index, AnyFeatures]:
    """Read features from a file of any origin.

    Parameters
    ----------
    path : Path
        Parquet with ``image_id`` (text or integers) and ``feature`` (a list of numbers, of one length) or columns
        ``f0``, ``f1``...; or ``.npy`` (n, m), whose rows are the images 0 to n - 1.

    Returns
    -------
    image_ids : Index (n,)
    features : float32 or float64 (n, m)

    Raises
    ------
    MelaError
        One line that names the file and, where there is one, the row (the first of a Parquet file being row 1).
    """
    suffix = path.suffix.lower()
    if suffix == ".npy":
        features = _read_npy(path)
        image_ids = pd.Index(np.arange(len(features)))
    elif suffix == ".parquet":
        table = _read_parquet(path)
        require_columns(table.column_names, where=str(path), required=["image_id"])
        image_ids = pd.Index(_names(table.column("image_id"), "image_id", lambda row: f"{path}, row {row + 1}"))
        features = _features(table, path)
    else:
        raise MelaError(f"{path}: expected features in a file .parquet or .npy, got {path.suffix!r}; convert it")
    if not features.size:
        raise MelaError(f"{path}: expected features of some images, got none; add rows")
    if image_ids.has_duplicates:
        row = int(image_ids.duplicated().argmax())
        raise MelaError(
            f"{path}, row {row + 1}: expected every image once, got {_named(image_ids[row])} again; remove a row"
        )
    finite = np.asarray(np.isfinite(features).all(axis=1))
    if not finite.all():
        row = int(finite.argmin())
        place = (
            f"row {row}, the first being row 0"
            if suffix == ".npy"
            else f"row {row + 1} (image {_named(image_ids[row])})"
        )
        raise MelaError(
            f"{path}, {place}: expected finite features, got NaN or infinity; correct it "
            f"({np.count_nonzero(~finite)} of {len(features)} rows are like this)"
        )
    return image_ids, features


def _read_npy(path: Path) -> AnyFeatures:
    try:
        array = np.load(path, allow_pickle=False)
    # the header is a Python literal, and reading a damaged one raises almost anything
    except Exception as error:
        raise_if_machine(error, path)
        raise MelaError(f"{path}: expected an array of features (.npy), got {one_line(error)}; save it again") from None
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "fiu":
        got = f"shape {array.shape} of {array.dtype}" if isinstance(array, np.ndarray) else "an archive"
        raise MelaError(f"{path}: expected features (images, dimensions) of numbers, got {got}; save one row per image")
    return _as_floats(array)


def _as_floats(array: npt.NDArray[Any]) -> AnyFeatures:
    if array.dtype in (np.float16, np.float32):
        return array.astype(np.float32, copy=False)
    return array.astype(np.float64, copy=False)


def _read_parquet(path: Path) -> pa.Table:
    try:
        return pq.read_table(path)
    # UnicodeDecodeError: names that are no UTF-8
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise_if_machine(error, path)
        raise MelaError(f"{path}: expected a Parquet file, got {one_line(error)}; write it again") from None


def _features(table: pa.Table, path: Path) -> AnyFeatures:
    if "feature" in table.column_names:
        return _of_lists(table.column("feature").combine_chunks(), path)
    names = sorted(
        (name for name in table.column_names if re.fullmatch("f[0-9]+", name)), key=lambda name: int(name[1:])
    )
    if not names or names != [f"f{number}" for number in range(len(names))]:
        got = ", ".join(map(repr, table.column_names))
        raise MelaError(
            f"{path}: expected the column 'feature', a list of numbers, or columns 'f0', 'f1' and so on, got {got}; "
            "name them so"
        )
    return _as_floats(np.stack([_numbers(table.column(name).combine_chunks(), path, name) for name in names], axis=1))


def _of_lists(column: pa.Array, path: Path) -> AnyFeatures:
    kind = column.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        raise MelaError(f"{path}: expected lists of numbers in the column 'feature', got {kind}; convert the column")
    lengths = pc.list_value_length(column).fill_null(-1).to_numpy(zero_copy_only=False)
    if not len(lengths):
        return np.empty((0, 0), dtype=np.float32)
    wrong = lengths != lengths[0]
    if wrong.any() or lengths[0] < 1:
        row = int(wrong.argmax())
        expected = f"{lengths[0]} features as in row 1" if wrong.any() and lengths[0] > 0 else "features"
        got = "no list" if lengths[row] < 0 else str(lengths[row])
        raise MelaError(f"{path}, row {row + 1}: expected {expected}, got {got}; give all images as many")
    values = _numbers(pc.list_flatten(column), path, "feature", dimensions=int(lengths[0]))
    return _as_floats(values.reshape(-1, lengths[0]))


def _numbers(values: pa.Array, path: Path, name: str, dimensions: int = 1) -> npt.NDArray[Any]:
    if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
        raise MelaError(f"{path}: expected numbers in the column {name!r}, got {values.type}; convert the column")
    if values.null_count:
        row = pc.index(values.is_null(), value=True).as_py() // dimensions
        raise MelaError(f"{path}, row {row + 1}: expected a number in the column {name!r}, got none or NaN; fill it")
    return np.asarray(values.to_numpy(zero_copy_only=False))


def read_tasks(path: Path) -> pd.DataFrame:
    """Read which images form which task, with local labels.

    Parameters
    ----------
    path : Path
        CSV, TSV or Parquet with the columns ``task_id``, ``image_id`` and ``local_label``, and perhaps ``source``, the
        person whose the task is; text or integers. Others are ignored. A CSV column of integers alone holds integers.

    Returns
    -------
    DataFrame
        These columns, and ``place``, what messages call the row (a CSV line, the header being line 1, or a Parquet
        row, the first being row 1). A task names an image once.

    Raises
    ------
    MelaError
        One line that names the file and, where there is one, the row.
    """
    suffix = path.suffix.lower()
    if suffix in TEXT_SUFFIXES:
        text = parse_csv(read_text(path, str(path)), where=str(path), required=COLUMNS)
        places = [f"{path}, line {line}" for line in text.lines]
        names = [name for name in (*COLUMNS, *OPTIONAL) if name in text.columns]
        for name in names:
            if "" in text.columns[name]:
                _no_value(places[text.columns[name].index("")], name)
        columns: dict[str, Sequence[Any]] = {name: _typed(text.columns[name]) for name in names}
    elif suffix == ".parquet":
        table = _read_parquet(path)
        require_columns(table.column_names, where=str(path), required=COLUMNS)
        places = [f"{path}, row {row}" for row in range(1, table.num_rows + 1)]
        names = [name for name in (*COLUMNS, *OPTIONAL) if name in table.column_names]
        columns = {name: _names(table.column(name), name, places.__getitem__) for name in names}
    else:
        raise MelaError(f"{path}: expected tasks in a file .csv, .tsv or .parquet, got {path.suffix!r}; convert it")
    if not places:
        raise MelaError(f"{path}: expected one row per task and image, got an empty table; add rows")
    rows = pd.DataFrame({**columns, "place": places})
    _check_tasks(rows)
    return rows


def _typed(cells: Sequence[str]) -> Sequence[Any]:
    """Return cells as integers if each is written as one and fits into 64 bits."""
    whole = all(re.fullmatch("0|-?[1-9][0-9]{0,17}", cell) for cell in cells)
    return [int(cell) for cell in cells] if whole else cells


def _names(column: pa.ChunkedArray, name: str, place: Callable[[int], str]) -> list[Any]:
    if isinstance(column.type, pa.DictionaryType):
        column = column.cast(column.type.value_type)
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise MelaError(f"{place(0)}: expected text or integers as {name}, got {kind}; convert the column")
    if column.null_count:
        _no_value(place(pc.index(column.is_null(), value=True).as_py()), name)
    return column.to_pylist()


def _no_value(place: str, name: str) -> None:
    raise MelaError(f"{place}: expected a {name}, got none; fill it or remove the row")


def _check_tasks(rows: pd.DataFrame) -> None:
    again = rows.duplicated(["task_id", "image_id"])
    if again.any():
        row = rows[again].iloc[0]
        same = (rows["task_id"] == row["task_id"]) & (rows["image_id"] == row["image_id"])
        labels = rows.loc[same, "local_label"].unique()
        got = f"the local labels {', '.join(map(repr, labels.tolist()))}" if len(labels) > 1 else "it again"
        raise MelaError(
            f"{row['place']}: expected image {_named(row['image_id'])} once in task {_named(row['task_id'])}, "
            f"got {got}; remove one of the rows"
        )
    if "source" in rows:
        first = rows.groupby("task_id", sort=False)["source"].transform("first")
        if (rows["source"] != first).any():
            place = int((rows["source"] != first).argmax())
            row = rows.iloc[place]
            raise MelaError(
                f"{row['place']}: expected one source for all rows of task {_named(row['task_id'])}, got "
                f"{_named(row['source'])} after {_named(first.iloc[place])}; give each task one source, or rename the "
                "column if it means something else"
            )


def _named(value: object) -> str:
    """Return an identifier as messages show it."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def match(rows: pd.DataFrame, image_ids: pd.Index, features: AnyFeatures, *, where: str) -> TaskSamples:
    """Return the samples of tasks, one per row.

    Identifiers that are integers in one table and text in the other are compared as text.

    Parameters
    ----------
    rows : DataFrame
        Result of `read_tasks`.
    image_ids : Index (n,)
    features : float (n, m)
    where : str
        What messages call the features.

    Raises
    ------
    MelaError
        An image of a task has no features.
    """
    wanted = pd.Index(rows["image_id"])
    if (image_ids.dtype.kind in "iu") != (wanted.dtype.kind in "iu"):
        wanted, image_ids = wanted.astype(str), image_ids.astype(str)
    index = image_ids.get_indexer(wanted)
    if (index < 0).any():
        row = rows.iloc[int(np.argmin(index))]
        missing = len(wanted[index < 0].unique())
        raise MelaError(
            f"{row['place']}: expected an image with features in {where}, got {_named(row['image_id'])} "
            f"({missing} images have none); add them, or remove the rows"
        )
    tasks, labels = rows["task_id"].to_numpy(), rows["local_label"].to_numpy()
    samples = group_samples(features, index.astype(np.int64), tasks, labels)
    return with_sources(samples, rows["source"].to_numpy()) if "source" in rows else samples


ORDER = "image_id is the row of data/images/images.npy"


def given_features(path: Path, image_ids: npt.NDArray[np.int64], n_images: int) -> npt.NDArray[np.float32]:
    """Read the features (n, m) of the images with the given ids (n,).

    Parameters
    ----------
    path : Path
        As `mela.labeling.user_tables.read_user_features` reads it: ``.npy`` with a row for every packed image in the
        order of their ids, or Parquet with ``image_id`` and ``feature`` or ``f0``, ``f1``...
    image_ids : int64 (n,)
    n_images : int
        Number of packed images.

    Raises
    ------
    MelaError
        There is no such file, it cannot be read, its ids are no integers, or an image lacks features.
    """
    known, features = features_that_are_given(path, image_ids, n_images)
    if len(known) < len(image_ids):
        missing = image_ids[~np.isin(image_ids, known)]
        raise MelaError(
            f"{path}: expected features of all {len(image_ids)} images of training tasks, found none of image "
            f"{missing[0]} ({len(missing)} lack them); {ORDER}"
        )
    return features


def features_that_are_given(
    path: Path, image_ids: npt.NDArray[np.int64], n_images: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Return the ids that have features, and these; errors are those of `given_features`."""
    if not path.is_file():
        raise MelaError(f"extract.features: expected the file {path}, found none; put it there, or correct the name")
    known, features = read_user_features(path)
    if path.suffix.lower() == ".npy" and len(features) != n_images:
        raise MelaError(f"{path}: expected {n_images} rows, one for each packed image, got {len(features)}; {ORDER}")
    if not pd.api.types.is_integer_dtype(known):
        raise MelaError(f"{path}: image_id: expected integers, got {known[0]!r}; {ORDER}")
    rows = known.get_indexer(pd.Index(image_ids))
    return image_ids[rows >= 0], np.asarray(features[rows[rows >= 0]], dtype=np.float32)
