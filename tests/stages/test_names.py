"""Names of tasks, labels and images: as people wrote them, for all people, and only where they belong."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mela.errors import MelaError
from mela.io import feature_tables, schemas, store
from mela.io.checked_tables import read_manifest
from mela.io.name_tables import (
    IMAGE_NAMES,
    LISTING,
    TASK_NAMES,
    TASK_SOURCES,
    WRONG_LABELS,
    names_of_labels,
    sources_of_tasks,
    with_names,
)
from mela.io.text_tables import read_text_csv
from mela.labeling.given_names import add_given_name
from mela.labeling.label_listing import ALONE, NONE, UNKNOWN
from stages.common import paths
from tests.helpers.people import HOSTILE, PEOPLE, REST_LABELS, WORDS, draw_alone
from tests.helpers.pipeline import STAGES, listed
from tests.helpers.project import change, run_stages

KIND = {word: number for number, words in enumerate(WORDS) for word in words}


def listing(folder: Path) -> pd.DataFrame:
    return read_text_csv(folder / paths.LISTING, LISTING)


def meant(table: pd.DataFrame) -> pd.Series:
    """What most labels of a cluster mean: one of the six things."""
    kinds = table[table["clustered"]].assign(kind=table["label"].map(KIND))
    return kinds.groupby("cluster")["kind"].agg(lambda kinds: kinds.mode()[0])


def test_names_are_those_of_the_folders(of_people: Path) -> None:
    names = store.read_table(of_people / paths.TASK_NAMES, TASK_NAMES)
    images = store.read_table(of_people / paths.IMAGE_NAMES, IMAGE_NAMES).set_index("image_id")["path"]
    tasks = store.read_table(of_people / paths.TASKS, schemas.TASKS).merge(names, on=["task_id", "local_label"])
    assert len(tasks) == len(images) == 4 * 3 * len(PEOPLE)
    # whoever looks an image up finds the folders that it lies in
    assert [Path(path).parts[:2] for path in images[tasks["image_id"]]] == [
        *zip(tasks["task"], tasks["label"], strict=True)
    ]
    assert set(names["task"]) == set(PEOPLE)


def test_all_labels_of_all_people_are_listed_as_written(of_people: Path) -> None:
    table = listing(of_people)
    on_disk = sorted((path.parent.name, path.name) for path in (of_people / "mine").glob("*/*"))
    assert sorted(zip(table["task"], table["label"], strict=True)) == on_disk
    assert set(HOSTILE) <= set(table["label"])
    assert (table["images"] == 4).all()
    for split in ("train", "val", "test"):
        manifest = store.read_table(of_people / f"data/manifest/{split}.parquet", schemas.MANIFEST)
        assert (table["split"] == split).sum() == 3 * manifest["task_id"].nunique() > 0
    assert table["assigned"].tolist() == (table["split"] != "train").tolist()


def test_what_is_listed_of_training_tasks_is_what_the_labeler_found(of_people: Path) -> None:
    names = store.read_table(of_people / paths.TASK_NAMES, TASK_NAMES)
    tasks = store.read_table(of_people / paths.MERGED_TASKS, schemas.ASSIGNMENTS).merge(
        names, on=["task_id", "local_label"]
    )
    found = listing(of_people).merge(tasks, on=["task", "label"], suffixes=("", "_stage"))
    assert len(found) == len(tasks)
    assert (found["clustered"] == found["clustered_stage"]).all()
    own = found[found["clustered"]]
    assert (own["cluster"] == own["cluster_stage"]).all()
    alone = own["note"] == ALONE
    assert own["certainty"].isna().tolist() == alone.tolist()
    counts = own.groupby("cluster")["label"].transform("size")
    assert alone.tolist() == (counts == 1).tolist()
    assert own["certainty"].dropna().between(0, 100).all()


def test_held_out_labels_are_assigned_to_what_they_mean(of_people: Path) -> None:
    table = listing(of_people)
    train, new = table[~table["assigned"]], table[table["assigned"]]
    given = new[new["clustered"]]
    assert len(given) > len(new) / 2
    right = (given["cluster"].map(meant(train)) == given["label"].map(KIND)).mean()
    assert right > 0.6, "of the training labels, 90% are in a cluster of their kind; by chance it would be 1 in 6"
    none = new[~new["clustered"]]
    assert none["cluster"].isna().all()
    assert (none["note"] == NONE).all()
    assert new["certainty"].between(0, 100).all()


def test_a_class_has_the_name_that_was_given_to_one_of_its_labels(people_copied: Path) -> None:
    before = listing(Path())
    assert (before["name"] == "").all()
    for label in before[before["clustered"]].drop_duplicates("cluster").head(2).itertuples():
        add_given_name(paths.CLASS_NAMES, (label.task, label.label), f"=class {label.cluster}")
    run_stages("assign", "report")
    after = listing(Path())
    pd.testing.assert_frame_equal(after.drop(columns="name"), before.drop(columns="name"))
    named = after[after["name"] != ""]
    assert (named["name"] == "=class " + named["cluster"].astype(str)).all()
    assert named["cluster"].nunique() == 2
    assert len(named) == before["cluster"].isin(named["cluster"]).sum(), "also labels that were assigned"
    page = paths.PAGE.read_text(encoding="utf-8")
    for cluster in named["cluster"].unique():
        assert f"<h3>Class {cluster:.0f}: <bdi>=class {cluster}</bdi></h3>" in page
    add_given_name(paths.CLASS_NAMES, ("nobody", "pilz"), "mushroom")
    with pytest.raises(MelaError, match="line 4: expected a task with labels to be inferred, got 'nobody'"):
        run_stages("assign")


@pytest.mark.slow
def test_labels_that_no_task_is_made_of_get_their_classes_in_the_end(people_copied: Path) -> None:
    before = listing(Path())
    draw_alone(Path("mine"))
    run_stages("images", "names", "manifest")
    for path in (paths.TRAIN, paths.VAL, paths.TEST):
        rows = store.read_table(path, schemas.MANIFEST)
        assert rows.groupby("task_id")["local_label"].nunique().eq(3).all(), "tasks are as they were"
    run_stages("embed", "extract", "round", "label", "assign")
    table = listing(Path())
    rest = table[table["split"] == "rest"].set_index(["task", "label"])
    assert set(rest.index) == set(REST_LABELS)
    assert rest["images"].to_dict() == {key: count for key, (_, count) in REST_LABELS.items()}
    assert rest["assigned"].all()
    assert len(table) == len(before) + len(rest)
    of_cluster = meant(table[table["split"] == "train"])
    assert of_cluster[rest.loc[("lone", "pilz"), "cluster"]] == REST_LABELS["lone", "pilz"][0]
    # the image shows what another label of the same person shows, who yet told the two apart
    anna = table[table["task"] == "anna"].set_index("label")
    assert REST_LABELS["anna", "single"][0] in {KIND.get(label) for label in anna.index}
    assert anna.loc[anna["clustered"], "cluster"].is_unique


def test_drawn_tasks_have_no_names(finished: Path) -> None:
    """Those who wrote none have none, and the paths of benchmark images, which hold their class, go nowhere."""
    assert store.read_table(finished / paths.TASK_NAMES, TASK_NAMES).empty
    assert store.read_table(finished / paths.IMAGE_NAMES, IMAGE_NAMES).empty
    table, tasks = listing(finished), store.read_table(finished / paths.MERGED_TASKS, schemas.ASSIGNMENTS)
    assert set(table["split"]) == {"train"}
    assert [*zip(table["task"], table["label"], strict=True)] == [
        (str(task), str(label)) for task, label in zip(tasks["task_id"], tasks["local_label"], strict=True)
    ]
    assert not table["assigned"].any()


# what they tell people is called as people called it
SHOWING = {"assign", "confusions"}


def test_names_are_seen_only_by_those_who_show_or_weigh_them() -> None:
    for stage in STAGES:
        files = listed(stage, "deps")
        assert ("data/names/labels.parquet" in files) == (stage in SHOWING | {"corrections", "label_merged", "round"})
        assert ("data/names/images.parquet" in files) == (stage in {"assign", "report"})
        assert ("results/labels.csv" in files) == (stage == "report")
        assert ("data/manifest/test.parquet" in files) == (stage in {"assign", "confusions", "evaluate"})


def test_images_whose_features_are_not_given(people_copied: Path) -> None:
    """Who brings features needs those of training images alone; then the other tasks are not assigned."""
    Path("data/raw/features").mkdir(parents=True)
    val = store.read_table(paths.VAL, schemas.MANIFEST)
    ids, features = feature_tables.read_features(paths.FEATURES)
    some = val["image_id"].iloc[1:].to_numpy()
    own = pd.DataFrame({"image_id": [*ids, *some], "feature": [*features, *features[: len(some)]]})
    own.to_parquet("data/raw/features/own.parquet")
    change(Path("params.yaml"), {"extract.features": "own.parquet"})
    run_stages("assign")
    table = listing(Path())
    names = store.read_table(paths.TASK_NAMES, TASK_NAMES).set_index("task_id")["task"]
    first = table[table["task"] == names[val["task_id"].iloc[0]].iloc[0]]
    assert set(first["split"]) == {"val"}
    assert (first["note"] == UNKNOWN).all()
    assert not first["assigned"].any()
    assert table.loc[table["split"] == "val", "assigned"].sum() == 3 * val["task_id"].nunique() - 3
    assert (table.loc[table["split"] == "test", "note"] == UNKNOWN).all()
    assert table.loc[table["split"] == "train", "clustered"].any()


def test_images_that_look_like_another_label_of_their_task_are_listed(people_copied: Path) -> None:
    """By features of the initial embedding, whatever those of rounds say."""
    manifest, files = read_manifest(paths.TRAIN), store.read_table(paths.IMAGE_NAMES, IMAGE_NAMES)
    rng, labels = np.random.default_rng(0), manifest["local_label"].to_numpy().copy()
    swapped = rng.permutation(len(manifest))[:4]
    labels[swapped] = (labels[swapped] + 1) % 3
    tasks = pd.factorize(manifest["task_id"])[0]
    features = 5 * rng.normal(size=(tasks.max() + 1, 3, 8))[tasks, labels] + rng.normal(size=(len(manifest), 8))
    order = np.argsort(manifest["image_id"].to_numpy())
    batches = [(manifest["image_id"].to_numpy()[order], features[order].astype(np.float32))]
    feature_tables.write_features(paths.FEATURES, batches, 8, stage="extract", params={})
    run_stages("assign")
    table = read_text_csv(paths.WRONG_LABELS, WRONG_LABELS)
    paths_of = files.set_index("image_id")["path"]
    sure = table[table["probability"] > 50]
    assert set(sure["path"]) == {paths_of[image] for image in manifest["image_id"].to_numpy()[swapped]}
    names = store.read_table(paths.TASK_NAMES, TASK_NAMES).set_index(["task_id", "local_label"])["label"]
    told = sure.set_index("image_id")["other"]
    for row in swapped.tolist():
        assert told[manifest["image_id"][row]] == names[(manifest["task_id"][row], labels[row])]


def test_data_that_changed_meanwhile(people_copied: Path) -> None:
    (Path("mine") / PEOPLE[5]).rename(Path("mine/zoe"))
    shutil.rmtree(min(Path("mine/zoe").iterdir()))
    message = r"^data\.root: its 77 labels are no longer the 78 .* rerun images"
    with pytest.raises(MelaError, match=message):
        run_stages("names")


def test_names_that_are_missing() -> None:
    labels = pd.DataFrame({"task_id": [0, 0], "local_label": [0, 1]})
    names = pd.DataFrame({"task_id": [0], "local_label": [0], "task": ["anna"], "label": ["pilz"]})
    message = r"^names: label 1 of task 0 has no name"
    with pytest.raises(MelaError, match=message):
        with_names(labels, names)
    assert with_names(labels, names.head(0))[["task", "label"]].to_numpy().tolist() == [["0", "0"], ["0", "1"]]
    given = pd.DataFrame({"task_id": np.array([1]), "local_label": np.array([0])})
    with pytest.raises(MelaError, match=r"rerun images$"):
        names_of_labels(names, given)


def test_whose_the_tasks_are() -> None:
    tasks = pd.DataFrame({"task_id": [7, 7, 3, 3], "local_label": [0, 1, 0, 1], "source": ["ann", "ann", "bob", "bob"]})
    found = sources_of_tasks(tasks, tasks)
    assert found.to_dict("list") == {"task_id": [3, 7], "source": ["bob", "ann"]}
    for unknown in (None, tasks.drop(columns="source")):
        assert sources_of_tasks(unknown, tasks).empty
    with pytest.raises(MelaError, match=r"data\.root: its 2 tasks are no longer the 1 that .* rerun images"):
        sources_of_tasks(tasks, tasks.head(2))


def test_drawn_tasks_and_folders_have_no_sources(finished: Path, of_people: Path) -> None:
    for folder in (finished, of_people):
        assert store.read_table(folder / paths.TASK_SOURCES, TASK_SOURCES).empty
