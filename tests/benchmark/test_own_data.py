"""docs/results/methods.md followed for tasks of one's own: the benchmark on them under real DVC, and its table."""

import ast
import io
import re
import shlex
import shutil
from contextlib import chdir, redirect_stdout
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from ruamel.yaml import YAML

from benchmark import due
from benchmark.outdated_marks import LEGEND, MARK, read_outdated
from benchmark.places import MODEL
from benchmark.report import systems_page
from benchmark.systems import GROUPS
from mela.errors import MelaError
from mela.params import LabelerParams, MethodsParams, RatesParams, TaskParams, TuningParams
from mela.training.learner_files import load_learned
from tests.helpers.copies import MADE, ask, asked, copy_project
from tests.helpers.docs import BENCHMARK, apply, blocks
from tests.helpers.dvc import ran
from tests.helpers.matrix import write_matrix
from tests.helpers.people import draw
from tests.helpers.project import ROOT, change

# the other mark is for DVC, which these tests ask in their own process as well
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:_NoneStep:DeprecationWarning")]

PAGE = "docs/results/methods.md"
DATA = Path("benchmark/data/mine.yaml")
SHORT = {"embed.epochs": 1, "embed.milestones": [], "pretrain.epochs": 1, "pretrain.milestones": [], "model.width": 4}
SHORT |= {"methods.epochs": 1, "methods.milestones": [], "tuning.epochs": 1, "tuning.milestones": []}
SHORT |= {"data.image_size": 16, "runtime.device": "cpu"}
# what DVC is asked for in place of all systems
CELLS = ["test_tasks@protonet-mine-0", "test_labels@rfs-merged-mine-0", "score_inferred@merged-mine-0"]
TRAIN = {"embed", "tasks", "labels", "tuned", "distill", "unlabeled"}
DVC = ["dvc", "--cd", "benchmark"]


