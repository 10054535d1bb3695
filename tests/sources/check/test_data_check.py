"""`mela data check`: what it says, that it says everything, and that it never disagrees with the stages."""

import io
import re
import shutil
from collections.abc import Callable
from contextlib import redirect_stdout
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
from hypothesis import event, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from PIL import Image
from ruamel.yaml import YAML

import stages.images
import stages.manifest
from mela.errors import MelaError
from mela.io import schemas, store
from mela.params import (
    ROUNDS,
    DataParams,
    EmbedParams,
    MethodsParams,
    PretrainParams,
    RoundsParams,
    TaskParams,
    TuningParams,
    check_document,
)
from mela.sources.check.inspect import inspect
from mela.sources.check.layout import find_layout
from mela.sources.check.suggest import fill_preset, suggest
from tests.helpers.folders import BENCHMARK, PRESET, check, people, picture, table_of
from tests.helpers.project import edit


@pytest.fixture(autouse=True)
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


TASKS = """\
mine: taken for tasks with labels of their own, since images lie in <folder>/<folder>/<image> in 12 of 12 folders with \
images (--as classes overrules)

  images       48, all 40 x 34 pixels; RGB 48
  tasks        6, ways (local labels of a task): 2
  labels       4 different names, such as 'l1', 'l0', 'l2'; images of a label: 4
  names        12 labels have one that other tasks use, which merging.names: true makes evidence
  roles        not given; tasks.shots images of each label become support, the others query
  splits       drawn: 3 train, 1 val, 2 test
  allows       tasks with enough support images of each label: 6 for 1-shot, 0 for 5-shot, 0 for 10-shot

params.yaml: {preset} with these values (--write params.yaml writes it)

data:
  name: tasks                # glyphs | folder | meta_album | tasks | mixed | a benchmark of docs/guides/own-data.md
  root: {root:<20} # folder of the raw data (glyphs are rendered and need none)
  image_size: 32             # side in pixels, images are cut to a square and resized
  channels: 3                # 1 grey, 3 colour
tasks:
  shots: 2                   # support images of a class
augment:
  jitter: 0.5                # brightness, contrast, saturation: share by which they may change
  rotation: 20.0             # degrees to either side
  zoom: 0.35                 # share by which images grow or shrink
  tint: 0.45                 # share by which each channel may change
  blur: 0.5                  # share of the images that are blurred
  surroundings: 1.0          # share whose surroundings are another image's
embed:
  epochs: 25
  tasks_per_epoch: null      # null: all
  milestones: [19]           # the learning rate is multiplied by `decay` after these epochs
rounds:
  first: centered            # tells all task classes apart
  second: centered           # learns what merging finds by the features of the first
  third: centered            # the same by those of the second, and so on
  fourth: centered
  fifth: centered
  sixth: centered
labeler:
  n_clusters: 6              # J, clusters to start from
kmeans:
  n_clusters: 4              # the paper gives it the true number of classes
compare:
  pruned: false              # the paper's Algorithm 2
  oracle: false              # the true labels, where they are known
pretrain:
  epochs: 40
  milestones: [24, 32]
evaluate:
  shots: [1, 2]
"""


def test_folders_of_tasks() -> None:
    people()
    done = check("mine")
    assert (done.status, done.err) == (0, "")
    assert done.out == TASKS.format(preset=PRESET, root=Path("mine").resolve().as_posix())
    assert not Path("params.yaml").exists()


