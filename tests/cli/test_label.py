"""`mela label`: the labels of the pipeline and of the estimator, for tables that anybody wrote."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import adjusted_rand_score

from mela.io import schemas, store
from mela.labeling.merge_labeler import MergeLabeler
from stages.common import paths
from tests.helpers import commands
from tests.helpers.bad_input import Change, cell

mela = partial(commands.mela, "label")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Forty tasks, each with three of six classes, five images each; as arrays, as tables, and as text."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    centers = rng.normal(size=(6, 4)) * 4
    truth = np.concatenate([rng.permutation(6)[:3] for _ in range(40)]).repeat(5)
    features = centers[truth] + rng.normal(size=(600, 4))
    numbers, local_labels = np.arange(40).repeat(15), np.tile([0, 1, 2], 40).repeat(5)
    tasks = pd.DataFrame({"task_id": numbers, "image_id": np.arange(600), "local_label": local_labels})
    np.save("truth.npy", truth)
    np.save("features.npy", features)
    pd.DataFrame({"image_id": np.arange(600), "feature": list(features)}).to_parquet("features.parquet")
    tasks.to_csv("tasks.csv", index=False)
    tasks.to_parquet("tasks.parquet")
    return tmp_path


def expected_labels() -> np.ndarray:
    tasks = pd.read_parquet("tasks.parquet")
    return MergeLabeler().fit(np.load("features.npy"), tasks["local_label"], tasks["task_id"]).labels_


def same_partition(one: Any, other: Any) -> bool:
    return float(adjusted_rand_score(one, other)) == 1


def test_it_gives_the_estimators_labels(folder: Path) -> None:
    done = mela("features.parquet", "tasks.csv", "--out", "found.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(
        r"found\.csv: 600 images, 6 clusters\n"
        r"found_tasks\.csv: 120 local labels, 100\.0% of tasks clustered\n"
        r"pair precision: (100\.0|9\d\.\d)% ± \d\.\d \(standard error\), judged by the tasks alone\n"
        r"expected adjusted Rand index: (1\.00|0\.9\d), judged by the tasks and the features\n",
        done.stdout,
    ), done.stdout
    labels, clusters = pd.read_csv("found.csv"), pd.read_csv("found_tasks.csv")
    assert list(labels.columns) == ["image_id", "label"]
    assert list(clusters.columns) == ["task_id", "local_label", "cluster"]
    assert labels["image_id"].tolist() == list(range(600))
    assert same_partition(labels["label"], expected_labels())
    assert same_partition(labels["label"], np.load("truth.npy"))
    whole = pd.read_csv("tasks.csv").merge(clusters, on=["task_id", "local_label"])
    assert (whole["cluster"] == labels["label"]).all()


def test_tasks_of_one_label_are_labelled_and_counted(folder: Path) -> None:
    rows = pd.read_csv("tasks.csv")
    # of task 2 one label stays, of task 5 one image
    rows = rows[(rows["task_id"] != 2) | (rows["local_label"] == 1)]
    rows = rows[(rows["task_id"] != 5) | (rows.index == rows.index[rows["task_id"] == 5][0])]
    rows.to_csv("tasks.csv", index=False)
    done = mela("features.parquet", "tasks.csv", "--out", "found.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 of 40 tasks have a single class; they are labelled, but do not tell which classes differ" in done.stdout
    labels = pd.read_csv("found.csv")
    assert labels["image_id"].tolist() == rows["image_id"].tolist()
    assert same_partition(labels["label"], np.load("truth.npy")[rows["image_id"]])


@pytest.mark.parametrize("seed", [-1, 2**32, 10**21])
def test_a_seed_out_of_range(folder: Path, seed: int) -> None:
    done = mela("features.npy", "tasks.csv", "--seed", seed)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: --seed: expected an integer from 0 to {2**32 - 1}, got {seed}; give another\n"
    assert not list(folder.glob("labels*"))


@pytest.mark.parametrize("name", ["", "/"])
def test_a_folder_in_place_of_a_name(folder: Path, name: str) -> None:
    done = mela("features.npy", "tasks.csv", "--out", name)
    assert done.returncode == 1
    assert re.fullmatch(r"error: .*: expected a name that ends in .parquet or .csv; give another\n", done.stderr)


@pytest.mark.parametrize(("option", "value"), [("--q", 5), ("--n-clusters", 100)])
def test_what_has_no_effect_is_said(folder: Path, option: str, value: int) -> None:
    line = f"{option} has no effect, since task classes are merged; it is for --no-merge\n"
    plain = mela("features.npy", "tasks.csv", "--out", "a.csv")
    done = mela("features.npy", "tasks.csv", "--out", "b.csv", option, value)
    assert done.stdout == line + plain.stdout.replace("a.csv", "b.csv").replace("a_tasks", "b_tasks")
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    pruned = mela("features.npy", "tasks.csv", "--no-merge", "--n-clusters", 20, "--q", 5)
    assert pruned.returncode == 0
    assert "has no effect" not in plain.stdout + pruned.stdout


def wide() -> None:
    columns = {f"f{i}": column for i, column in enumerate(np.load("features.npy").T)}
    pd.DataFrame({"f_note": "x", "image_id": np.arange(600), **columns}).to_parquet("other.parquet")


def fixed(kind: pa.DataType) -> Callable[[], None]:
    def write() -> None:
        values = np.load("features.npy")
        lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), 4).cast(pa.list_(kind, 4))
        pq.write_table(pa.table({"feature": lists, "image_id": np.arange(600)}), "other.parquet", row_group_size=100)

    return write


def shuffled() -> None:
    pd.read_parquet("features.parquet").sample(frac=1, random_state=0).to_parquet("other.parquet")


@pytest.mark.parametrize(
    "write",
    [wide, fixed(pa.float32()), fixed(pa.float64()), shuffled],
    ids=["columns", "float32", "float64", "other order"],
)
def test_all_forms_of_features_give_the_same(folder: Path, write: Callable[[], None]) -> None:
    write()
    pd.read_csv("tasks.csv").to_csv("tasks.tsv", sep="\t", index=False)
    forms = [
        ("features.npy", "tasks.csv", "a"),
        ("other.parquet", "tasks.parquet", "b"),
        ("features.npy", "tasks.tsv", "c"),
    ]
    for features, tasks, out in forms:
        done = mela(features, tasks, "--out", f"{out}.csv")
        assert done.returncode == 0, done.stderr
    pd.testing.assert_frame_equal(pd.read_csv("a.csv"), pd.read_csv("b.csv").sort_values("image_id", ignore_index=True))
    assert Path("a_tasks.csv").read_bytes() == Path("b_tasks.csv").read_bytes() == Path("c_tasks.csv").read_bytes()


def test_ids_and_labels_keep_their_kind(folder: Path) -> None:
    features, tasks = pd.read_parquet("features.parquet"), pd.read_parquet("tasks.parquet")
    features["image_id"] = [f"img/{number:03}.png" for number in features["image_id"]]
    features.to_parquet("features.parquet")
    tasks["image_id"] = features["image_id"]
    tasks["task_id"] = pd.Categorical([f"anna {number}" for number in tasks["task_id"]])
    tasks.assign(note=1.5).to_parquet("tasks.parquet")
    done = mela("features.parquet", "tasks.parquet", "--out", "x.parquet", "--tasks-out", "sub/y.csv")
    assert done.returncode == 0, done.stderr
    labels = pd.read_parquet("x.parquet")
    assert sorted(labels["image_id"]) == sorted(features["image_id"])
    assert labels["label"].dtype == np.int64
    clusters = pd.read_csv("sub/y.csv")
    assert set(clusters["task_id"]) == set(tasks["task_id"])
    assert clusters["local_label"].dtype == np.int64


def test_no_name_is_a_formula(folder: Path) -> None:
    tasks = pd.read_parquet("tasks.parquet")
    tasks["task_id"] = [f"=person({number})" for number in tasks["task_id"]]
    tasks["local_label"] = [f"@label\r{number}" for number in tasks["local_label"]]
    tasks.to_parquet("tasks.parquet")
    done = mela("features.npy", "tasks.parquet", "--out", "x.csv")
    assert done.returncode == 0, done.stderr
    clusters = pd.read_csv("x_tasks.csv")
    assert clusters["task_id"].str.startswith("'=person(").all()
    assert set(clusters["local_label"]) == {f"'@label\r{number}" for number in range(3)}
    assert clusters["cluster"].dtype == np.int64
    mela("features.npy", "tasks.parquet", "--out", "x.parquet")
    assert pd.read_parquet("x_tasks.parquet")["task_id"].str.startswith("=person(").all()


def test_text_and_integers_are_matched_as_text(folder: Path) -> None:
    """Such as ids that are integers to csv and text to whoever wrote the features."""
    features = pd.read_parquet("features.parquet")
    features.assign(image_id=features["image_id"].astype(str)).to_parquet("features.parquet")
    done = mela("features.parquet", "tasks.csv")
    assert done.returncode == 0, done.stderr
    assert pd.read_parquet("labels.parquet")["image_id"].tolist() == [str(number) for number in range(600)]


def test_leading_zeros_are_text(folder: Path) -> None:
    tasks = pd.read_csv("tasks.csv")
    tasks.assign(local_label=tasks["local_label"].map("0{}".format)).to_csv("tasks.csv", index=False)
    assert mela("features.npy", "tasks.csv").returncode == 0
    assert set(pd.read_parquet("labels_tasks.parquet")["local_label"]) == {"00", "01", "02"}


def test_tasks_that_collide_have_no_cluster(folder: Path) -> None:
    """A task of two labels with images of one class: one nearest centroid."""
    rows = pd.read_csv("tasks.csv")
    seen = np.flatnonzero(np.load("truth.npy") == 0)[:10]
    extra = pd.DataFrame({"task_id": 99, "image_id": seen, "local_label": [0] * 5 + [1] * 5})
    pd.concat([rows, extra]).to_csv("tasks.csv", index=False)
    done = mela("features.npy", "tasks.csv", "--no-merge", "--n-clusters", 12, "--q", 2.5, "--seed", 1)
    assert done.returncode == 0, done.stderr
    clusters = pd.read_parquet("labels_tasks.parquet")
    assert clusters.dtypes["cluster"] == "int64" or clusters["cluster"].isna().any()
    assert clusters.loc[clusters["task_id"] == 99, "cluster"].isna().all()
    assert "% of tasks clustered" in done.stdout


@pytest.mark.parametrize(
    ("options", "labels_file", "tasks_file"),
    [
        (["--merge"], paths.MERGED_LABELS, paths.MERGED_TASKS),
        (["--no-merge", "--n-clusters", 120, "--q", 6.5], paths.PRUNED_LABELS, paths.PRUNED_TASKS),
    ],
    ids=["merged", "pruned"],
)
def test_it_gives_what_the_stage_gives(options: list[Any], labels_file: Path, tasks_file: Path, copied: Path) -> None:
    done = mela(paths.FEATURES, paths.TRAIN, *options, "--out", "own.parquet")
    assert done.returncode == 0, done.stderr
    labels, own = store.read_table(labels_file, schemas.LABELS), pd.read_parquet("own.parquet")
    pd.testing.assert_frame_equal(own, labels, check_dtype=False)
    stage = store.read_table(tasks_file, schemas.ASSIGNMENTS)
    stage["cluster"] = stage["cluster"].astype("Int64").mask(~stage.pop("clustered"))
    own_tasks = pd.read_parquet("own_tasks.parquet").astype({"cluster": "Int64"})
    pd.testing.assert_frame_equal(own_tasks, stage, check_dtype=False)


def features(**columns: Any) -> Callable[[], object]:
    def spoil() -> None:
        table = pd.read_parquet("features.parquet")
        pd.DataFrame({name: table[name] for name in table} | columns).to_parquet("features.parquet")

    return spoil


def values(row: int, value: Any) -> Callable[[], object]:
    def spoil() -> None:
        table = pd.read_parquet("features.parquet")
        table.at[row, "feature"] = value
        table.to_parquet("features.parquet")

    return spoil


def cells(change_rows: Change) -> Callable[[], object]:
    return lambda: change_rows(pd.read_csv("tasks.csv", dtype=object)).to_csv("tasks.csv", index=False)


NPY = "features.npy tasks.csv"


class Bad(NamedTuple):
    """What is said of the input, what is wrong with it, and the arguments of the command."""

    message: str
    spoil: Callable[[], object] = lambda: None
    arguments: str = "features.parquet tasks.csv"


TOO_MANY = "--n-clusters is {}, but the tasks have only 120 classes .*"
CASES: dict[str, Bad] = {
    "no features": Bad(
        "features.parquet: expected a Parquet file, got .*; write it again", Path("features.parquet").unlink
    ),
    "another file": Bad(
        "tasks.csv: expected features in a file .parquet or .npy, got '.csv'.*", arguments="tasks.csv tasks.csv"
    ),
    "no column of features": Bad(
        "features.parquet: expected the column 'feature', a list of numbers, or columns 'f0', 'f1' and so on, got "
        "'image_id'; name them so",
        lambda: pd.DataFrame({"image_id": [1]}).to_parquet("features.parquet"),
    ),
    "no image ids": Bad(
        "features.parquet: expected the column 'image_id', got 'f0'; add the column",
        lambda: pd.DataFrame({"f0": [1.0]}).to_parquet("features.parquet"),
    ),
    "no rows": Bad(
        "features.parquet: expected features of some images, got none; add rows",
        lambda: pd.DataFrame({"image_id": np.empty(0, dtype=int), "f0": np.empty(0)}).to_parquet("features.parquet"),
    ),
    "infinity": Bad(
        r"features.parquet, row 8 \(image 7\): expected finite features, got NaN or infinity; correct it "
        r"\(1 of 600 rows are like this\)",
        values(7, [1.0, float("inf"), 0.0, 0.0]),
    ),
    "NaN, which pandas writes as nothing": Bad(
        "features.parquet, row 8: expected a number in the column 'feature', got none or NaN; fill it",
        values(7, [1.0, float("nan"), 0.0, 0.0]),
    ),
    "a row without features": Bad(
        "features.parquet, row 8: expected 4 features as in row 1, got no list; give all images as many",
        values(7, None),
    ),
    "a shorter row": Bad(
        "features.parquet, row 8: expected 4 features as in row 1, got 1; give all images as many", values(7, [1.0])
    ),
    "words for features": Bad(
        "features.parquet: expected numbers in the column 'feature', got .*string; convert the column",
        features(feature=[["a"]] * 600),
    ),
    "numbers for lists": Bad(
        "features.parquet: expected lists of numbers in the column 'feature', got double; convert the column",
        features(feature=1.5),
    ),
    "an image twice": Bad(
        "features.parquet, row 4: expected every image once, got 1 again; remove a row",
        features(image_id=[0, 1, 2, 1, *range(4, 600)]),
    ),
    "fractions for ids": Bad(
        "features.parquet, row 1: expected text or integers as image_id, got double; convert the column",
        features(image_id=0.5),
    ),
    "an array of three axes": Bad(
        r"features.npy: expected features \(images, dimensions\) of numbers, got shape \(2, 3, 4\) of float64; .*",
        lambda: np.save("features.npy", np.zeros((2, 3, 4))),
        NPY,
    ),
    "an array with NaN": Bad(
        r"features.npy, row 3, the first being row 0: expected finite features, got NaN or infinity; correct it \(1 .*",
        lambda: np.save("features.npy", np.where(np.arange(600)[:, None] == 3, np.nan, np.load("features.npy"))),
        NPY,
    ),
    "a pickle": Bad(
        r"features.npy: expected an array of features \(.npy\), got .*; save it again",
        lambda: np.save("features.npy", np.array([{}], dtype=object), allow_pickle=True),
        NPY,
    ),
    "no column of tasks": Bad(
        "tasks.csv: expected the column 'task_id', got 'image_id', 'local_label'; add the column",
        cells(lambda rows: rows.drop(columns="task_id")),
    ),
    "an empty table": Bad(
        "tasks.csv: expected one row per task and image, got an empty table; add rows", cells(lambda rows: rows[:0])
    ),
    "an empty cell": Bad(
        "tasks.csv, line 5: expected a local_label, got none; fill it or remove the row",
        cells(cell(3, "local_label", "")),
    ),
    "an image without features": Bad(
        r"tasks.csv, line 5: expected an image with features in features.parquet, got 1003 \(1 images .*",
        cells(cell(3, "image_id", "1003")),
    ),
    "an image with two labels": Bad(
        "tasks.csv, line 9: expected image 0 once in task 0, got the local labels 0, 1; remove one of the rows",
        cells(cell(7, "image_id", "0")),
    ),
    "an image twice in a task": Bad(
        "tasks.csv, line 5: expected image 0 once in task 0, got it again; remove one of the rows",
        cells(cell(3, "image_id", "0")),
    ),
    "another ending": Bad(
        "x.txt: expected a name that ends in .parquet or .csv; give another", arguments=f"{NPY} --out x.txt"
    ),
    "one file for both": Bad(
        "x.csv: expected two files, got one name for --out and --tasks-out; give another",
        arguments=f"{NPY} --out x.csv --tasks-out x.csv",
    ),
    "the tasks": Bad(
        r"--out: \S+/tasks.csv is the file tasks.csv, which this command reads; give another name",
        arguments=NPY + " --out ../{here}/tasks.csv",
    ),
    "a link to the tasks": Bad(
        "--out: link.csv is the file tasks.csv, which this command reads; give another name",
        lambda: Path("link.csv").symlink_to("tasks.csv"),
        f"{NPY} --out link.csv",
    ),
    "the features": Bad(
        "--tasks-out: features.parquet is the file features.parquet, which this command reads; give another name",
        arguments="features.parquet tasks.csv --out x.csv --tasks-out features.parquet",
    ),
    "tasks by the usual name of the second file": Bad(
        "--tasks-out: labels_tasks.csv is the file labels_tasks.csv, which this command reads; give another name",
        lambda: Path("tasks.csv").rename("labels_tasks.csv"),
        "features.npy labels_tasks.csv --out labels.csv",
    ),
    "more clusters than local labels": Bad(TOO_MANY.format("by default 300"), arguments=f"{NPY} --no-merge"),
    "more clusters than local labels, as asked for": Bad(
        TOO_MANY.format("121"), arguments=f"{NPY} --no-merge --n-clusters 121"
    ),
    "task classes of single samples": Bad(
        "merging: each of the 120 task classes has a single sample, .* or give --no-merge",
        lambda: pd.read_csv("tasks.csv").drop_duplicates(["task_id", "local_label"]).to_csv("tasks.csv", index=False),
        arguments=NPY,
    ),
    "no class in so many tasks": Bad(
        r"merging: found \d+ classes, 0 of them in --min-count=41 tasks or more, fewer than the 3 ways of task 0; "
        "lower --min-count, train the embedding longer, give more samples per class, or give --no-merge",
        arguments=f"{NPY} --min-count 41",
    ),
    "a negative q": Bad(
        "--q is -1.0, but must be a finite number .*", arguments=f"{NPY} --no-merge --n-clusters 20 --q -1"
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_bad_ends_in_one_line(name: str, folder: Path) -> None:
    bad = CASES[name]
    bad.spoil()
    before = sorted(Path().iterdir())
    done = mela(*bad.arguments.format(here=folder.name).split())
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(f"error: {bad.message}\n", done.stderr), done.stderr
    assert sorted(Path().iterdir()) == before


def test_it_keeps_to_corrections(folder: Path) -> None:
    mela("features.parquet", "tasks.csv", "--out", "plain.csv")
    plain = pd.read_csv("plain_tasks.csv")
    of_zero, of_one = (plain[plain["task_id"] == task].reset_index() for task in (0, 1))
    same = next((a, b) for a in range(3) for b in range(3) if of_zero["cluster"][a] != of_one["cluster"][b])
    Path("said.csv").write_text(
        "task,label,other_task,other_label,answer\n"
        f"0,{of_zero['local_label'][same[0]]},1,{of_one['local_label'][same[1]]},same\n"
    )
    done = mela("features.parquet", "tasks.csv", "--out", "found.csv", "--corrections", "said.csv")
    assert (done.returncode, done.stderr) == (0, "")
    found = pd.read_csv("found_tasks.csv").set_index(["task_id", "local_label"])["cluster"]
    assert found[0, of_zero["local_label"][same[0]]] == found[1, of_one["local_label"][same[1]]]

    with Path("said.csv").open("a") as file:
        file.write("7,0,99,1,different\n")
    done = mela("features.parquet", "tasks.csv", "--out", "found.csv", "--corrections", "said.csv")
    assert done.returncode == 1
    assert done.stderr == (
        "error: said.csv, line 3: expected a task with labels to be inferred, got '99'; correct its name\n"
    )
    done = mela("features.parquet", "tasks.csv", "--corrections", "none.csv")
    assert done.stderr == "error: --corrections: expected a file, found none at none.csv; correct the name\n"


def test_names_count_where_people_agree(folder: Path) -> None:
    """Each person has a look, which features alone do not see through."""
    tasks = pd.read_csv("tasks.csv")
    words = np.array(["oak", "maple", "birch", "willow", "larch", "hazel"])
    features, truth = np.load("features.npy"), np.load("truth.npy")
    rng = np.random.default_rng(0)
    people = rng.normal(size=(120, 4)).repeat(5, axis=0)
    np.save("features.npy", features + people)
    tasks["local_label"] = words[truth]
    tasks.to_csv("named.csv", index=False)

    def found(*more: str) -> tuple[float, str]:
        done = mela("features.npy", "named.csv", "--out", "found.csv", *more)
        assert (done.returncode, done.stderr) == (0, "")
        labels = pd.read_csv("found.csv").sort_values("image_id")["label"]
        return float(adjusted_rand_score(truth, labels)), done.stdout

    (plain, told), (named, lines) = found(), found("--names")
    assert "names of" not in told
    assert "names of 120 of 120 labels count, in 6 groups of alike ones\n" in lines
    assert named > 0.95 > 0.85 > plain
    assert "--names has no effect with --no-merge" in found("--names", "--no-merge", "--n-clusters", "20")[1]


def test_numbers_are_no_names(folder: Path) -> None:
    done = mela("features.npy", "tasks.csv", "--out", "found.csv", "--names")
    reason = "since people agree on them no more within clusters than elsewhere"
    assert f"names of labels do not count, {reason}\n" in done.stdout
    found = pd.read_csv("found.csv").sort_values("image_id")["label"]
    assert same_partition(found, expected_labels())