def run(command: str, folder: Path) -> str:
    name, *rest = shlex.split(command)
    return ask("python", "-m", name, *rest, where=folder)


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project that has done what the page says, with trainings of an epoch."""
    folder = tmp_path_factory.mktemp("mine") / "project"
    copy_project(folder)
    rng = np.random.default_rng(0)
    for person in range(40):
        for label, kind in enumerate(rng.permutation(6)[:3].tolist()):
            for drawing in range(4):
                draw(kind, folder / f"data/raw/mine/person{person}/pile {label}/{drawing}.png", rng)
    assert "mine.yaml is made for this data; `make benchmark` runs it" in run(BENCHMARK[0], folder)
    methods, tuning = MethodsParams.read(folder / DATA), TuningParams.read(folder / DATA)
    assert methods.tasks_per_epoch == tuning.tasks_per_epoch == 23
    assert methods.epochs == pytest.approx(3 * tuning.epochs, abs=2)
    assert TaskParams.read(folder / DATA).shots == 2
    assert set(RatesParams.read(folder / DATA).by_name.values()) == {None}, "none that was chosen on other data"
    change(folder / DATA, SHORT)
    (diff,) = (block for block in blocks(PAGE) if block.language == "diff" and "mine" in block.content)
    apply(diff.content, folder)
    ask(*DVC, "repro", *CELLS, where=folder)
    return folder


def test_what_a_method_has_learned_is_for_use(mine: Path) -> None:
    rng = np.random.default_rng(7)
    for kind, label in enumerate(["cups", "keys", "pens"]):
        for drawing in range(2):
            draw(kind, mine / f"data/raw/new/examples/{label}/{drawing}.png", rng)
        draw(kind, mine / f"data/raw/new/images/{kind}.png", rng)
    for command in BENCHMARK[2:]:
        told = run(command, mine)
    assert "predictions.csv: 3 images, by the rule of feat" in told
    table = pd.read_csv(mine / "predictions.csv")
    assert table.columns.tolist() == ["path", "label", "probability", "p_cups", "p_keys", "p_pens"]
    model = mine / "benchmark/runs/mine/seed0/merged-rfs-feat/model.safetensors"
    assert load_learned(model, torch.device("cpu")).method == "feat"


def test_nothing_asks_for_true_classes(mine: Path) -> None:
    names = [line.split()[0] for line in ask(*DVC, "stage", "list", "--name-only", where=mine).splitlines()]
    assert "labels@rfs-merged-mine-0" in names
    assert [name for name in names if "oracle" in name] == [f"label_oracle@mine-{seed}" for seed in range(3)]


def test_the_table_has_the_shots_that_there_are(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overview, page = pages_of_systems(mine)
    assert "2 systems on mine" in capsys.readouterr().out
    assert "on 9 test tasks" in page
    assert "|  | 1-shot | 2-shot | 1-shot - MeLa | 2-shot - MeLa | seconds |" in page
    assert GROUPS["oracle"] not in page
    number = r"(\*\*)?[+-]?[\d.]+±[\d.]+(\*\*)?"
    assert re.search(rf"\| ProtoNet \(1\) \| {number} \| {number} \| {number} \| {number} \| \d+ \|\n", page)
    assert re.search(r"\| mine \| MeLa \(merged\) \| \d+ \|  \|  \|  \|\n", overview), "labels, without any truth"
    (pair,) = (line for line in overview.splitlines() if line.startswith("| MeLa (merged) - ProtoNet |"))
    assert re.search(rf"\| {number} / {number} \(1\) \|$", pair)


@pytest.fixture
def clone(mine: Path, tmp_path: Path) -> Path:
    """A copy with what Git would know, and the raw images: nothing that was trained or packed.

    Its matrix is small, since DVC is asked often, and looks at every cell.
    """
    folder = tmp_path / "clone"
    shutil.copytree(mine, folder, ignore=shutil.ignore_patterns(*MADE))
    shutil.copy(ROOT / "Makefile", folder)
    lists = {"task_methods": ["protonet", "feat", "frn"], "comparisons": {"Better?": [["merged-rfs", "protonet"]]}}
    write_matrix(folder / "benchmark", data=["mine"], seeds=[0, 1], labels=["merged"], **lists)
    assert not list(folder.rglob("*.safetensors"))
    return folder


HASHES: dict[frozenset[tuple[Path, bytes]], dict[Path, bytes]] = {}


def cells_due(folder: Path, *, mark: bool = False) -> set[str]:
    """Ask in this process: the answer is read from the files of the folder, not from what is imported.

    Hashes of code take long, and are found once for each state that the code is in.
    """
    said = io.StringIO()
    code = frozenset((path.relative_to(folder), path.read_bytes()) for path in folder.rglob("*.py"))
    made = folder / "benchmark/runs/code"
    with chdir(folder), redirect_stdout(said), pytest.MonkeyPatch.context() as patch:
        if code in HASHES:
            shutil.rmtree(made, ignore_errors=True)
            for path, content in HASHES[code].items():
                (made / path).parent.mkdir(parents=True, exist_ok=True)
                (made / path).write_bytes(content)
            patch.setattr(due.code, "main", lambda benchmark: None)
        due.main(mark=mark)
    HASHES[code] = {path.relative_to(made): path.read_bytes() for path in made.rglob("*.json")}
    return set(said.getvalue().split())


def pages_of_systems(folder: Path) -> list[str]:
    """The overview and the page of the data set, made anew in this process."""
    with chdir(folder):
        systems_page.main()
    return [(folder / f"docs/results/{name}.md").read_text(encoding="utf-8") for name in ("systems", "systems/mine")]


def touch(path: Path, name: str) -> None:
    """Add a statement to a definition."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    (found,) = (one for one in tree.body if isinstance(one, ast.FunctionDef | ast.ClassDef) and one.name == name)
    found.body.append(ast.Pass())
    path.write_text(ast.unparse(tree), encoding="utf-8")


def test_what_is_due_is_what_is_not_measured_or_has_changed(mine: Path, clone: Path) -> None:
    on_tasks, on_labels, scored = CELLS
    others = cells_due(clone)
    assert not {*CELLS} & others
    assert {"test_tasks@protonet-mine-1", "test_tasks@frn-mine-0", "test_initial@mine-0"} <= others
    method = clone / "mela/methods/protonet.py"
    text = method.read_text(encoding="utf-8")
    method.write_text(f"{text}# a comment\n", encoding="utf-8")
    assert cells_due(clone) == others
    touch(method, "ProtoNet")
    assert cells_due(clone, mark=True) - others == {on_tasks}
    assert read_outdated(clone / "benchmark/results") == {("mine", "protonet")}
    overview, page = pages_of_systems(clone)
    assert re.search(rf"\n\| ProtoNet( \(1\))?{MARK} \| ", page)
    assert re.search(rf"\| MeLa \(merged\) - ProtoNet \| [^|]*{MARK} \|\n", overview)
    assert f"\n{LEGEND}" in page
    assert f"\n{LEGEND}" in overview
    method.write_text(text, encoding="utf-8")
    assert cells_due(clone, mark=True) == others
    assert not [text for text in pages_of_systems(clone) if MARK in text]
    change(clone / DATA, {"rates.protonet": 0.001})
    assert cells_due(clone) - others == {on_tasks}, "a rate is that of one method"
    change(clone / DATA, {"rates.protonet": None, "rates.feat": 0.0001})
    assert cells_due(clone) == others
    change(clone / DATA, {"rates.feat": None})
    touch(clone / "mela/labeling/learn_labeler.py", "LearnLabeler")
    assert cells_due(clone) == others, "nothing that was measured is about pruning"
    touch(clone / "mela/labeling/merge_labeler.py", "MergeLabeler")
    assert cells_due(clone) - others == {on_labels, scored}
    for name in ("learn_labeler", "merge_labeler"):
        shutil.copy(mine / f"mela/labeling/{name}.py", clone / f"mela/labeling/{name}.py")
    change(clone / DATA, {"pretrain.epochs": 2})
    assert cells_due(clone) - others == {on_labels}
    change(clone / DATA, {"pretrain.epochs": 1, "labeler.q": 3.0})
    assert cells_due(clone) == others
    change(clone / DATA, {"merging.min_count": 2})
    assert cells_due(clone) - others == {on_labels, scored}
    change(clone / DATA, {"labeler.q": LabelerParams.read(mine / DATA).q, "merging.min_count": 1})
    assert cells_due(clone) == others
    touch(clone / "mela/learners/base.py", "Learner")
    assert cells_due(clone) - others >= {on_tasks, on_labels}
    shutil.copy(mine / "mela/learners/base.py", clone / "mela/learners/base.py")
    result = clone / "benchmark/results/mine/seed0/protonet.parquet"
    for spoil in (lambda: result.write_bytes(result.read_bytes()[:-1]), result.unlink):
        spoil()
        assert cells_due(clone) - others == {on_tasks}