CLASSES = """\
mine: taken for classes, one in each folder, since images lie in <task>/<label>/<image> in only 0 of 7 folders with \
images (--as tasks overrules)

  images       43, 40 to 50 x 34 to 60 pixels, most often 40 x 34 (42); grey 42, RGB 1; all of them grey
  classes      7, splits given
  train        4 classes of 6 to 7 images; allows 4 ways, and 6 shots and queries together (the images of 'c0')
  val          1 class of 6 images; allows 1 way, and 6 shots and queries together (the images of 'c4')
  test         2 classes of 6 images; allows 2 ways, and 6 shots and queries together (the images of 'c5')

warning: 1 image is there several times, such as 'c0/1.png' and 'c5/2.png' (--details DIR lists all); keep one \
file of each, or let tasks name the same one
warning: 1 image is in several splits, such as 'c0/1.png' (train) and 'c5/2.png' (test); accuracies then say less \
about what is new
warning: tasks.ways: the split val has only 1 of the 2 classes that a task needs at least; no val tasks are drawn

mine/params.yaml is made for this data; `dvc repro` runs it in a project, which `mela init` makes
"""


def test_folders_of_classes_with_a_table_of_splits() -> None:
    for number in range(7):
        for drawing in range(6):
            picture(f"c{number}/{drawing}.png", 10 * number + drawing, "L")
    Image.new("RGB", (50, 60), (9, 9, 9)).save("mine/c1/grey.png")
    shutil.copy("mine/c0/1.png", "mine/c5/2.png")
    splits = ["train"] * 4 + ["val", "test", "test"]
    Path("mine/splits.csv").write_text("class,split\n" + "".join(f"c{i},{name}\n" for i, name in enumerate(splits)))
    done = check("mine", "--write", "mine/params.yaml")
    assert (done.status, done.err) == (0, "")
    assert done.out == CLASSES.replace(
        "since images lie in <task>/<label>/<image> in only 0 of 7 folders with images",
        "since splits.csv is a table of split and class",
    )
    check_document(Path("mine/params.yaml"))
    data, tasks = DataParams.read(Path("mine/params.yaml")), TaskParams.read(Path("mine/params.yaml"))
    assert (data.name, data.table, data.channels, data.image_size) == ("folder", "splits.csv", 1, 32)
    assert (tasks.ways, tasks.shots, tasks.queries, tasks.val, tasks.test) == (2, 3, 3, 0, 600)


def test_a_table_of_tasks_with_roles_and_splits() -> None:
    names = people(8, 3, 7)
    table_of(
        names,
        role=lambda name: "query" if name.endswith(("5.png", "6.png")) else "support",
        split=lambda name: "test" if name < "p3" else "train",
        mood=lambda name: "good",
        set=lambda name: "support",
    )
    picture("more/0.png", 999)
    for path in ("mine", "mine/tasks.csv"):
        done = check(path, "--write", "params.yaml")
        assert done.status == 0
        said = done.out.splitlines()
        assert said[0] == (
            "mine: taken for tasks with labels of their own, since tasks.csv is a table of tasks and their images "
            "(--as classes overrules)"
        )
        assert said[2:10] == [
            "  images       168, all 40 x 34 pixels; RGB 168",
            "  tasks        8, ways (local labels of a task): 3",
            "  labels       4 different names, such as 'l0', 'l1', 'l2'; images of a label: 7",
            "  names        24 labels have one that other tasks use, which merging.names: true makes evidence",
            "  roles        given: 5 support and 2 query images of a label",
            "  splits       given: 5 train, 0 val, 3 test",
            "  columns      not used: 'mood', 'set'",
            "  allows       tasks with enough support images of each label: 8 for 1-shot, 8 for 5-shot, 0 for 10-shot",
        ]
        assert done.warnings() == ["mine: 1 image is not in tasks.csv; it is not used"]
    text = Path("params.yaml").read_text()
    assert "shots: [1, 5]" in text
    assert "oracle: false" in text


def test_a_table_of_tasks_with_true_classes() -> None:
    columns = {"split": lambda name: "test" if name < "p3" else "train", "class": lambda name: name.split("/")[1]}
    table_of(people(8, 3, 7), **columns)
    for path in ("mine", "mine/tasks.csv"):
        done = check(path, "--write", "params.yaml")
        assert done.status == 0
        assert "mine: taken for tasks with labels of their own, " in done.out
        assert "  truth        4 classes of all tasks, of which no labels are inferred\n" in done.out
        assert "not used" not in done.out
        assert "oracle: true" in Path("params.yaml").read_text()


