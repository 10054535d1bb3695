"""Which classes are taken for which: against plain loops, and against the accuracies of the same run."""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from mela.errors import MelaError
from mela.evaluation.confusions import IMAGES, PAIRS, confused_labels, confusions
from mela.io import schemas, store
from mela.io.name_tables import IMAGE_NAMES, TASK_NAMES
from mela.io.text_tables import read_text_csv
from stages import confusions as confusions_stage
from stages.common import paths
from tests.helpers.project import change, run_stages


def drawn(seed: int = 0, n_tasks: int = 60) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Predictions, manifest and truth: tasks of three of eight classes, which are often taken for the next one."""
    rng = np.random.default_rng(seed)
    truth = pd.DataFrame({"image_id": np.arange(80), "class": [f"class {number % 8}" for number in range(80)]})
    rows = []
    for task in range(n_tasks):
        for label, kind in enumerate(rng.permutation(8)[:3]):
            images = rng.permutation(np.flatnonzero(np.arange(80) % 8 == kind))[:5]
            rows += [(task, image, label, int(rng.integers(3)) if rng.random() < 0.4 else label) for image in images]
    table = pd.DataFrame(rows, columns=["task_id", "image_id", "local_label", "predicted"])
    return table.assign(setting="5_shot"), table[["task_id", "image_id", "local_label"]], truth


def test_equal_to_plain_loops() -> None:
    predictions, manifest, truth = drawn()
    kinds = dict(zip(truth["image_id"], truth["class"], strict=True))
    errors, queries, mistaken = Counter(), Counter(), Counter()
    for _, task in predictions.groupby("task_id"):
        of_label = {label: kinds[rows["image_id"].iloc[0]] for label, rows in task.groupby("local_label")}
        for row in task.itertuples():
            own, other = of_label[row.local_label], of_label[row.predicted]
            queries.update((own, present) for present in of_label.values() if present != own)
            if own != other:
                errors[own, other] += 1
                mistaken[own, other, row.image_id] += 1
    pairs, images = confusions(predictions, manifest, truth)
    assert {(row["class"], row.taken_for): row.errors for _, row in pairs.iterrows()} == errors
    assert all(row.queries == queries[row["class"], row.taken_for] for _, row in pairs.iterrows())
    lower = [
        binomtest(row.errors, row.queries).proportion_ci(method="wilson").low for row in pairs.itertuples(index=False)
    ]
    assert lower == sorted(lower, reverse=True)
    first = [(row["class"], row.taken_for) for _, row in pairs.head(PAIRS).iterrows()]
    assert [*dict.fromkeys(zip(images["class"], images["taken_for"], strict=True))] == first
    for (own, other), rows in images.groupby(["class", "taken_for"]):
        known = {image: count for (*pair, image), count in mistaken.items() if tuple(pair) == (own, other)}
        assert rows["times"].tolist() == sorted(known.values(), reverse=True)[:IMAGES]
        assert all(known[row.image_id] == row.times for row in rows.itertuples())


def test_labels_of_one_class_are_not_confused() -> None:
    """A person may have divided a class, and then each half is rightly taken for the other."""
    truth = pd.DataFrame({"image_id": range(6), "class": ["a", "a", "a", "a", "b", "b"]})
    manifest = pd.DataFrame({"task_id": 0, "image_id": range(6), "local_label": [0, 0, 1, 1, 2, 2]})
    predictions = manifest.assign(predicted=[1, 2, 0, 1, 2, 0], setting="1_shot")
    pairs, _ = confusions(predictions, manifest, truth)
    found = [(row["class"], row.taken_for, row.errors, row.queries) for _, row in pairs.iterrows()]
    assert sorted(found) == [("a", "b", 1, 4), ("b", "a", 1, 2)]


def test_a_wrong_image_does_not_name_a_label() -> None:
    truth = pd.DataFrame({"image_id": range(6), "class": ["a", "a", "b", "b", "b", "a"]})
    manifest = pd.DataFrame({"task_id": 0, "image_id": range(6), "local_label": [0, 0, 0, 1, 1, 1]})
    pairs, _ = confusions(manifest.assign(predicted=[0, 0, 1, 1, 1, 1], setting="1_shot"), manifest, truth)
    assert pairs[["class", "taken_for", "errors", "queries"]].to_numpy().tolist() == [["a", "b", 1, 3]]


def test_without_truth_or_errors_there_are_none() -> None:
    predictions, manifest, truth = drawn()
    right = predictions.assign(predicted=predictions["local_label"])
    for given in [
        (predictions, manifest, truth.head(0)),
        (predictions.head(0), manifest, truth),
        (right, manifest, truth),
    ]:
        pairs, images = confusions(*given)
        assert (len(pairs), len(images)) == (0, 0)
        assert (list(pairs.columns), list(images.columns)) == (schemas.CONFUSIONS.names, schemas.MISTAKEN.names)


def test_errors_are_those_of_the_accuracy(finished: Path) -> None:
    predictions = store.read_table(finished / paths.PREDICTIONS, schemas.PREDICTIONS)
    accuracies = store.read_table(finished / paths.PER_TASK, schemas.ACCURACIES)
    assert set(predictions["setting"]) == {"5_shot"}
    right = (predictions["predicted"] == predictions["local_label"]).groupby(
        [predictions["model"], predictions["task_id"]]
    )
    own = accuracies[(accuracies["split"] == "test") & (accuracies["setting"] == "5_shot")]
    expected = own.set_index(["model", "task_id"])["accuracy"].sort_index()
    np.testing.assert_allclose(100 * right.mean().sort_index(), expected)
    pairs = read_text_csv(finished / paths.CONFUSIONS, schemas.CONFUSIONS)
    merged = predictions[predictions["model"] == "merged"]
    assert pairs["errors"].sum() == (merged["predicted"] != merged["local_label"]).sum()
    assert (pairs["errors"] <= pairs["queries"]).all()


def test_they_are_on_the_page_with_pictures(finished: Path) -> None:
    pairs = read_text_csv(finished / paths.CONFUSIONS, schemas.CONFUSIONS)
    page = (finished / paths.PAGE).read_text(encoding="utf-8")
    assert page.count('<img class="mistaken" src="data:image/png;base64,') == PAIRS
    first = pairs.iloc[0]
    assert f'alt="Images of {first["class"]} that were taken for {first["taken_for"]}"' in page


def test_labels_of_people_are_told_as_they_wrote_them(of_people: Path) -> None:
    """Nobody knows the classes of what people have sorted, and their folders tell which images were mistaken."""
    names = store.read_table(of_people / paths.TASK_NAMES, TASK_NAMES).set_index(["task_id", "local_label"])
    predictions = store.read_table(of_people / paths.PREDICTIONS, schemas.PREDICTIONS)
    own = predictions[predictions["model"] == "merged"]
    written = names["label"] + " (" + names["task"] + ")"
    kinds = written[pd.MultiIndex.from_frame(own[["task_id", "local_label"]])].to_numpy()
    taken = written[pd.MultiIndex.from_frame(own[["task_id", "predicted"]])].to_numpy()
    errors = Counter((one, other) for one, other in zip(kinds, taken, strict=True) if one != other)
    pairs = read_text_csv(of_people / paths.CONFUSIONS, schemas.CONFUSIONS)
    assert {(row["class"], row.taken_for): row.errors for _, row in pairs.iterrows()} == errors
    assert len(errors) > 0
    assert all(row.queries == (kinds == row["class"]).sum() for _, row in pairs.iterrows())
    mistaken = read_text_csv(of_people / paths.MISTAKEN, schemas.MISTAKEN)
    files = store.read_table(of_people / paths.IMAGE_NAMES, IMAGE_NAMES).set_index("image_id")["path"]
    for _, row in mistaken.iterrows():
        task, label = Path(files[row.image_id]).parts[:2]
        assert row["class"] == f"{label} ({task})"
    page = (of_people / paths.PAGE).read_text(encoding="utf-8")
    shown = page[page.index('<table id="confusions">') :].partition("</table>")[0]
    assert shown.count('<img class="mistaken" src="data:image/png') == mistaken.groupby(["class", "taken_for"]).ngroups
    assert shown.count("<bdi>") == len(mistaken)


def test_what_people_wrote_gives_no_orders_to_the_terminal(
    people_copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = store.read_table(paths.TASK_NAMES, TASK_NAMES)
    hostile = names.assign(label="\x1b[31mred\nerror: fake " + names["label"])
    store.write_table(paths.TASK_NAMES, hostile, TASK_NAMES, stage="names", params={})
    confusions_stage.main()
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert "\x1b" not in said
    assert "is most often taken for" in said
    run_stages("report")
    page = paths.PAGE.read_text(encoding="utf-8")
    assert "\x1b" not in page


def test_a_label_that_nobody_named_is_told_by_its_number() -> None:
    predictions, manifest, _ = drawn()
    pairs, _ = confused_labels(predictions, manifest, TASK_NAMES.empty_table().to_pandas())
    wrong = predictions[predictions["predicted"] != predictions["local_label"]]
    expected = Counter(
        (f"{row.local_label} ({row.task_id})", f"{row.predicted} ({row.task_id})") for row in wrong.itertuples()
    )
    assert {(row["class"], row.taken_for): row.errors for _, row in pairs.iterrows()} == expected
    # each label of these tasks has five queries
    assert set(pairs["queries"]) == {5}


def test_a_label_without_a_name_among_named_ones_is_an_error() -> None:
    predictions, manifest, _ = drawn()
    labels = predictions[["task_id", "local_label"]].drop_duplicates()
    names = labels.assign(task="anna", label=labels["local_label"].astype(str))
    with pytest.raises(MelaError, match="has no name; rerun names"):
        confused_labels(predictions, manifest, names.iloc[1:])


@pytest.mark.slow
def test_they_are_of_the_embedding_in_use(copied: Path) -> None:
    before = paths.CONFUSIONS.read_bytes()
    change(Path("params.yaml"), {"use": "pruned"})
    run_stages("confusions")
    assert paths.CONFUSIONS.read_bytes() != before


@pytest.mark.slow
def test_with_fewer_images_it_is_of_as_many_as_there_are(copied: Path) -> None:
    change(Path("params.yaml"), {"evaluate.shots": [1, 99]})
    run_stages("evaluate")
    assert set(store.read_table(paths.PREDICTIONS, schemas.PREDICTIONS)["setting"]) == {"1_shot"}