def test_what_is_due_by_the_lock(clone: Path) -> None:
    """Where models are missing it alone tells whether a cell was measured with the one that there was."""
    others = cells_due(clone)
    lock = clone / "benchmark/dvc.lock"
    locked = lock.read_text(encoding="utf-8")
    made = YAML(typ="safe").load(locked)["stages"]["tasks@protonet-mine-0"]["outs"]
    model = next(out["md5"] for out in made if out["path"].endswith(MODEL))
    before, after = locked.split("  tasks@protonet-mine-0:")
    lock.write_text(f"{before}  tasks@protonet-mine-0:{after.replace(model, 'a' * 32, 1)}", encoding="utf-8")
    assert cells_due(clone) - others == {"test_tasks@protonet-mine-0"}
    lock.write_text(f"<<<<<<< ours\n{locked}", encoding="utf-8")
    ended = asked("python", "-m", "benchmark.due", where=clone)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: benchmark: expected dvc.yaml and dvc.lock that DVC can read, got ")
    assert len(ended.stderr.splitlines()) == 1


def test_a_clone_trains_what_is_due_alone(clone: Path) -> None:
    """`make benchmark` where one method is new and the models of the others are not there."""
    write_matrix(clone / "benchmark", data=["mine"], labels=["merged"], task_methods=["protonet", "matchingnet"])
    make = ["make", "-o", "setup", "benchmark"]
    said = ask(*make, where=clone)
    trained = ran(said)
    assert {name.split("@")[0] for name in trained} & TRAIN == {"embed", "tasks"}, "the initial one is measured too"
    assert "tasks@matchingnet-mine-0" in trained
    assert "tasks@protonet-mine-0" not in trained
    assert "tables: docs/results/systems.md, 4 systems on mine" in said
    assert not cells_due(clone), "`make benchmark` would ask DVC for nothing"
    failing = clone / "mela/methods/matchingnet.py"
    failing.write_text(failing.read_text(encoding="utf-8").replace("self.scale", "self.scales"), encoding="utf-8")
    ended = asked(*make, where=clone)
    assert ended.returncode != 0
    assert "tables: docs/results/systems.md, 4 systems on mine" in ended.stdout, "they have what was measured before"


def test_images_that_have_changed(mine: Path) -> None:
    """DVC takes the packed images for those of before until it is told otherwise."""
    draw(5, mine / "data/raw/mine/person3/pile 1/0.png", np.random.default_rng(9))
    said = ask(*DVC, "repro", *CELLS, where=mine)
    assert ran(said) == ["code"]
    packed = (mine / "benchmark/runs/mine/images.npy").read_bytes()
    run(BENCHMARK[1], mine)
    assert (mine / "benchmark/runs/mine/images.npy").read_bytes() != packed
    assert "tasks@protonet-mine-0" in ask(*DVC, "status", *CELLS, where=mine)


def test_nothing_is_measured_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_matrix(Path("benchmark"), data=["mine"])
    message = "benchmark/results: expected accuracies of some system on mine, found none; run"
    with pytest.raises(MelaError, match=message):
        systems_page.main(page=Path("systems.md"))
    assert not Path("systems.md").exists()