def test_cells_without_a_true_class_are_told() -> None:
    table_of(people(8, 3, 7), **{"class": lambda name: "" if name == "p0/l0/1.png" else "owl"})
    done = check("mine")
    assert done.status == 1
    expected = "mine/tasks.csv, line 3: expected a class, got an empty cell; fill all of them, or rename the column"
    assert expected in done.out + done.err
    assert "  truth        1 class of all tasks" in done.out


WRONG = [
    "mine/tasks.csv, line 13: expected 3 cells as in the header, got 4; "
    "complete the row, or quote cells that hold a comma",
    "mine/tasks.csv, line 6: expected a local_label, got an empty cell; fill it or remove the row",
    "mine/tasks.csv, line 4: expected the file 'nowhere.png' in {root}, got no such file; "
    "correct the path (relative to data.root, with '/'), or add the file",
    "mine/tasks.csv, line 10: expected a path below data.root ({root}), got '../x.png'; write it relative to data.root",
    "mine/tasks.csv, line 3: expected an image once in task 'p0', got 'p0/l0/0.png' again; remove one of the rows",
    "image 'p1/l1/2.png': expected a readable image, got UnidentifiedImageError: cannot identify image file "
    "'mine/p1/l1/2.png'; replace the file",
    "image 'p5/l1/3.png': expected a readable image, got OSError: image file is truncated; replace the file",
]


def test_everything_that_is_wrong_is_told() -> None:
    rows = table_of(people())
    rows.loc[1, "path"] = "p0/l0/0.png"
    rows.loc[2, "path"] = "nowhere.png"
    rows.loc[4, "local_label"] = ""
    rows.loc[8, "path"] = "../x.png"
    lines = [*rows.to_csv(index=False).splitlines(), "p9,l,p0/l0/0.png"]
    lines[12] += ",more"
    Path("mine/tasks.csv").write_text("\n".join(lines) + "\n")
    Path("mine/p1/l1/2.png").write_bytes(b"x")
    Path("mine/p5/l1/3.png").write_bytes(picture("p5/l1/3.png", 3).read_bytes()[:1000])
    done = check("mine", "--write", "params.yaml")
    assert done.status == 1
    assert done.errors() == [line.format(root=Path("mine").resolve()) for line in WRONG]
    assert not Path("params.yaml").exists()


NONE = "expected a task of two local labels with two images each, got none in 3 tasks; add labels or images"


@pytest.mark.parametrize("columns", [None, {}, {"role": lambda name: "support", "split": lambda name: "train"}])
@pytest.mark.parametrize(("n_labels", "n_images"), [(1, 4), (3, 1)])
def test_no_task_at_all_is_told(n_labels: int, n_images: int, columns: dict[str, Callable[[str], str]] | None) -> None:
    names = people(3, n_labels, n_images)
    if columns is not None:
        table_of(names, **columns)
    done = check("mine", "--as", "tasks", "--details", "found")
    assert (done.status, done.err) == (1, "")
    assert "  tasks        0 tasks" in done.out.splitlines()
    place = "mine, folder 'p0/l0'" if columns is None else "mine/tasks.csv, line 2"
    assert done.errors() == [f"{place}: {NONE}"]
    assert NONE in Path("found/errors.csv").read_text()


def test_errors_are_told_whatever_becomes_of_the_description(monkeypatch: pytest.MonkeyPatch) -> None:
    people(3, 1)

    def fail(*_: object) -> str:
        raise MelaError("description: this cannot be described")

    monkeypatch.setattr("mela.sources.check.describe._line", fail)
    done = check("mine", "--as", "tasks", "--details", "found")
    assert (done.status, done.err) == (1, "error: description: this cannot be described\n")
    assert done.errors() == [f"mine, folder 'p0/l0': {NONE}"]
    assert NONE in Path("found/errors.csv").read_text()


