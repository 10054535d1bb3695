"""Manifests of the splits, drawn or given."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mela.data.sampling import COLUMNS, draw_split, given_split
from mela.errors import MelaError
from mela.io import schemas, store
from mela.params import TaskParams

SPLITS = ["train", "val", "test"]


def task_params(**changes: object) -> TaskParams:
    values = {"ways": 3, "shots": 1, "queries": 2, "train": 4, "val": 5, "test": 6, "replacement": True, "seed": 0}
    return TaskParams.model_validate(values | changes)


def part(split: str) -> pd.DataFrame:
    """Four classes of six images, as each split has them; ids are scattered."""
    rows = [(split, f"{split}{label}") for split in SPLITS for label in range(4) for _ in range(6)]
    images = pd.DataFrame(rows, columns=["split", "class"])
    images["image_id"] = np.random.default_rng(0).permutation(len(images))
    return images[images["split"] == split].sort_values("image_id")


GIVEN = pd.DataFrame(
    [
        ("train", 7, 10, 0, "support"),
        ("val", 2, 11, 1, "query"),
        ("train", 7, 12, 1, "query"),
        ("val", 2, 13, 0, "support"),
    ],
    columns=["split", *COLUMNS],
).assign(extra=0)


def test_splits_share_no_image() -> None:
    drawn = {split: draw_split(part(split), task_params(), split) for split in SPLITS}
    assert [drawn[split]["task_id"].nunique() for split in SPLITS] == [4, 5, 6]
    for split, manifest in drawn.items():
        assert list(manifest.columns) == COLUMNS
        assert set(manifest["image_id"]) <= set(part(split)["image_id"])


@pytest.mark.parametrize("split", SPLITS)
def test_local_classes_are_true_classes(split: str) -> None:
    manifest = draw_split(part(split), task_params(), split).merge(part(split), on="image_id")
    assert (manifest.groupby(["task_id", "local_label"])["class"].nunique() == 1).all()
    assert (manifest.groupby("task_id")["class"].nunique() == 3).all()


def test_only_training_tasks_are_drawn_without_replacement() -> None:
    settings = task_params(replacement=False, train=None, val=20, test=20)
    train = draw_split(part("train"), settings, "train")
    assert train["task_id"].nunique() == 2
    assert train["image_id"].is_unique
    for split in ["val", "test"]:
        manifest = draw_split(part(split), settings, split)
        assert manifest["task_id"].nunique() == 20
        assert not manifest["image_id"].is_unique
    with pytest.raises(MelaError, match=r"^tasks\.train: expected at most 2 tasks .* got 3; "):
        draw_split(part("train"), task_params(replacement=False, train=3), "train")


def test_the_settings_reach_the_draw() -> None:
    settings = task_params(ways=2, shots=3, queries=1, seed=5)
    manifest = draw_split(part("test"), settings, "test")
    assert len(manifest) == 6 * 2 * 4
    assert (manifest["role"] == "support").sum() == 6 * 2 * 3
    assert manifest.equals(draw_split(part("test"), settings, "test"))
    assert not manifest.equals(draw_split(part("test"), settings.model_copy(update={"seed": 6}), "test"))


@pytest.mark.parametrize("images", [part("val"), part("val").head(0)], ids=["images", "no images"])
def test_no_tasks_make_an_empty_manifest(images: pd.DataFrame, tmp_path: Path) -> None:
    manifest = draw_split(images, task_params(val=0), "val")
    assert list(manifest.columns) == COLUMNS
    assert manifest.empty
    assert manifest.dtypes.iloc[:3].tolist() == [np.int64] * 3
    store.write_table(tmp_path / "val.parquet", manifest, schemas.MANIFEST, stage="manifest", params={})
    assert store.read_table(tmp_path / "val.parquet", schemas.MANIFEST).empty


@pytest.mark.parametrize(
    ("split", "changes", "got"),
    [("val", {}, "5"), ("test", {}, "6"), ("train", {"train": None, "replacement": False}, "None")],
)
def test_tasks_without_images(split: str, changes: dict[str, object], got: str) -> None:
    message = rf"^tasks\.{split} is {got}, but no {split} class has images"
    with pytest.raises(MelaError, match=message):
        draw_split(part(split).head(0), task_params(**changes), split)


def test_given_tasks_stay_as_they_are() -> None:
    expected = {"task_id": [7, 7], "image_id": [10, 12], "local_label": [0, 1], "role": ["support", "query"]}
    pd.testing.assert_frame_equal(given_split(GIVEN, "train"), pd.DataFrame(expected))
    assert given_split(GIVEN, "val")["image_id"].tolist() == [11, 13]


def test_a_split_without_given_tasks_is_empty() -> None:
    manifest = given_split(GIVEN, "test")
    assert list(manifest.columns) == COLUMNS
    assert manifest.empty
