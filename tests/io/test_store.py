"""Files between stages: round trips, refusals, and no half-written file."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mela.errors import MelaError
from mela.io import feature_tables, schemas, store
from mela.io.atomic import replacing

TABLES = {
    "index": (schemas.INDEX, {"image_id": [0, 1], "split": ["train", "test"], "source": ["é/1.png", "2.png"]}),
    "truth": (schemas.TRUTH, {"image_id": [2**40, 1], "class": ["a", "b"]}),
    "tasks": (
        schemas.TASKS,
        {"split": ["val"], "task_id": [3], "image_id": [1], "local_label": [0], "role": ["query"]},
    ),
    "manifest": (schemas.MANIFEST, {"task_id": [3], "image_id": [1], "local_label": [0], "role": ["support"]}),
    "labels": (schemas.LABELS, {"image_id": [1, 2], "label": [0, 5]}),
    "soft labels": (schemas.SOFT_LABELS, {"image_id": [1, 1], "label": [0, 5], "weight": [0.25, 0.75]}),
    "assignments": (
        schemas.ASSIGNMENTS,
        {"task_id": [0, 0], "local_label": [0, 1], "cluster": [4, 4], "clustered": [True, False]},
    ),
    "accuracies": (
        schemas.ACCURACIES,
        {"split": ["test"], "task_id": [0], "model": ["mela"], "setting": ["1_shot"], "accuracy": [1 / 3]},
    ),
}
LABELS = pd.DataFrame({"image_id": [1, 2], "label": [0, 5]})


def write_labels(path: Path) -> None:
    store.write_table(path, LABELS, schemas.LABELS, stage="label", params={"q": 4.5})


def write_features(path: Path, features: Any = ((1, 1, 1), (1, 1, 1))) -> None:
    rows = np.asarray(features, dtype=np.float32)
    feature_tables.write_features(path, [(np.arange(len(rows)), rows)], rows.shape[1], stage="extract", params={})


def require_features(path: Path, features: Any) -> None:
    """Each feature is in the row of its number."""
    ids, found = feature_tables.read_features(path)
    np.testing.assert_array_equal(found, features)
    np.testing.assert_array_equal(ids, np.arange(len(features)))


def read_labels(path: Path) -> pd.DataFrame:
    return store.read_table(path, schemas.LABELS)


def refusal(read: Callable[[Path], Any], path: Path) -> str:
    """The one line that is said of a file, without its path."""
    with pytest.raises(MelaError) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("rows", [None, 0], ids=["rows", "empty"])
def test_tables_return_as_written(tmp_path: Path, name: str, rows: int | None) -> None:
    schema, content = TABLES[name]
    table = pd.DataFrame(content).head(rows) if rows == 0 else pd.DataFrame(content)
    shuffled = table[table.columns[::-1]].assign(extra=1)
    path = tmp_path / "new" / "folder" / f"{name}.parquet"
    store.write_table(path, shuffled, schema, stage="stage", params={})
    pd.testing.assert_frame_equal(store.read_table(path, schema), table, check_dtype=rows is None)


def test_a_table_says_which_stage_made_it_from_what(tmp_path: Path) -> None:
    write_labels(tmp_path / "labels.parquet")
    metadata = pq.read_schema(tmp_path / "labels.parquet").metadata
    assert json.loads(metadata[b"mela"]) == {"stage": "label", "params": {"q": 4.5}}


@pytest.mark.parametrize("n", [3, 0])
def test_features_return_as_written(tmp_path: Path, n: int) -> None:
    features = np.random.default_rng(0).normal(size=(7, n)).astype(np.float32).T
    ids = np.arange(n)[::-1]
    feature_tables.write_features(tmp_path / "f.parquet", [(ids, features)], 7, stage="extract", params={"a": 1})
    found_ids, found = feature_tables.read_features(tmp_path / "f.parquet")
    np.testing.assert_array_equal(found_ids, ids)
    np.testing.assert_array_equal(found, features)
    assert found.dtype == np.float32
    schema = pq.read_schema(tmp_path / "f.parquet")
    assert schema.equals(feature_tables.features_schema(7), check_metadata=False)
    assert json.loads(schema.metadata[b"mela"]) == {"stage": "extract", "params": {"a": 1}}


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_file_does_not_depend_on_where_features_are_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(feature_tables, "ROW_GROUP_BYTES", 4 * 5 * 16)
    features = np.random.default_rng(0).normal(size=(100, 5)).astype(np.float32)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    write_features(whole, features)
    batches = ((np.arange(100)[i : i + size], features[i : i + size]) for i in range(0, 100, size))
    feature_tables.write_features(parts, batches, 5, stage="extract", params={})
    assert parts.read_bytes() == whole.read_bytes()
    assert [pq.read_metadata(whole).row_group(i).num_rows for i in range(7)] == [16] * 6 + [4]
    require_features(whole, features)


def test_features_in_one_large_row_group_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    features = np.random.default_rng(0).normal(size=(100, 5)).astype(np.float32)
    write_features(tmp_path / "f", features)
    monkeypatch.setattr(feature_tables, "ROW_GROUP_BYTES", 4 * 5 * 16)
    require_features(tmp_path / "f", features)


def test_no_features_are_left_when_their_maker_fails(tmp_path: Path) -> None:
    def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        yield np.arange(2), np.ones((2, 3), dtype=np.float32)
        raise MelaError("features: image 5: expected finite values")

    with pytest.raises(MelaError, match="image 5"):
        feature_tables.write_features(tmp_path / "f", batches(), 3, stage="extract", params={})
    assert list(tmp_path.iterdir()) == []


def test_images_return_as_written(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, size=(3, 16, 16, 1), dtype=np.uint8)
    store.write_array(tmp_path / "images.npy", images)
    found = store.open_images(tmp_path / "images.npy")
    assert isinstance(found, np.memmap)
    np.testing.assert_array_equal(found, images)


def test_text_json_and_csv_return_as_written(tmp_path: Path) -> None:
    content = {"clusters": 3, "share": 0.1, "nested": {"name": "é"}}
    store.write_json(tmp_path / "m.json", content)
    assert store.read_json(tmp_path / "m.json") == content
    store.write_text(tmp_path / "s.md", "± one\ntwo\n")
    assert (tmp_path / "s.md").read_bytes() == "± one\ntwo\n".encode()
    points = pd.DataFrame({"rank": [1, 2], "tasks": [7, 5], "threshold": [0.5, -1.25]})
    store.write_csv(tmp_path / "p.csv", points)
    assert (tmp_path / "p.csv").read_bytes() == b"rank,tasks,threshold\n1,7,0.5\n2,5,-1.25\n"
    pd.testing.assert_frame_equal(store.read_csv(tmp_path / "p.csv", schemas.SIZES), points)
    names = pd.DataFrame({"label": [0, 1], "class": ["NA", "007"], "purity": [99.5, 100.0], "classes": [2, 1]})
    store.write_csv(tmp_path / "n.csv", names)
    pd.testing.assert_frame_equal(store.read_csv(tmp_path / "n.csv", schemas.PURITIES), names, check_dtype=False)
    store.write_csv(tmp_path / "n.csv", names.head(0))
    assert list(store.read_csv(tmp_path / "n.csv", schemas.PURITIES)) == list(names)


TABLE_READERS: dict[str, Callable[[Path], Any]] = {"table": read_labels, "features": feature_tables.read_features}
READERS = TABLE_READERS | {
    "images": store.open_images,
    "json": store.read_json,
    "csv": lambda path: store.read_csv(path, schemas.SIZES),
}
WRITERS: dict[str, Callable[[Path], None]] = {
    "table": write_labels,
    "features": write_features,
    "json": lambda path: store.write_json(path, {"b": 1, "a": 2.5}),
    "text": lambda path: store.write_text(path, "text\n"),
    "array": lambda path: store.write_array(path, np.arange(6)),
    "csv": lambda path: store.write_csv(path, LABELS),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_the_same_content_gives_the_same_bytes_and_no_other_file(tmp_path: Path, write: Callable[[Path], None]) -> None:
    write(tmp_path / "first")
    write(tmp_path / "second")
    write(tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "second"]


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("kind", ["missing", "folder"])
def test_a_missing_file_is_named(tmp_path: Path, read: Callable[[Path], Any], kind: str) -> None:
    path = tmp_path / "file"
    if kind == "folder":
        path.mkdir()
    assert refusal(read, path) == "no such file; run `dvc repro`, or the stage that makes it, first"


@pytest.mark.parametrize("read", TABLE_READERS.values(), ids=TABLE_READERS)
@pytest.mark.parametrize("content", [b"", b"PAR1", b"image_id,label\n1,2\n", bytes(200)])
def test_a_file_that_is_no_parquet(tmp_path: Path, read: Callable[[Path], Any], content: bytes) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(content)
    assert re.fullmatch("expected a parquet file, got .*; rerun the stage that makes it", refusal(read, path))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("name", TABLE_READERS)
def test_a_truncated_table(tmp_path: Path, name: str, share: float) -> None:
    path = tmp_path / "t.parquet"
    WRITERS[name](path)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    assert refusal(TABLE_READERS[name], path).startswith("expected a parquet file, got ")


@pytest.mark.parametrize("read", TABLE_READERS.values(), ids=TABLE_READERS)
def test_a_table_that_no_stage_wrote(tmp_path: Path, read: Callable[[Path], Any]) -> None:
    path = tmp_path / "t.parquet"
    LABELS.to_parquet(path)
    assert refusal(read, path).startswith("expected a table written by a stage (metadata key `mela`), found none")


@pytest.mark.parametrize(
    "found",
    [
        "image_id: int64, label: int32",
        "image_id: int64",
        "label: int64, image_id: int64",
        "image_id: int64, label: int64, split: string",
        "image_id: int64, cluster: int64",
    ],
)
def test_a_table_of_another_schema(tmp_path: Path, found: str) -> None:
    columns = [column.split(": ") for column in found.split(", ")]
    path, schema = tmp_path / "t.parquet", pa.schema([(name, pa.type_for_alias(kind)) for name, kind in columns])
    store.write_table(path, schema.empty_table(), schema, stage="other", params={})
    assert refusal(read_labels, path) == (
        f"expected columns (image_id: int64, label: int64), found ({found}); rerun the stage that makes it"
    )


def test_a_table_that_holds_no_features(tmp_path: Path) -> None:
    path = tmp_path / "labels.parquet"
    write_labels(path)
    expected = "expected columns image_id (int64) and feature (fixed-size list of float32), found ("
    assert refusal(feature_tables.read_features, path) == f"{expected}image_id: int64, label: int64); rerun extract"


@pytest.mark.parametrize(
    ("ids", "features"),
    [
        (pa.int64(), pa.list_(pa.float32())),
        (pa.int64(), pa.list_(pa.float64(), 3)),
        (pa.int64(), pa.float32()),
        (pa.float64(), pa.list_(pa.float32(), 3)),
    ],
)
def test_features_of_other_types(tmp_path: Path, ids: pa.DataType, features: pa.DataType) -> None:
    path, schema = tmp_path / "features.parquet", pa.schema([("image_id", ids), ("feature", features)])
    store.write_table(path, schema.empty_table(), schema, stage="extract", params={})
    with pytest.raises(MelaError, match=r"image_id \(int64\) and feature \(fixed-size list of float32\)"):
        feature_tables.read_features(path)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_feature_that_is_not_finite_is_named_by_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float, rows: int
) -> None:
    monkeypatch.setattr(feature_tables, "ROW_GROUP_BYTES", 4 * 3 * rows)
    features = np.ones((5, 3), dtype=np.float32)
    features[3, 1] = features[4, 0] = value
    path = tmp_path / "f.parquet"
    write_features(path, features)
    assert refusal(feature_tables.read_features, path) == (
        "row 3: expected finite features, found NaN or infinity; rerun embed and extract"
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.nan])
def test_json_refuses_what_is_no_number(tmp_path: Path, value: float) -> None:
    path = tmp_path / "m.json"
    store.write_json(path, {"accuracy": 1.0})
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.write_json(path, {"accuracy": value})
    assert store.read_json(path) == {"accuracy": 1.0}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1', "expected JSON, got "),
        (b"", "expected JSON, got "),
        (b"\xff\xfe", "expected JSON, got "),
        (b"[1, 2]", "expected a JSON object, got list"),
        (b"3", "expected a JSON object, got int"),
    ],
)
def test_a_file_that_is_no_json_object(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(content)
    assert refusal(store.read_json, path).startswith(message)


@pytest.mark.parametrize(
    ("array", "found"),
    [
        (np.zeros((2, 4, 4, 1), dtype=np.float32), "(2, 4, 4, 1) of float32"),
        (np.zeros((2, 16, 16), dtype=np.uint8), "(2, 16, 16) of uint8"),
        (np.zeros((2, 32, 16, 1), dtype=np.uint8), "(2, 32, 16, 1) of uint8"),
        (np.zeros((2, 16, 16, 2), dtype=np.uint8), "(2, 16, 16, 2) of uint8"),
        (np.zeros((2, 8, 8, 1), dtype=np.uint8), "(2, 8, 8, 1) of uint8"),
    ],
)
def test_images_of_another_type_or_shape(tmp_path: Path, array: np.ndarray, found: str) -> None:
    path = tmp_path / "images.npy"
    store.write_array(path, array)
    expected = "images (N, side, side, channels) of uint8, side 16 or more, 1 or 3 channels"
    assert refusal(store.open_images, path) == f"expected {expected}, found {found}; rerun the stage images"


@pytest.mark.parametrize("damage", ["empty", "truncated", "text", "pickle", "npz"])
def test_images_that_are_no_array(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "images.npy"
    np.save(path, np.zeros((2, 4, 4, 1), dtype=np.uint8))
    if damage == "pickle":
        np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    elif damage == "npz":
        np.savez(tmp_path / "a.npz", images=np.zeros((2, 4, 4, 1), dtype=np.uint8))
        (tmp_path / "a.npz").replace(path)
    else:
        path.write_bytes({"empty": b"", "truncated": path.read_bytes()[:-5], "text": b"no array"}[damage])
    assert re.match("expected (packed images|images)", refusal(store.open_images, path))


def test_replacing_leaves_the_old_file_when_the_block_raises(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def fail() -> None:
        with replacing(path) as temporary:
            assert temporary.parent == path.parent
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_replacing_shows_the_new_file_only_when_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_full_disk_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], None]
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError("no space left on device")

    path = tmp_path / "file"
    path.write_text("old")
    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="no space left"):
        write(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_table_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "labels.parquet"
    write_labels(path)
    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError)):
        store.write_table(path, LABELS.assign(label="x"), schemas.LABELS, stage="label", params={})
    pd.testing.assert_frame_equal(read_labels(path), LABELS)
    assert list(tmp_path.iterdir()) == [path]


def test_features_that_cannot_be_in_the_file(tmp_path: Path) -> None:
    """A damaged schema may ask for more memory than there is; lists that are missing take no place either."""
    path, schema = tmp_path / "features.parquet", feature_tables.features_schema(1_000_000)
    nothing = pa.table([pa.array([0, 1]), pa.nulls(2, schema.field("feature").type)], schema=schema)
    store.write_table(path, nothing, schema, stage="extract", params={})
    with pytest.raises(MelaError, match=r"expected 1000000 features of 2 images, got \d+ bytes in all; rerun extract$"):
        feature_tables.read_features(path)