def test_quick_looks_at_heads_only() -> None:
    people()
    Path("mine/p1/l1/2.png").write_bytes(b"x")
    Path("mine/p5/l1/3.png").write_bytes(Path("mine/p5/l1/3.png").read_bytes()[:1000])
    done = check("mine", "--quick")
    assert done.status == 1
    assert [line.split(":")[0] for line in done.errors()] == ["image 'p1/l1/2.png'"]
    assert len(check("mine").errors()) == 2


def test_photographs_of_different_brightness_are_varied_more() -> None:
    """By as much as labels differ: other levels of one label's images do not count, and none are known to --quick."""
    for task, label, number in product(range(12), range(2), range(4)):
        exposure = 0.5 ** (task % 4)
        levels = np.full((34, 40, 3), [250, 240, 230]) * exposure * (1, 0.9)[number % 2]
        levels[task, label, 0] = number
        Path(f"mine/p{task}/l{label}").mkdir(parents=True, exist_ok=True)
        Image.fromarray(levels.astype(np.uint8)).save(f"mine/p{task}/l{label}/{number}.png")
    findings = inspect(find_layout(Path("mine")), split_fractions=(0.99, 0.005, 0.005), seed=0)
    assert findings.tasks is not None
    table = findings.tasks.table
    stops = table["task_id"][table["split"] == "train"].str[1:].astype(int) % 4
    low, high = stops.repeat(2).quantile([0.16, 0.84])
    assert findings.tasks.brightness == pytest.approx(np.log(2) * (high - low) / 2, rel=0.05)
    assert suggest(findings)["augment.jitter"] == 0.9
    quick = inspect(find_layout(Path("mine")), split_fractions=(0.99, 0.005, 0.005), seed=0, decode=False)
    assert suggest(quick)["augment.jitter"] == 0.5


@pytest.mark.parametrize(("split", "how"), [("train", True), ("test", "centered")])
def test_no_round_is_centered_where_training_tasks_share_an_image(split: str, how: bool | str) -> None:
    """What its image has in common with others would depend on the task."""
    rows = table_of(people(n_people=4), split=lambda name: "train" if name[1] in "01" else "test")
    one = rows[rows["split"] == split]["task_id"].iloc[0]
    more = rows[rows["task_id"] == one].assign(task_id="again")
    pd.concat([rows, more]).to_csv("mine/tasks.csv", index=False)
    values = suggest(inspect(find_layout(Path("mine")), split_fractions=(0.6, 0.2, 0.2), seed=0))
    assert {values[f"rounds.{number}"] for number in ROUNDS} == {how}


@pytest.mark.parametrize(("block", "key"), [("pretrain", "accumulate"), ("runtime", "processes")])
def test_no_round_is_centered_where_the_preset_divides_batches(block: str, key: str) -> None:
    people()
    values = suggest(inspect(find_layout(Path("mine")), split_fractions=(0.6, 0.2, 0.2), seed=0))
    for count, how in ((1, "centered"), (2, True)):
        preset = re.sub(rf"(?s)(\n{block}:.*?\n  {key}: )\d+", rf"\g<1>{count}", PRESET.read_text("utf-8"))
        Path("params.yaml").write_text(fill_preset(preset, values, title="test"), "utf-8")
        check_document(Path("params.yaml"))
        assert RoundsParams.read(Path("params.yaml")) == RoundsParams(**dict.fromkeys(ROUNDS, how))


def test_many_errors_are_counted() -> None:
    for number in range(130):
        picture(f"{number:03}.png", number, "L", (2, 2))
    Path("mine/000.png").write_bytes(b"x")
    Path("mine/c").mkdir()
    done = check("mine")
    assert done.out.endswith("\n131 errors of 2 kinds; --all prints each of them\n")
    second, first = done.errors()
    assert first == (
        "mine: expected one folder per class, got the image '000.png' in no folder; "
        "move it into the folder of its class (130 times, also for '001.png', '002.png', ...)"
    )
    assert second.startswith(f"{Path('mine').resolve()}: expected at least one image (")
    every = check("mine", "--all").errors()
    assert len(every) == 131
    assert sum("in no folder" in error for error in every) == 130


