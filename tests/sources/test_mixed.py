"""Several data sets in one run: their images, their tasks, and accuracy for each of them."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from mela.data.sampling import COLUMNS, draw_split
from mela.errors import MelaError
from mela.evaluation.accuracy import summarize
from mela.io import schemas, store
from mela.io.checked_tables import read_manifest, read_truth
from mela.params import PARAMS, DataParams, TaskParams
from mela.sources.data_warnings import remarks
from mela.sources.open import open_source
from stages.common import paths
from tests.helpers.commands import mela
from tests.helpers.project import ROOT, TINY, change, run_stages

PER_CLASS = 12
# classes of each split
SIZES = {"birds": (6, 3, 4), "leaves": (5, 3, 3), "coins": (4, 0, 3)}
DATASETS: list[dict[str, Any]] = [{"name": "folder", "root": name, "table": "split.csv"} for name in SIZES]
CHANGES = {"data.name": "mixed", "data.root": "raw", "data.datasets": DATASETS, "tasks.ways": 3, "tasks.shots": 2}


def write(root: Path) -> None:
    """Data sets whose classes have names in common, each class a colour with noise."""
    generator = np.random.default_rng(0)
    for name, counts in SIZES.items():
        lines = ["split,class"]
        for split, count in zip(("train", "val", "test"), counts, strict=True):
            for number in range(count):
                label = f"{split} {number}"
                lines.append(f"{split},{label}")
                colour = generator.integers(40, 215, 3)
                for image in range(PER_CLASS):
                    path = root / name / label / f"{image}.png"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    pixels = colour + generator.integers(-40, 40, (16, 16, 3))
                    Image.fromarray(pixels.astype(np.uint8)).save(path)
        (root / name / "split.csv").write_text("\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in the current directory with the three data sets."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "raw")
    shutil.copy(ROOT / "presets/metadataset_cpu.yaml", PARAMS)
    small = {"tasks.queries": 3, "tasks.train": 12, "tasks.val": 2, "tasks.test": 4, "evaluate.shots": [1, 2]}
    change(PARAMS, TINY | CHANGES | small | {"labeler.n_clusters": 30, "kmeans.n_clusters": 15})
    return tmp_path


def drawn(split: str, **changes: object) -> pd.DataFrame:
    """Tasks of a split of the three data sets, with the class of each image."""
    rows = [
        (name, f"{name}/{split} {number}", image)
        for name, counts in SIZES.items()
        for number in range(counts[("train", "val", "test").index(split)])
        for image in range(PER_CLASS)
    ]
    images = pd.DataFrame(rows, columns=["dataset", "class", "image_id"])
    images["image_id"] = np.random.default_rng(1).permutation(len(images))
    values = {"ways": 3, "shots": 2, "queries": 3, "train": 7, "val": 5, "test": 6, "replacement": True, "seed": 0}
    manifest = draw_split(images, TaskParams.model_validate(values | changes), split)
    return manifest.merge(images, on="image_id", how="left", suffixes=("", "_of_image"), validate="many_to_one")


@pytest.mark.parametrize("split", ["train", "val", "test"])
@pytest.mark.parametrize("replacement", [True, False])
def test_a_task_is_of_one_data_set_and_they_take_turns(split: str, replacement: bool) -> None:
    manifest = drawn(split, replacement=replacement, train=2)
    column = "dataset" if split == "train" else "dataset_of_image"
    per_task = manifest.groupby("task_id")[column]
    assert (per_task.nunique() == 1).all()
    names = sorted(name for name, sizes in SIZES.items() if sizes[("train", "val", "test").index(split)])
    count = {"train": 2, "val": 5, "test": 6}[split]
    assert per_task.first().tolist() == names * count
    assert (manifest.groupby(["task_id", "local_label"])["class"].nunique() == 1).all()
    if split != "train":
        assert (manifest["dataset"] == manifest["dataset_of_image"]).all()


def test_training_tasks_do_not_say_whose_they_are() -> None:
    images = pd.DataFrame({"dataset": "birds", "class": np.repeat(["a", "b", "c"], 12), "image_id": np.arange(36)})
    settings = TaskParams.model_validate(
        {"ways": 3, "shots": 2, "queries": 3, "train": 2, "val": 0, "test": 1, "replacement": True, "seed": 0}
    )
    assert [*draw_split(images, settings, "train")] == COLUMNS
    for split in ("val", "test"):
        manifest = draw_split(images, settings, split)
        assert [*manifest] == [*COLUMNS, "dataset"]
    assert draw_split(images, settings, "val").empty


def test_tasks_of_a_data_set_do_not_depend_on_the_number_of_tasks_nor_on_the_others() -> None:
    few, many = drawn("test", test=3), drawn("test", test=6)
    assert few.equals(many.head(len(few)))
    images = (
        many[["image_id", "class", "dataset_of_image"]]
        .drop_duplicates()
        .rename(columns={"dataset_of_image": "dataset"})
    )
    settings = TaskParams.model_validate(
        {"ways": 3, "shots": 2, "queries": 3, "train": 7, "val": 5, "test": 6, "replacement": True, "seed": 0}
    )
    whole = draw_split(images, settings, "test")
    for name in SIZES:
        alone = draw_split(images[images["dataset"] == name], settings, "test")
        among = whole[whole["dataset"] == name].reset_index(drop=True)
        pd.testing.assert_frame_equal(alone.drop(columns="task_id"), among.drop(columns="task_id"))
    # of two data sets with as many classes and images, other classes and images are drawn
    twin = pd.concat([images[images["dataset"] == "leaves"].assign(dataset=name) for name in ("one", "two")])
    one, two = (
        draw_split(twin[twin["dataset"] == name], settings, "test")["image_id"].tolist() for name in ("one", "two")
    )
    assert one != two


def test_a_data_set_that_allows_too_little_is_named() -> None:
    with pytest.raises(MelaError, match=r"the split test of coins has only 3 of the 4 classes that a task needs"):
        drawn("test", ways=4)
    with pytest.raises(MelaError, match=r"tasks.train of birds: expected at most \d+ tasks without replacement"):
        drawn("train", replacement=False, train=100)


def test_images_and_classes_begin_with_their_data_set(folder: Path) -> None:
    source = open_source(DataParams.read(PARAMS), shots=2)
    assert len(source) == PER_CLASS * sum(map(sum, SIZES.values()))
    assert source.datasets is not None
    assert source.classes is not None
    assert Counter(source.datasets) == {name: PER_CLASS * sum(counts) for name, counts in SIZES.items()}
    for index, name in enumerate(source.datasets):
        assert source.sources[index].startswith(f"{source.classes[index]}/")
        assert source.classes[index].startswith(f"{name}/")
        with Image.open(folder / "raw" / source.sources[index]) as image:
            np.testing.assert_array_equal(np.asarray(source.load(index)), np.asarray(image))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"data.datasets": None},
            r"data: datasets: expected two or more with data.name: mixed, and none with other na",
        ),
        (
            {"data.name": "folder"},
            r"data: datasets: expected two or more with data.name: mixed, and none with other na",
        ),
        ({"data.datasets": DATASETS[:1]}, r"data.datasets: list should have at least 2 items"),
        (
            {"data.datasets": DATASETS[:1] * 2},
            r"data: datasets: expected a folder of its own for each, got birds and bi",
        ),
        (
            {"data.datasets": [*DATASETS, {"name": "folder", "root": "./coins/"}]},
            r"data: datasets: expected a folder of its own for each, got coins and coins, of which one holds",
        ),
        (
            {"data.datasets": [*DATASETS, {"name": "folder", "root": "coins/train 0"}]},
            r"data: datasets: expected a folder of its own for each, got coins/train 0 and coins, of which one holds",
        ),
        (
            {"data.datasets": [{"name": name, "root": name} for name in ("mini_imagenet", "tiered_imagenet")]},
            r"data: datasets: expected classes of their own, got mini_imagenet and tiered_imagenet; classes that",
        ),
        (
            {"data.datasets": [{"name": name, "root": name} for name in ("fc100", "cub", "cifar_fs")]},
            r"data: datasets: expected classes of their own, got cifar_fs and fc100; classes that the one tests",
        ),
        (
            {"data.datasets": [*DATASETS, {"name": "cub", "root": "x", "table": "split.csv"}]},
            r"data.datasets.3: table: expected null with name: cub, whose split is the published one",
        ),
        (
            {"data.datasets": [*DATASETS, {"name": "cub", "root": "x", "rotations": True}]},
            r"data.datasets.3: rotations: expected false with name: cub; only omniglot has drawings to turn",
        ),
        (
            {"data.table": "split.csv"},
            r"data: table: expected null with data.name: mixed; give each of the datasets its",
        ),
        (
            {"data.datasets": [*DATASETS, {"name": "glyphs", "root": "x"}]},
            r"data.datasets.3.name: input should be 'omni",
        ),
        ({"data.datasets": [*DATASETS, {"name": "cub", "root": "../x"}]}, r"datasets.3: root: '../x' is no path below"),
        (
            {"data.datasets": [*DATASETS, {"name": "folder", "root": "x", "boxes": True}]},
            r"data.datasets.3: boxes: expected false with name: folder; only cub and aircraft have boxes",
        ),
        ({"data.boxes": True}, r"data: boxes: expected false with name: mixed; only cub and aircraft have boxes"),
    ],
)
def test_parameters_that_do_not_fit(changes: dict[str, Any], expected: str, folder: Path) -> None:
    change(PARAMS, changes)
    with pytest.raises(MelaError, match=expected):
        DataParams.read(PARAMS)


def test_a_data_set_that_is_missing_is_named(folder: Path) -> None:
    shutil.rmtree("raw/leaves")
    with pytest.raises(MelaError, match=r"^data.root: expected a folder at raw/leaves, got nothing"):
        open_source(DataParams.read(PARAMS), shots=2)


def test_a_link_in_place_of_a_data_set_is_refused(folder: Path) -> None:
    """DVC would not see what changes behind it."""
    Path("raw/leaves").rename("elsewhere")
    Path("raw/leaves").symlink_to(folder / "elsewhere")
    with pytest.raises(
        MelaError, match=r"expected real folders below data.root \(raw\), got the symbolic link raw/leaves"
    ):
        open_source(DataParams.read(PARAMS), shots=2)
    # the root itself may be one, which DVC follows
    Path("raw/leaves").unlink()
    Path("elsewhere").rename("raw/leaves")
    Path("raw").rename("there")
    Path("raw").symlink_to(folder / "there")
    assert len(open_source(DataParams.read(PARAMS), shots=2))


def test_splits_that_move_and_files_that_are_not_used_are_told(folder: Path) -> None:
    (folder / "raw/leaves/train 0/notes.docx").touch()
    data = DataParams.read(PARAMS)
    (line,) = remarks(open_source(data, shots=2), data)
    assert line == "not used: 1 file: no image by its suffix .docx ('leaves/train 0/notes.docx')"
    table = folder / "raw/leaves/split.csv"
    table.write_text(table.read_text().replace("train,train 0", "test,train 0"))
    told = [*remarks(open_source(data, shots=2), data)]
    assert any("leaves/train 0" in line for line in told if not line.startswith("not used"))


def test_a_task_of_two_data_sets_is_refused(tmp_path: Path) -> None:
    rows = pd.DataFrame(
        {
            "task_id": 0,
            "image_id": np.arange(4),
            "local_label": [0, 0, 1, 1],
            "role": ["support", "query"] * 2,
            "dataset": ["birds", "birds", "birds", "coins"],
        }
    )
    store.write_table(tmp_path / "a.parquet", rows, schemas.MANIFEST_OF_DATASETS, stage="manifest", params={})
    with pytest.raises(
        MelaError, match=r"a.parquet: row 3: task 0: expected tasks of one data set each, got another in"
    ):
        read_manifest(tmp_path / "a.parquet")


def test_accuracies_are_told_by_data_set() -> None:
    manifest = pd.DataFrame({"task_id": [0, 0, 1, 2, 3], "dataset": ["a", "a", "b", "a", "b"]})
    rows = [
        (task, model, "1_shot", 10.0 * task + (model == "oracle"))
        for task in range(4)
        for model in ("initial", "oracle")
    ]
    table = pd.DataFrame(rows, columns=["task_id", "model", "setting", "accuracy"])
    found = summarize(table, manifest)["datasets"]
    assert found == {
        "a": summarize(table[table["task_id"].isin([0, 2])]),
        "b": summarize(table[table["task_id"].isin([1, 3])]),
    }
    assert found["a"]["accuracy"]["initial"]["1_shot"]["mean"] == 10
    assert found["b"]["accuracy"]["oracle"]["1_shot"]["mean"] == 21
    assert summarize(table, manifest.drop(columns="dataset")) == summarize(table)
    assert "datasets" not in summarize(table)


@pytest.mark.slow
def test_a_run_tells_accuracy_for_each_data_set(folder: Path) -> None:
    run_stages()
    truth = read_truth(paths.TRUTH)
    assert (truth["class"].str.partition("/")[0] == truth["dataset"]).all()
    assert "dataset" not in read_manifest(paths.TRAIN)
    test = read_manifest(paths.TEST)
    assert test.groupby("dataset")["task_id"].nunique().to_dict() == dict.fromkeys(SIZES, 4)
    assert {*read_manifest(paths.VAL)["dataset"]} == {"birds", "leaves"}, "coins have no validation classes"
    # and the data set of a task is that of its images
    known = test.merge(truth, on="image_id", suffixes=("", "_of_image"))
    assert (known["dataset"] == known["dataset_of_image"]).all()

    per_task = store.read_table(paths.PER_TASK, schemas.ACCURACIES)
    per_task = per_task[per_task["split"] == "test"].merge(test[["task_id", "dataset"]].drop_duplicates(), on="task_id")
    metrics, page = store.read_json(paths.OVERVIEW), paths.PAGE.read_text(encoding="utf-8")
    assert metrics["data"] == "birds, leaves, coins"
    for (model, setting), own in per_task.groupby(["model", "setting"]):
        means = own.groupby("dataset")["accuracy"].mean().to_dict()
        assert metrics[model][setting]["datasets"] == pytest.approx(means)
        assert metrics[model][setting]["mean"] == pytest.approx(sum(means.values()) / 3)
    assert "Accuracy on test tasks of each data set" in page
    printed = mela("summary").stdout
    for name in SIZES:
        assert f'<th scope="col" class="n">{name}</th>' in page
        assert name in printed
    assert (paths.REPORT / "summary.md").read_text(encoding="utf-8").count("| leaves |") == 1
