"""The command `mela run`: all stages of dvc.yaml in their order, without Git and DVC."""

import re
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from mela.cli.run import stage_commands, stage_outputs
from mela.params import LABELS, ROUNDS
from tests.helpers.pipeline import STAGES, listed
from tests.helpers.processes import python
from tests.helpers.project import ROOT, TINY, change

pytestmark = pytest.mark.slow

GLYPHS = (ROOT / "presets/glyphs.yaml").read_text(encoding="utf-8")


def mela(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return python("-m", "mela", "run", *arguments, **environment)


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three stages, of which each writes its name, and the second fails where there is a file "fail"."""
    monkeypatch.chdir(tmp_path)
    Path("steps").mkdir()
    for name in ("one", "two", "three"):
        Path(f"steps/{name}.py").write_text(
            "import sys\nfrom pathlib import Path\n"
            f"if {name == 'two'} and Path('fail').exists(): sys.exit(3)\n"
            f"with Path('done').open('a') as file: file.write('{name} ')\n"
        )
    stages = {name: {"cmd": f"python -m steps.{name}"} for name in ("one", "two", "three")}
    YAML().dump({"stages": stages}, Path("dvc.yaml"))
    Path("params.yaml").write_text(GLYPHS, encoding="utf-8")
    return tmp_path


def test_stages_run_in_their_order(pipeline: Path) -> None:
    ended = mela()
    assert (ended.returncode, ended.stderr) == (0, "")
    assert Path("done").read_text() == "one two three "
    assert ended.stdout.splitlines() == [
        "run: one (1 of 3)",
        "run: two (2 of 3)",
        "run: three (3 of 3)",
        "run: all stages are done; `mela summary` prints the results",
    ]


def test_a_stage_that_fails_is_named_and_ends_the_run(pipeline: Path) -> None:
    Path("fail").touch()
    ended = mela()
    advice = "for the reason above; correct it, then go on with `mela run --from two`"
    assert (ended.returncode, ended.stderr) == (1, f"error: run: the stage two ended with status 3, {advice}\n")
    assert Path("done").read_text() == "one "
    Path("fail").unlink()
    again = mela("--from", "two")
    assert again.returncode == 0
    assert again.stdout.startswith("run: not run again, as --from asks: one\nrun: two (2 of 3)\n")
    assert Path("done").read_text() == "one two three "


def declare(**outs: list[object]) -> None:
    pipeline = YAML().load(Path("dvc.yaml"))
    for name, paths in outs.items():
        pipeline["stages"][name]["outs"] = paths
    YAML().dump(pipeline, Path("dvc.yaml"))


@pytest.fixture
def outputs(pipeline: Path) -> Path:
    """What an earlier run of the three stages and somebody else have left."""
    for name in ("data/one", "data/two", "data/three/deep", "data/own", "own/kept"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("old")
    Path("data/link").symlink_to("../own")
    declare(one=["data/one"], two=[{"data/two": {"cache": False}}], three=["data/three", "data/link", "data/not there"])
    return pipeline


def test_results_are_never_of_two_runs(outputs: Path) -> None:
    """What later stages wrote before is deleted once the first stage has written anew, and nothing else is."""
    Path("fail").touch()
    ended = mela()
    assert ended.returncode == 1
    assert "run: deleted what an earlier run has left of the stages after one\n" in ended.stdout
    left = sorted(path.as_posix() for name in ("data", "own") for path in Path(name).rglob("*"))
    assert left == ["data/one", "data/own", "own/kept"]


def test_before_a_stage_has_written_all_stays(outputs: Path) -> None:
    """A mistake about the data costs no model; the hashes of the code are no data."""
    Path("dvc.yaml").write_text(Path("dvc.yaml").read_text().replace("one:", "code:"))
    Path("fail").touch()
    assert mela().returncode == 1
    assert Path("data/three/deep").read_text() == "old"
    assert mela("--from", "three").returncode == 0
    assert Path("data/three/deep").read_text() == "old"


@pytest.mark.parametrize("path", ["../x", "/tmp/x", ".", "data/../../x"])
def test_outputs_elsewhere_are_refused(pipeline: Path, path: str) -> None:
    declare(two=[path])
    ended = mela()
    message = f"dvc.yaml: two: expected outputs in this folder, got {str(Path(path))!r}; correct it"
    assert ended.stderr == f"error: {message}\n"
    assert not Path("done").exists()


@pytest.mark.parametrize(
    ("signal", "said"),
    [
        (
            "KILL",
            "was killed by the system, perhaps because memory ran out; use a machine with more, or lower .*, then",
        ),
        ("TERM", "was ended by the signal SIGTERM;"),
    ],
)
def test_a_stage_that_a_signal_ends_gave_no_reason(pipeline: Path, signal: str, said: str) -> None:
    Path("steps/two.py").write_text(f"import os, signal\nos.kill(os.getpid(), signal.SIG{signal})\n")
    ended = mela()
    assert ended.returncode == 1
    assert re.fullmatch(f"error: run: the stage two {said} go on with `mela run --from two`\n", ended.stderr)


def test_a_mistake_in_the_parameters_is_found_before_the_first_stage(pipeline: Path) -> None:
    Path("params.yaml").write_text(GLYPHS.replace("  q: 5.0 ", "  q: null "), encoding="utf-8")
    ended = mela()
    assert ended.stderr == "error: params.yaml: labeler.q: input should be a valid number, got None\n"
    assert (ended.returncode, ended.stdout) == (1, "")
    assert not Path("done").exists()


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        (None, [], "dvc.yaml: no such file; run `mela run` in a project, which `mela init` makes, or in a clone"),
        ("stages: {}\n", [], "dvc.yaml: expected stages, got none; use the file of the project"),
        (
            "stages:\n  one:\n    cmd: rm -r data\n",
            [],
            "dvc.yaml: one: expected the command `python -m MODULE`, got 'rm -r data'; correct it",
        ),
        (
            "stages:\n  one:\n    cmd: python -m steps.one\n",
            ["--from", "four"],
            "--from: expected one of one, got 'four'; correct it",
        ),
    ],
)
def test_it_refuses_in_one_line(pipeline: Path, content: str | None, arguments: list[str], message: str) -> None:
    Path("dvc.yaml").unlink()
    if content is not None:
        Path("dvc.yaml").write_text(content)
    ended = mela(*arguments)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"error: {message}\n")
    assert not Path("done").exists()


@pytest.fixture
def cells(pipeline: Path) -> Path:
    """The same pipeline, whose second stage has two cells, each with an output and what an earlier run has left."""
    Path("steps/two.py").write_text(
        "import sys\nfrom pathlib import Path\n"
        "if Path('fail', sys.argv[1]).exists(): sys.exit(3)\n"
        "with Path('done').open('a') as file: file.write(f'two-{sys.argv[1]} ')\n"
        "Path(f'data/{sys.argv[1]}').write_text('new')\n"
    )
    stages = YAML().load(Path("dvc.yaml"))
    stages["stages"]["two"] = {
        "matrix": {"labels": ["a", "b"]},
        "cmd": "python -m steps.two ${item.labels}",
        "outs": ["data/${item.labels}"],
        "plots": [{"data/${item.labels}.csv": {"cache": False}}],
    }
    YAML().dump(stages, Path("dvc.yaml"))
    declare(three=["data/three"])
    for name in ("a", "b", "a.csv", "b.csv", "three", "c"):
        Path("data").mkdir(exist_ok=True)
        Path(f"data/{name}").write_text("old")
    return pipeline


def test_cells_of_a_stage_are_named_and_run_one_by_one(cells: Path) -> None:
    ended = mela()
    assert (ended.returncode, ended.stderr) == (0, "")
    assert Path("done").read_text() == "one two-a two-b three "
    assert [line for line in ended.stdout.splitlines() if " of " in line and "run: deleted" not in line] == [
        "run: one (1 of 4)",
        "run: two@a (2 of 4)",
        "run: two@b (3 of 4)",
        "run: three (4 of 4)",
    ]
    assert sorted(path.name for path in Path("data").iterdir()) == ["a", "b", "c"]


def test_a_run_goes_on_with_a_cell(cells: Path) -> None:
    """What the cells before it have written stays; what comes after it is deleted."""
    Path("fail").mkdir()
    Path("fail/b").touch()
    ended = mela()
    advice = "for the reason above; correct it, then go on with `mela run --from two@b`"
    assert (ended.returncode, ended.stderr) == (1, f"error: run: the stage two@b ended with status 3, {advice}\n")
    assert sorted(path.name for path in Path("data").iterdir()) == ["a", "c"]
    Path("fail/b").unlink()
    Path("data/three").write_text("old")
    again = mela("--from", "two@b")
    assert again.stdout.startswith("run: not run again, as --from asks: one, two@a\nrun: two@b (3 of 4)\n")
    assert Path("done").read_text() == "one two-a two-b three "
    assert sorted(path.name for path in Path("data").iterdir()) == ["a", "b", "c"]


def test_a_stage_with_cells_is_no_place_to_begin(cells: Path) -> None:
    ended = mela("--from", "two")
    message = "--from: expected one of one, two@a, two@b, three, got 'two'; correct it"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"error: {message}\n")
    assert not Path("done").exists()


def test_the_cells_of_the_project_are_its_trainings() -> None:
    found, outputs = stage_commands(ROOT / "dvc.yaml"), stage_outputs(ROOT / "dvc.yaml")
    assert found.keys() == outputs.keys()
    cells = {name: command for name, command in found.items() if "@" in name}
    rounds = {f"round@{number}": ["stages.round", number] for number in ROUNDS}
    assert cells == rounds | {f"pretrain@{labels}": ["stages.pretrain", labels] for labels in LABELS}
    for name in found.keys() - {"code"}:
        assert sorted(map(str, outputs[name])) == sorted(listed(name, "outs", "metrics", "plots"))


def test_the_file_lists_every_stage_after_those_that_it_needs() -> None:
    assert [*dict.fromkeys(name.partition("@")[0] for name in stage_commands(ROOT / "dvc.yaml"))] == ["code", *STAGES]
    made: set[str] = set()
    outputs = {out for stage in STAGES for out in listed(stage, "outs", "metrics", "plots")}
    for stage in STAGES:
        for cell in [f"{stage}@{number}" for number in ROUNDS] if stage == "round" else [stage]:
            needed = {dep for use in ("merged", "pruned") for dep in listed(cell, "deps", use=use) if dep in outputs}
            assert needed <= made, f"{cell} stands before {needed - made}"
            made |= set(listed(cell, "outs", "metrics", "plots"))


def test_the_projects_pipeline_runs_without_git_and_dvc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder that holds nothing but what a copy of the project has."""
    monkeypatch.chdir(tmp_path)
    for name in ("mela", "stages", "dvc.yaml"):
        Path(name).symlink_to(ROOT / name)
    Path("params.yaml").write_text(GLYPHS, encoding="utf-8")
    change(Path("params.yaml"), TINY | {"compare.oracle": False})
    ended = mela(PATH="")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "pretrain@oracle: not trained, since `compare` has it off" in ended.stdout
    assert Path("results/report.html").is_file()
    assert Path("results/metrics.json").is_file()
    # the labels and trainings before it are kept
    kept = {path: path.stat().st_mtime_ns for path in Path("models").rglob("*") if path.is_file()}
    ended = mela("--from", "pretrain@pruned", PATH="")
    assert (ended.returncode, ended.stderr) == (0, "")
    written = {path.stem for path, moment in kept.items() if path.stat().st_mtime_ns != moment}
    assert written == {"pruned", "kmeans", "oracle", "temperatures"}