def test_many_warnings_are_counted() -> None:
    splits = ["train"] * 3 + ["val"] * 20 + ["test"] * 20
    for number, split in enumerate(splits):
        for drawing in range(2 if split == "train" else 1):
            picture(f"c{number:02}/{drawing}.png", 10 * number + drawing, "L")
    Path("mine/splits.csv").write_text("class,split\n" + "".join(f"c{i:02},{name}\n" for i, name in enumerate(splits)))
    done = check("mine")
    thin = "tasks.shots + tasks.queries: {0} class 'c{1:02}' has only 1 of the 2 images that a task needs at least; "
    thin += "no {0} tasks are drawn"
    assert (done.status, done.errors()) == (0, [])
    assert done.warnings() == [
        f"{thin.format('val', 3)} (20 times, also for 'c04', 'c05', ...)",
        f"{thin.format('test', 23)} (20 times, also for 'c24', 'c25', ...)",
    ]
    assert "\n40 warnings of 2 kinds; --all prints each of them\n" in done.out
    every = check("mine", "--all")
    assert every.warnings() == [thin.format(split, i) for i, split in enumerate(splits) if split != "train"]
    assert "--all prints" not in every.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: expected a folder of images, or a table of them, got nothing; correct the path"),
        (
            ["notes.txt"],
            r"notes.txt: expected a folder of images, or a table \(.csv or .tsv or .parquet\), got another file; name "
            "the folder of the images, or save the table in one of these formats",
        ),
        (["mine"], "mine: expected one table of tasks, got a.csv, b.csv; name one of them in place of mine"),
    ],
)
def test_what_cannot_be_looked_at(arguments: list[str], message: str) -> None:
    Path("notes.txt").touch()
    names = people()
    for name in ("a.csv", "b.csv"):
        table_of(names, name)
    done = check(*arguments)
    assert (done.status, done.out) == (1, "")
    assert re.fullmatch(f"error: {message}\n", done.err), done.err


def test_a_preset_is_needed() -> None:
    people()
    for preset, file in (("presets/glyphs.yaml", "presets/glyphs.yaml"), ("nope", "presets/nope.yaml")):
        done = check("mine", preset=preset)
        assert (done.status, done.out) == (1, "")
        assert done.err == (
            f"error: {file}: no such preset to start from; name one of presets/, or the path of a file, by --preset\n"
        )


def test_a_preset_is_named_outside_of_a_clone() -> None:
    """The folder in which this runs holds no presets; those of the installation are used."""
    people()
    done = check("mine", "--write", "params.yaml", preset="glyphs")
    assert (done.status, done.err) == (0, "")
    assert done.out.endswith(
        "params.yaml is made for this data; `dvc repro` runs it in a project, which `mela init` makes\n"
    )
    assert Path("params.yaml").read_text().startswith("# Made by `mela data check mine` from the preset glyphs.\n")


def test_the_data_are_found_from_a_clone_wherever_the_check_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    people()
    Path("clone").mkdir()
    Path("clone/dvc.yaml").touch()
    for path in ("mine", "clone/../mine"):
        assert check(path, "--write", "clone/params.yaml").status == 0
        assert DataParams.read(Path("clone/params.yaml")).root == Path("mine").resolve().as_posix()
    # in a clone, the parameters are the same on each machine
    monkeypatch.chdir("clone")
    assert check("../mine", "--write", "params.yaml").status == 0
    assert DataParams.read(Path("params.yaml")).root == "../mine"


