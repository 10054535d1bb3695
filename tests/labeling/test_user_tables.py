"""Features of somebody else in place of those of the initial embedding."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mela.errors import MelaError
from mela.io import feature_tables, store
from mela.labeling.user_tables import given_features, match, read_tasks
from tests.helpers.project import change, run_stages

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(10, 3)).astype(np.float32)
IDS = np.array([1, 4, 7])


def as_parquet(path: Path, ids: list[int] | list[str], features: np.ndarray) -> None:
    pd.DataFrame({"image_id": ids, "feature": list(features)}).to_parquet(path)


def test_rows_of_an_array_are_the_packed_images(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", FEATURES)
    np.testing.assert_array_equal(given_features(tmp_path / "x.npy", IDS, 10), FEATURES[IDS])


def test_a_table_names_the_images_in_any_order_and_may_have_more(tmp_path: Path) -> None:
    order = RNG.permutation(10)
    as_parquet(tmp_path / "x.parquet", order.tolist(), FEATURES[order])
    found = given_features(tmp_path / "x.parquet", IDS, 10)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, FEATURES[IDS])


CASES: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "rows": (
        "x.npy",
        lambda path: np.save(path, FEATURES[:9]),
        "{path}: expected 10 rows, one for each packed image, got 9; image_id is the row of data/images/images.npy",
    ),
    "names": (
        "x.parquet",
        lambda path: as_parquet(path, [f"a/{i}.png" for i in range(10)], FEATURES),
        "{path}: image_id: expected integers, got 'a/0.png'; image_id is the row of data/images/images.npy",
    ),
    "missing": (
        "x.parquet",
        lambda path: as_parquet(path, [0, 1, 2, 3], FEATURES[:4]),
        "{path}: expected features of all 3 images of training tasks, found none of image 4 (2 lack them); "
        "image_id is the row of data/images/images.npy",
    ),
    "none": (
        "x.npy",
        lambda path: None,
        "extract.features: expected the file {path}, found none; put it there, or correct the name",
    ),
    "infinite": (
        "x.npy",
        lambda path: np.save(path, np.full((10, 3), np.inf)),
        "{path}, row 0, the first being row 0: expected finite features, got NaN or infinity; correct it "
        "(10 of 10 rows are like this)",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_refused(case: str, tmp_path: Path) -> None:
    name, write, message = CASES[case]
    write(tmp_path / name)
    with pytest.raises(MelaError, match=f"^{re.escape(message.format(path=tmp_path / name))}$"):
        given_features(tmp_path / name, IDS, 10)


def test_the_stage_takes_them(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The features of the initial embedding, given as a file, lead to the same labels."""
    before = {path: path.read_bytes() for path in (copied / "data").rglob("*.parquet")}
    ids, features = feature_tables.read_features(copied / "data/features.parquet")
    (copied / "data/raw/features").mkdir(parents=True)
    as_parquet(copied / "data/raw/features/own.parquet", ids.tolist(), np.asarray(features))
    change(copied / "params.yaml", {"extract.features": "own.parquet"})
    (copied / "models/initial.safetensors").rename(copied / "models/away.safetensors")
    run_stages("extract", "label")
    assert f"extract: {len(ids)} images, {features.shape[1]} dimensions" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in (copied / "data").rglob("*.parquet") if path in before} == before


def test_others_lead_elsewhere(copied: Path) -> None:
    images = store.open_images(copied / "data/images/images.npy")
    (copied / "data/raw/features").mkdir(parents=True)
    np.save(copied / "data/raw/features/pixels.npy", images.reshape(len(images), -1).astype(np.float32))
    change(copied / "params.yaml", {"extract.features": "pixels.npy"})
    run_stages("extract")
    ids, features = feature_tables.read_features(copied / "data/features.parquet")
    np.testing.assert_array_equal(features, images.reshape(len(images), -1)[ids])


def test_a_table_may_say_whose_the_tasks_are(tmp_path: Path) -> None:
    rows = pd.DataFrame({"task_id": [1, 1, 2, 2], "image_id": [0, 1, 2, 3], "local_label": [0, 1, 0, 1]})
    rows["source"] = ["bob", "bob", "ann", "ann"]
    features = np.arange(8.0).reshape(4, 2)
    for name in ("tasks.csv", "tasks.parquet"):
        path = tmp_path / name
        rows.to_csv(path, index=False) if name.endswith("csv") else rows.to_parquet(path)
        samples = match(read_tasks(path), pd.Index(range(4)), features, where="features")
        np.testing.assert_array_equal(samples.sources, [1, 0])
    rows.assign(source=["bob", "ann", "ann", "ann"]).to_csv(tmp_path / "tasks.csv", index=False)
    with pytest.raises(MelaError, match=r"line 3: expected one source for all rows of task 1, got 'ann' after 'bob'"):
        read_tasks(tmp_path / "tasks.csv")
    rows.assign(source=["bob", "", "ann", "ann"]).to_csv(tmp_path / "tasks.csv", index=False)
    with pytest.raises(MelaError, match=r"line 3: expected a source, got none"):
        read_tasks(tmp_path / "tasks.csv")
