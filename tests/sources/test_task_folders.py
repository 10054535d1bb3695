"""Independently labelled tasks, from a table or from folders."""

import os
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from mela.errors import MelaError
from mela.sources.duplicate_images import recorded, refuse_contradictions
from mela.sources.source import ImageSource
from mela.sources.splits_by_name import split_by_fractions
from mela.sources.task_folders import _draw_splits, natural_key, task_number, task_numbers, tasks
from tests.helpers.bad_input import cell

FRACTIONS = (0.5, 0.25, 0.25)
SPLIT_FRACTIONS = (0.64, 0.16, 0.2)
Row = tuple[object, ...]
COLUMNS = "task_id,local_label,path"
NO_TASK = "expected a task of two local labels with two images each, got none in 1 task"


def save(path: Path, grey: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (2, 2), grey).save(path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Images 0.png to 19.png, whose grey level is their number."""
    for i in range(20):
        save(tmp_path / "images" / f"{i}.png", i)
    return tmp_path / "images"


def read(
    root: Path, rows: Sequence[Row] | pd.DataFrame, columns: str = COLUMNS, *, shots: int = 1, seed: int = 0
) -> ImageSource:
    table = root.parent / "tasks.csv"
    pd.DataFrame(rows, columns=columns.split(",")).to_csv(table, index=False)
    return found(root, table, shots=shots, seed=seed)


def found(root: Path, table: Path | None = None, *, shots: int = 1, seed: int = 0) -> ImageSource:
    """Tasks of a table or of folders."""
    return tasks(root, table=table, shots=shots, split_fractions=FRACTIONS, seed=seed)


def simple_tasks(n_tasks: int, images: Sequence[Sequence[int]]) -> list[Row]:
    """Task i has the labels x and y, with two images each out of images[i]."""
    return [(f"t{t}", "xy"[k // 2], f"{images[t][k]}.png") for t in range(n_tasks) for k in range(4)]


def table_of(source: ImageSource) -> pd.DataFrame:
    assert source.tasks is not None
    return source.tasks


def test_given_roles_and_splits(root: Path) -> None:
    rows: list[Row] = [
        ("t10", "b", "3.png", "query", "test"),
        ("t10", "b", "2.png", "support", "test"),
        ("t10", "a", "5.png", "support", "test"),
        ("t10", "a", "4.png", "support", "test"),
        ("t10", "a", "./1.png", "query", "test"),
        ("t2", "10", "7.png", "support", "train"),
        ("t2", "10", "8.png", "query", "train"),
        ("t2", "9", "9.png", "query", "train"),
        ("t2", "9", "10.png", "support", "train"),
        ("t2", "11", "11.png", "support", "train"),
        ("t2", "11", "12.png", "query", "train"),
    ]
    source = read(root, rows, "task_id,local_label,path,role,split")
    assert source.classes is None
    assert source.sources == sorted(f"{i}.png" for i in (1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12))
    assert dict(zip(source.sources, source.splits, strict=True))["7.png"] == "train"
    assert source.splits.count("test") == 5
    assert [source.load(i).getpixel((0, 0)) for i in range(len(source))] == [int(s[:-4]) for s in source.sources]
    readable = table_of(source).assign(path=lambda t: [source.sources[i] for i in t["image_id"]])
    t2, t10 = task_number("t2"), task_number("t10")
    assert readable[["task_id", "local_label", "path", "role"]].to_numpy().tolist() == [
        [t2, 0, "10.png", "support"],
        [t2, 0, "9.png", "query"],
        [t2, 1, "7.png", "support"],
        [t2, 1, "8.png", "query"],
        [t2, 2, "11.png", "support"],
        [t2, 2, "12.png", "query"],
        [t10, 0, "5.png", "support"],
        [t10, 0, "4.png", "support"],
        [t10, 0, "1.png", "query"],
        [t10, 1, "2.png", "support"],
        [t10, 1, "3.png", "query"],
    ]
    assert [str(table_of(source)[column].dtype) for column in ("task_id", "image_id", "local_label")] == ["int64"] * 3


def test_parquet_with_integers_reads_like_csv(root: Path) -> None:
    rows = [(12, k // 2, f"{k}.png") for k in range(4)] + [(3, -(k // 2), f"{k + 4}.png") for k in range(4)]
    from_csv = read(root, rows)
    table = root.parent / "tasks.parquet"
    pd.DataFrame(rows, columns=["task_id", "local_label", "path"]).to_parquet(table)
    from_parquet = found(root, table)
    pd.testing.assert_frame_equal(table_of(from_csv), table_of(from_parquet))
    assert from_csv.sources == from_parquet.sources
    assert from_csv.splits == from_parquet.splits
    first = {from_csv.sources[i] for i in table_of(from_csv).query(f"task_id == {task_number('3')}")["image_id"]}
    assert first == {"4.png", "5.png", "6.png", "7.png"}


def test_words_that_look_like_missing_values_are_text(root: Path) -> None:
    rows = [("NA", label, f"{i}.png") for i, label in enumerate(["nan", "nan", "None", "None"])]
    assert table_of(read(root, rows))["local_label"].tolist() == [0, 0, 1, 1]


def test_ways_and_shots_may_differ(root: Path) -> None:
    sizes = {("s", "a"): 2, ("s", "b"): 5, ("w", "a"): 3, ("w", "b"): 4, ("w", "c"): 2}
    numbers = iter(range(20))
    rows = [(task, label, f"{next(numbers)}.png") for (task, label), size in sizes.items() for _ in range(size)]
    table = table_of(read(root, rows, shots=3))
    sizes_of = table.groupby(["role", "task_id", "local_label"], sort=False).size()
    assert sizes_of["support"].tolist() == [1, 3, 2, 3, 1]
    assert sizes_of["query"].tolist() == [1, 2, 1, 1, 1]


def test_drawn_roles_depend_on_the_task_and_the_seed_only(root: Path) -> None:
    rows: list[Row] = [(f"t{t}", "xy"[k // 5], f"{10 * t + k}.png") for t in range(2) for k in range(10)]

    def first_task(source: ImageSource) -> list[tuple[str, str]]:
        table = table_of(source).query(f"task_id == {task_number('t0')}")
        return [(source.sources[i], role) for i, role in zip(table["image_id"], table["role"], strict=True)]

    whole = first_task(read(root, rows, shots=2))
    assert first_task(read(root, rows[::-1], shots=2)) == whole
    assert first_task(read(root, rows[:10], shots=2)) == whole
    assert first_task(read(root, rows, shots=2, seed=1)) != whole
    # One shot is the first of two, as for tasks that are drawn from classes.
    assert [image for image, _ in first_task(read(root, rows, shots=1))] == [image for image, _ in whole]


def test_an_image_in_several_tasks_is_one_image(root: Path) -> None:
    rows = simple_tasks(2, [[0, 1, 2, 3], [3, 0, 1, 4]])
    source = read(root, rows)
    assert len(source) == 5
    assert len(table_of(source)) == 8
    assert table_of(source)["image_id"].value_counts().tolist() == [2, 2, 2, 1, 1]


def test_a_link_and_its_target_are_one_image(root: Path) -> None:
    (root / "link.png").symlink_to(root / "0.png")
    rows = [*simple_tasks(1, [[0, 1, 2, 3]]), ("u", "x", "link.png")]
    rows += [("u", "xyy"[k], f"{k + 4}.png") for k in range(3)]
    source = read(root, rows)
    assert len(source) == 7
    assert "link.png" not in source.sources


def test_tasks_that_share_images_stay_in_one_split(root: Path) -> None:
    # t0, t2 and t3 are connected through images 3 and 11; t1 and t4 stand alone.
    groups = [[0, 1, 2, 3], [4, 5, 6, 7], [3, 8, 9, 11], [11, 12, 13, 14], [15, 16, 17, 18]]
    seen = set()
    for seed in range(8):
        source = read(root, simple_tasks(5, groups), seed=seed)
        table = table_of(source).assign(split=[source.splits[i] for i in table_of(source)["image_id"]])
        assert (table.groupby("task_id")["split"].nunique() == 1).all()
        split_of = table.groupby("task_id", sort=False)["split"].first().tolist()
        assert split_of[0] == split_of[2] == split_of[3] == "train"
        assert sorted((split_of[1], split_of[4])) == ["test", "val"]
        seen.add(split_of[1])
    assert seen == {"test", "val"}


def test_tasks_of_a_person_stay_in_one_split(root: Path) -> None:
    # t0, t2 and t3 are connected by image 3 and by Ann
    groups = [[0, 1, 2, 3], [4, 5, 6, 7], [3, 8, 9, 11], [10, 12, 13, 14], [15, 16, 17, 18]]
    whose = {"t0": "bob", "t1": "cem", "t2": "ann", "t3": "ann", "t4": "dee"}
    rows = [(*row, whose[row[0]]) for row in simple_tasks(5, groups)]
    for seed in range(8):
        source = read(root, rows, f"{COLUMNS},source", seed=seed)
        table = table_of(source)
        assert (table["source"] == table["task"].map(whose)).all()
        split_of = table.groupby("task")["split"].first()
        assert split_of["t0"] == split_of["t2"] == split_of["t3"] == "train"
        assert {split_of["t1"], split_of["t4"]} == {"test", "val"}


def test_true_classes_are_those_of_images(root: Path) -> None:
    rows = [(*row, "odd" if int(row[2][:-4]) % 2 else "even") for row in simple_tasks(2, [[5, 0, 3, 2], [2, 1, 4, 7]])]
    # one label with a single image, which is no task's
    source = read(root, [*rows, ("t1", "z", "9.png", "odd")], f"{COLUMNS},class")
    assert "rest" in source.splits
    assert source.classes is not None
    numbers = [int(path[:-4]) for path in source.sources]
    assert [*source.classes] == ["odd" if number % 2 else "even" for number in numbers]
    assert "class" not in table_of(source), "labels are inferred without it"
    again = [*((*row, "even") for row in simple_tasks(2, [[0, 2, 4, 6], [6, 8, 10, 12]])), ("t1", "z", "0.png", "odd")]
    with pytest.raises(MelaError, match=r"line 10: expected one class for all rows of image '0\.png', got 'odd' after"):
        read(root, again, f"{COLUMNS},class")


@pytest.mark.parametrize("classes", [False, True])
def test_same_pixels_under_two_labels_are_refused_whether_classes_are_known_or_not(root: Path, classes: bool) -> None:
    save(root / "again.png", 3)
    rows = [
        ("t", "x", "0.png", "owl"),
        ("t", "x", "3.png", "owl"),
        ("t", "y", "again.png", "fox"),
        ("t", "y", "2.png", "fox"),
    ]
    given = pd.DataFrame(rows)[[0, 1, 2, *([3] if classes else [])]]
    source = recorded(read(root, given.to_numpy().tolist(), f"{COLUMNS},class" if classes else COLUMNS))
    for number in range(len(source)):
        source.load(number)
    with pytest.raises(MelaError, match=r"image 'again\.png': expected one label for the same pixels"):
        refuse_contradictions(source)


def test_drawn_splits_do_not_depend_on_the_order_of_rows(root: Path) -> None:
    # Two connected pairs of tasks, t0 with t1 and t2 with t3.
    rows = simple_tasks(4, [[0, 1, 2, 3], [3, 4, 5, 6], [7, 8, 9, 10], [10, 11, 12, 13]])
    forwards = [read(root, rows, seed=seed).splits for seed in range(8)]
    backwards = [read(root, rows[::-1], seed=seed).splits for seed in range(8)]
    assert forwards == backwards
    assert len({tuple(splits) for splits in forwards}) == 2


def test_folders_of_tasks(tmp_path: Path) -> None:
    for path in ("t10/a/0", "t10/a/1", "t10/b/0", "t10/b/1", "t2/a/0", "t2/a/1", "t2/b/0"):
        save(tmp_path / f"{path}.png")
    (tmp_path / "t2" / "b" / "1.png").symlink_to(tmp_path / "t10" / "a" / "0.png")
    (tmp_path / "notes.txt").touch()
    source = found(tmp_path, shots=5)
    assert len(source) == 7
    assert set(source.splits) == {"train"}
    table = table_of(source)
    own = table.query(f"task_id == {task_number('t2')}")["image_id"]
    assert {source.sources[i] for i in own} == {"t2/a/0.png", "t2/a/1.png", "t2/b/0.png", "t10/a/0.png"}
    assert table.groupby(["task_id", "local_label"])["role"].agg(list).tolist() == [["support", "query"]] * 4


def test_labels_that_no_task_can_be_learned_from_are_the_rest(tmp_path: Path) -> None:
    """Single images, and labels without another one beside them, are tasks of their own and disturb no other task."""
    numbers = {"anna": {"cat": 2, "dog": 2, "owl": 1}, "ben": {"cat": 3}, "carla": {"x": 2, "y": 2, "z": 3}}
    numbers |= {"dora": {"a": 4, "b": 1}}
    for task, labels in numbers.items():
        for label, count in labels.items():
            for image in range(count):
                save(tmp_path / f"root/{task}/{label}/{image}.png")
    source = tasks(tmp_path / "root", table=None, shots=1, split_fractions=(1.0, 0.0, 0.0), seed=0)
    table = table_of(source)
    sizes = table.groupby(["split", "task", "label"]).size().to_dict()
    assert sizes == {
        ("rest", "anna", "owl"): 1,
        ("rest", "ben", "cat"): 3,
        ("rest", "dora", "a"): 4,
        ("rest", "dora", "b"): 1,
        ("train", "anna", "cat"): 2,
        ("train", "anna", "dog"): 2,
        ("train", "carla", "x"): 2,
        ("train", "carla", "y"): 2,
        ("train", "carla", "z"): 3,
    }
    assert set(table.loc[table["split"] == "rest", "role"]) == {"support"}
    assert table.groupby(["task", "split"])["task_id"].nunique().eq(1).all()
    assert table["task_id"].nunique() == 5, "what is left of anna's labels is another task than hers"
    for _, own in table.groupby("task_id"):
        assert sorted(own["local_label"].unique()) == [*range(own["label"].nunique())]
    assert {path for path, split in zip(source.sources, source.splits, strict=True) if split == "rest"} == {
        "anna/owl/0.png",
        *(f"ben/cat/{image}.png" for image in range(3)),
        *(f"dora/a/{image}.png" for image in range(4)),
        "dora/b/0.png",
    }
    assert source.split_of_names == {"anna": "train", "carla": "train"}


def test_an_image_of_a_task_stays_there_though_it_is_the_rest_of_another(root: Path) -> None:
    rows = [*GOOD.drop(columns=["source", "class"]).itertuples(index=False), ("v", "a", "0.png", "support", "train")]
    source = read(root, rows, f"{COLUMNS},role,split")
    assert source.splits[list(source.sources).index("0.png")] == "train"
    assert table_of(source).query("task == 'v'")["split"].tolist() == ["rest"]
    assert len(table_of(source)) == len(rows)


@pytest.mark.parametrize(
    ("remove", "add", "expected"),
    [
        ("t/b", "t/c.png", r"expected <task>/<local label>/<image>, got 't/c\.png'"),
        ("t/b", "t/b/deeper/0.png", r"got 't/b/deeper/0\.png'"),
        ("t/b", "0.png", r"got '0\.png'"),
        ("t/b", "t/c/notes.txt", r"at least one image .*folder 't/c'"),
        ("t/b", None, rf"folder 't/a': {NO_TASK}"),
        ("t/b/0.png", None, f"{NO_TASK}; add lab"),
    ],
)
def test_bad_folders(tmp_path: Path, remove: str, add: str | None, expected: str) -> None:
    root = tmp_path / "root"
    for path in ("t/a/0.png", "t/a/1.png", "t/b/0.png", "t/b/1.png"):
        save(root / path)
    (root / remove).rename(tmp_path / "gone")
    if add is not None:
        (root / add).parent.mkdir(parents=True, exist_ok=True)
        os.link(root / "t/a/0.png", root / add)
    with pytest.raises(MelaError, match=expected) as caught:
        found(root)
    assert "\n" not in str(caught.value)


GOOD = pd.DataFrame(
    {
        "task_id": ["t"] * 4 + ["u"] * 4,
        "local_label": ["a", "a", "b", "b"] * 2,
        "path": [f"{i}.png" for i in range(8)],
        "role": ["support", "query"] * 4,
        "split": ["train"] * 4 + ["test"] * 4,
        "source": ["ann"] * 4 + ["bob"] * 4,
        "class": ["owl", "owl", "fox", "fox"] * 2,
    }
)


@pytest.mark.parametrize(
    ("column", "row", "value", "expected"),
    [
        ("role", 1, "suport", r"line 3: expected the role support or query, got 'suport'"),
        ("split", 1, "dev", r"line 3: expected the split train or val or test, got 'dev'"),
        ("task_id", 2, "", r"line 4: expected a task_id, got an empty cell"),
        ("local_label", 2, " ", r"line 4: expected a local_label, got an empty cell"),
        ("path", 2, "", r"line 4: expected a path, got an empty cell"),
        ("role", 2, "", r"line 4: expected a role, got an empty cell"),
        ("split", 3, "val", r"line 5: expected task 't' in one split, got 'val' after 'train'"),
        ("source", 1, "bob", r"line 3: expected one source for all rows of task 't', got 'bob' after 'ann'; give each"),
        ("source", 2, "", r"line 4: expected a source, got an empty cell"),
        ("class", 2, "", r"line 4: expected a class, got an empty cell"),
        ("path", 4, "0.png", r"line 6: expected image '0\.png' in one split, got 'test' after 'train'"),
        ("path", 1, "./0.png", r"line 3: expected an image once in task 't', got '\./0\.png' again"),
        ("role", 3, "support", r"line 4: expected at least one query image of local label 'b' in task 't', got none"),
        ("role", 4, "query", r"line 6: expected at least one support image of local label 'a' in task 'u', got none"),
        ("local_label", 3, "c", r"tasks\.csv: expected tasks in the split 'train', got none; add them"),
        ("path", 7, "/etc/x.png", r"line 9: expected a path below data\.root \(.*\), got '/etc/x\.png'"),
        ("path", 7, "C:/x.png", r"line 9: expected a path below data\.root"),
        ("path", 7, "a/../7.png", r"line 9: expected a path below data\.root"),
        ("path", 7, "outside.png", r"line 9: expected a file below data\.root .*, got 'outside\.png', a link to "),
        ("path", 7, "nowhere.png", r"line 9: expected the file 'nowhere\.png' in .*, got no such file"),
        ("path", 7, "nul\0.png", r"line 9: expected the file 'nul\\x00\.png' in .*, got no such file"),
        ("path", 7, "folder.png", r"line 9: expected a file, got the folder 'folder\.png'"),
        ("path", 7, "7.txt", r"line 9: expected the path of an image \(\.avif \.bmp .*\), got '7\.txt'"),
    ],
)
def test_bad_cell(root: Path, column: str, row: int, value: str, expected: str) -> None:
    save(root.parent / "outside.png")
    (root / "outside.png").symlink_to(root.parent / "outside.png")
    (root / "folder.png").mkdir()
    read(root, GOOD, ",".join(GOOD))
    changed = cell(row, column, value)(GOOD)
    with pytest.raises(MelaError, match=expected) as caught:
        read(root, changed, ",".join(GOOD))
    assert str(caught.value).startswith(str(root.parent / "tasks.csv"))
    assert "\n" not in str(caught.value)


ALL_VAL = f"{COLUMNS},split\nt,a,0.png,val\nt,a,1.png,val\nt,b,2.png,val\nt,b,3.png,val\n"
WITHOUT_LABELS = pd.DataFrame({"task_id": [1], "path": ["0.png"]})
WITHOUT_A_TASK = pd.DataFrame({"task_id": [1, None], "local_label": [0, 0], "path": ["0.png"] * 2})


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("tasks.csv", "", r"expected the column 'task_id', got no header"),
        ("tasks.csv", "task_id,path\n", r"expected the column 'local_label', got 'task_id', 'path'"),
        ("tasks.csv", "task_id,local_label,path\n", r"expected one row per task and image, got an empty table"),
        ("tasks.csv", f"{COLUMNS}\nt,a,0.png\nt,a\n", r"line 3: expected 3 cells as in the header, got 2"),
        ("tasks.csv", f"{COLUMNS}\nt,a,0.png\n\nt,a,1.png\n", f"line 2: {NO_TASK}"),
        ("tasks.csv", ALL_VAL, r"expected tasks in the split 'train', got none"),
        ("tasks.parquet", WITHOUT_LABELS, r"expected the column 'local_label'"),
        ("tasks.parquet", WITHOUT_A_TASK, r"row 1: .*got 1\.0"),
        ("tasks.parquet", WITHOUT_A_TASK.assign(task_id=["1", None]), r"row 2: .*an empty cell"),
        ("tasks.csv", None, r"data\.table: expected a readable file at "),
        ("tasks.parquet", None, r"data\.table: expected a Parquet file at "),
        ("tasks.parquet", "text", r"data\.table: expected a Parquet file at "),
        ("tasks.xlsx", "", r"data\.table: expected a file \.csv, \.tsv or \.parquet"),
    ],
)
def test_bad_table(root: Path, name: str, content: str | pd.DataFrame | None, expected: str) -> None:
    table = root.parent / name
    if isinstance(content, pd.DataFrame):
        content.to_parquet(table)
    elif content is not None:
        table.write_text(content)
    with pytest.raises(MelaError, match=expected) as caught:
        found(root, table)
    assert str(caught.value).startswith("data.table: " if expected.startswith("data") else str(table))
    assert "\n" not in str(caught.value)


def test_bad_shots_and_root(root: Path) -> None:
    with pytest.raises(MelaError, match=r"tasks\.shots: expected at least 1, got 0"):
        found(root, shots=0)
    with pytest.raises(MelaError, match=r"data\.root: expected a folder at .*0\.png, got a file"):
        found(root / "0.png")


def test_a_task_has_a_number_of_its_own() -> None:
    assert task_number("anna") == task_number("anna") != task_number("ben")
    numbers = task_numbers(f"t{n}" for n in range(5000))
    assert len(set(numbers.values())) == 5000
    assert all(0 <= number < 2**53 for number in numbers.values())
    assert {name: numbers[name] for name in ("t7", "t70")} == {name: task_number(name) for name in ("t7", "t70")}


def test_names_whose_numbers_are_the_same_get_different_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = task_number
    monkeypatch.setattr("mela.sources.task_folders.task_number", lambda name, attempt=0: plain(name, attempt) % 7)
    numbers = task_numbers(["a", "b", "c", "d", "e", "f"])
    assert len(set(numbers.values())) == 6
    assert numbers["a"] == plain("a") % 7


def people_in(folder: Path, *names: str) -> Path:
    for number, name in enumerate(names):
        for k in range(4):
            save(folder / name / "xy"[k // 2] / f"{k}.png", (4 * number + k) % 256)
    return folder


def known(folder: Path) -> dict[str, tuple[str, int]]:
    """Split and number of each task."""
    source = tasks(folder, table=None, shots=1, split_fractions=SPLIT_FRACTIONS, seed=0)
    assert source.split_of_names is not None
    rows = table_of(source).assign(name=lambda t: [source.sources[i].split("/")[0] for i in t["image_id"]])
    numbers = dict(zip(rows["name"], rows["task_id"].tolist(), strict=True))
    return {name: (split, numbers[name]) for name, split in source.split_of_names.items()}


def test_one_more_person_leaves_the_others_where_they_were(tmp_path: Path) -> None:
    """The rule may move two others at most; of these it moves none."""
    folder = people_in(tmp_path / "people", *(f"person {n}" for n in range(60)))
    before = known(folder)
    people_in(folder, "aaron")
    after = known(folder)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"aaron"}


def splits_of(groups: Sequence[Sequence[str]], seed: int) -> dict[str, str]:
    """Splits of tasks of which each group shares an image; the other images are the tasks' own."""
    rows = [
        (name, "xy"[k // 2], f"{name} {k}" if k else f"shared by {number}")
        for number, names in enumerate(groups)
        for name in names
        for k in range(4)
    ]
    table = pd.DataFrame(rows, columns=["task_id", "local_label", "image"])
    return dict(zip(table["task_id"], _draw_splits(table, SPLIT_FRACTIONS, seed=seed), strict=True))


def test_one_more_person_of_a_group_seldom_moves_the_group() -> None:
    """Only if the newcomer's hash is the smallest of three, or if a border between splits moves; not by its name."""
    others, moved = [[f"person {n}"] for n in range(30)], []
    for seed in range(60):
        pair, newcomer = [f"b {seed}", f"c {seed}"], f"a {seed}"
        before, after = (splits_of([own, *others], seed) for own in (pair, [*pair, newcomer]))
        assert len({after[name] for name in [*pair, newcomer]}) == 1
        assert sum(after[name] != before[name] for [name] in others) <= 2
        smallest = min([*pair, newcomer], key=task_number)
        if after[pair[0]] != before[pair[0]]:
            moved.append(smallest == newcomer)
    assert 0 < len(moved) <= 15
    assert sum(not deciding for deciding in moved) <= 1


def test_tasks_that_share_nothing_are_where_their_names_put_them() -> None:
    names = [f"person {n}" for n in range(30)]
    for seed in range(5):
        alone = split_by_fractions(dict.fromkeys(names, 1), SPLIT_FRACTIONS, seed=seed)
        assert splits_of([[name] for name in names], seed) == alone


def test_pins_overrule_the_draw_and_leave_the_others(tmp_path: Path) -> None:
    folder = people_in(tmp_path / "people", *(f"p{n}" for n in range(12)))
    before = known(folder)
    (folder / "splits.csv").write_text("task,split,note\np3,test,x\np4,train,\np5,val,\n", encoding="utf-8")
    after = known(folder)
    assert [after[name][0] for name in ("p3", "p4", "p5")] == ["test", "train", "val"]
    assert {name for name in before if after[name] != before[name]} <= {"p3", "p4", "p5"}
    assert after.keys() == before.keys()


def test_a_pin_holds_for_tasks_that_share_images(tmp_path: Path) -> None:
    folder = people_in(tmp_path / "people", *(f"p{n}" for n in range(6)))
    (folder / "p1/x/shared.png").symlink_to("../../p0/x/0.png")
    for split in ("train", "val", "test"):
        (folder / "splits.csv").write_text(f"task,split\np1,{split}\n", encoding="utf-8")
        assert known(folder)["p0"][0] == known(folder)["p1"][0] == split


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("p0,dev", r"splits\.csv, line 2: expected the split train or val or test, got 'dev'; correct it"),
        ("p9,val", r"splits\.csv, line 2: expected the name of a task, got 'p9'; correct it, or remove the row"),
        ("p0,val\np0,val", r"splits\.csv, line 3: expected every task once, got 'p0' again; remove the row"),
        ("p0,test\np1,val\np2,val\np3,val", r"splits\.csv: expected tasks in the split 'train', got none; pin fewer"),
        (
            "p3,val\np2,test",
            r"splits\.csv: expected one split for tasks that share images, got test for 'p2' and val for 'p3' "
            r"\(both belong with 'p1'\); pin them to the same split",
        ),
        (None, r"splits\.csv: expected the column 'task', got 'name', 'split'; add the column"),
    ],
)
def test_bad_pins(tmp_path: Path, lines: str | None, expected: str) -> None:
    folder = people_in(tmp_path / "people", *(f"p{n}" for n in range(4)))
    # p2 and p3 share no image, but both do with p1
    (folder / "p1/x/shared.png").symlink_to("../../p2/x/0.png")
    (folder / "p1/y/shared.png").symlink_to("../../p3/x/0.png")
    table = "name,split\np0,val\n" if lines is None else f"task,split\n{lines}\n"
    (folder / "splits.csv").write_text(table, encoding="utf-8")
    with pytest.raises(MelaError, match=expected):
        known(folder)


def test_natural_order() -> None:
    ordered = ["", "01", "1", "2", "10", "9" * 5000, "a", "a1b2", "a1b10", "a2", "a10"]
    shuffled = ordered[::2] + ordered[1::2]
    assert sorted(shuffled, key=natural_key) == ordered