@pytest.mark.parametrize(("old", "new"), [("  rate: 0.1 ", "  rates: 0.1 "), ("  tasks_per_epoch: 150\n", "")])
def test_a_preset_of_the_benchmark_is_right_in_its_own_blocks_too(tmp_path: Path, old: str, new: str) -> None:
    people()
    shutil.copy(BENCHMARK, tmp_path / "preset.yaml")
    edit(tmp_path / "preset.yaml", old, new)
    done = check("mine", preset=tmp_path / "preset.yaml")
    assert (done.status, done.out) == (1, "")
    assert "preset.yaml: tuning." in done.err


@pytest.mark.parametrize(
    ("folders", "kind"),
    [
        (["a/x", "a/y", "b/x", "b/y"], "tasks"),
        (["a", "b", "c"], "classes"),
        (["images/a", "images/b", "images/c"], "classes"),
        (["train/a", "train/b", "test/c", "test/d"], "classes"),
        (["a/x/1", "a/y/1", "b/x/2"], "classes"),
        (["a/x", "a/y", "b/x", "b/y", "c"], "tasks"),
    ],
)
def test_kinds_of_folders(folders: list[str], kind: str) -> None:
    for folder in folders:
        picture(f"{folder}/0.png", 0)
    assert find_layout(Path("mine")).kind == kind
    other = "tasks" if kind == "classes" else "classes"
    assert find_layout(Path("mine"), other).kind == other  # type: ignore[arg-type]


def test_a_dash_prints_the_whole_file() -> None:
    people()
    done = check("mine", "--write", "-")
    Path("params.yaml").write_text(done.out)
    check_document(Path("params.yaml"))
    assert done.out.startswith(f"# Made by `mela data check mine` from {PRESET.as_posix()}.\n\ndata: ")
    assert done.out.count("#") > 50
    assert done.err.startswith("mine: taken for tasks")


CONTENTS = {"good": io.BytesIO(), "cut": io.BytesIO(), "words": io.BytesIO(b"words")}
Image.fromarray(np.random.default_rng(0).integers(0, 255, (20, 20), dtype=np.uint8)).save(CONTENTS["good"], "png")
CONTENTS["cut"].write(CONTENTS["good"].getvalue()[:200])
ODD_CELLS = [
    "",
    "t0",
    "x",
    "support",
    "query",
    "train",
    "test",
    "nowhere.png",
    "../0.png",
    "t0/x/0.png",
    "t0",
    "notes.txt",
]


@st.composite
def data_sets(draw: st.DrawFn) -> dict[str, bytes]:
    """Files of a small data set: right as often as not, wrong in all kinds of ways."""
    few = st.sampled_from([2, 3, 2, 3, 4, 2, 3, 1])
    top, depth = draw(st.integers(1, 5)), draw(st.sampled_from(["tasks", "tasks", "classes"]))
    names = []
    for upper in range(top):
        if depth == "classes":
            names += [f"t{upper}/{i}.png" for i in range(draw(few))]
        else:
            names += [f"t{upper}/{'xyzu'[label]}/{i}.png" for label in range(draw(few)) for i in range(draw(few))]
    faults = draw(st.lists(st.sampled_from(["stray.png", "t0/stray.png", "t9/x/y/0.png"]), max_size=1))
    odd = draw(st.sampled_from(["good"] * 6 + ["cut", "words"]))
    files = {name: CONTENTS["good"].getvalue() for name in names + (faults if draw(st.booleans()) else [])}
    files[draw(st.sampled_from(names))] = CONTENTS[odd].getvalue()
    kind = draw(st.sampled_from(["none", "none", "tasks", "tasks", "splits"]))
    if kind == "tasks" and depth == "tasks":
        rows = pd.DataFrame(
            [[*name.split("/")[:2], name] for name in names], columns=["task_id", "local_label", "path"]
        )
        if draw(st.booleans()):
            rows["role"] = ["support" if name.endswith("0.png") else "query" for name in names]
        if draw(st.booleans()):
            rows["split"] = ["test" if name.startswith("t1") else "train" for name in names]
        for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
            row, column = draw(st.integers(0, len(rows) - 1)), draw(st.sampled_from(list(rows.columns)))
            rows.loc[row, column] = draw(st.sampled_from([*ODD_CELLS, *names]))
        files["tasks.csv"] = rows.to_csv(index=False).encode()
    elif kind == "splits" and depth == "classes":
        splits = [draw(st.sampled_from(["train", "train", "test", "val", "test", "odd"])) for _ in range(top + 1)]
        used = draw(st.integers(1, top + 1))
        lines = [f"{split},t{number}\n" for number, split in enumerate(splits[:used])]
        files["splits.csv"] = "".join(["split,class\n", *lines]).encode()
    return files


@pytest.mark.slow
@hypothesis_settings(deadline=None, max_examples=40)
@given(
    files=data_sets(),
    asked=st.sampled_from([None, None, "tasks", "classes"]),
    preset=st.sampled_from([PRESET, BENCHMARK]),
)
def test_the_check_and_the_stages_agree(files: dict[str, bytes], asked: str | None, preset: Path) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for path, content in files.items():
            (folder / "mine" / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / "mine" / path).write_bytes(content)
        settings = DataParams.read(preset)
        layout = find_layout(folder / "mine", asked)  # type: ignore[arg-type]
        findings = inspect(layout, split_fractions=settings.split_fractions, seed=settings.seed)
        params = folder / "params.yaml"
        params.write_text(fill_preset(preset.read_text("utf-8"), suggest(findings), title="test"), "utf-8")
        check_document(params)
        told = run_both(folder, params)
        event("used" if told is None else "refused")
        if told is None:
            assert findings.errors == []
            if preset == BENCHMARK:
                check_budget(folder, params)
        else:
            problem = told.partition("; ")[0]
            assert any(error.startswith(problem) for error in findings.errors), (told, findings.errors)


def check_budget(folder: Path, params: Path) -> None:
    """Methods on tasks see as many images as both trainings of MeLa, up to half an epoch, if that is not too little."""
    train = store.read_table(folder / "train.parquet", schemas.MANIFEST)
    n_tasks = train["task_id"].nunique()
    embed, methods, tuning = (block.read(params) for block in (EmbedParams, MethodsParams, TuningParams))
    assert 1 <= methods.tasks_per_epoch == tuning.tasks_per_epoch <= n_tasks
    if DataParams.read(params).name == "folder":
        index = store.read_table(folder / "index.parquet", schemas.INDEX)
        images = int((index["split"] == "train").sum())
    else:
        images = train["image_id"].nunique()
    initial = embed.epochs * (embed.tasks_per_epoch or n_tasks) * len(train) / n_tasks
    both = initial + PretrainParams.read(params).epochs * images
    epoch = methods.tasks_per_epoch * len(train) / n_tasks
    assert methods.epochs == 3 or abs(methods.epochs * epoch - both) <= 0.51 * epoch
    assert tuning.epochs == max(1, round(methods.epochs / 3))


def run_both(folder: Path, params: Path) -> str | None:
    """What the stages images and manifest say if they fail."""
    made = {name: folder / f"{name}.parquet" for name in ("index", "tasks", "truth", "train", "val", "test")}
    inputs = {name: made[name] for name in ("index", "tasks", "truth")}
    try:
        with redirect_stdout(io.StringIO()):
            stages.images.main(params, images=folder / "images.npy", **inputs)
            stages.manifest.main(params, **made)
    except MelaError as error:
        return str(error)
    assert len(store.read_table(made["train"], schemas.MANIFEST))
    return None


def test_filling_a_preset_leaves_other_documents_of_the_process_alone() -> None:
    fill_preset(PRESET.read_text("utf-8"), {"labeler.q": None}, title="test")

    written = io.StringIO()
    YAML().dump({"q": None}, written)
    assert written.getvalue() == "q:\n"
