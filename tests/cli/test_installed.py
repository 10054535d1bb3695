"""MeLa as people install it who have no clone: what the wheel holds, a project made with it, and what to install."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from PIL import Image

import mela
from mela.cli.shipped_files import OF_A_PROJECT, find_preset, preset_files, project_files
from stages.code_hashes.reached_code import Code
from tests.helpers.dvc import COMMITTER
from tests.helpers.forked import with_forks
from tests.helpers.project import ROOT, edit

PRESETS = sorted(path.stem for path in (ROOT / "presets").glob("*.yaml"))

NOTEBOOK = ROOT / "docs/guides/tour.ipynb"
FIGURES = re.compile(
    r"\d+ answers: adjusted Rand index (?P<before>[\d.]+) -> (?P<after>[\d.]+)"
    r"|five of each: (?P<five>\d+)%"
    r"|her letters: (?P<known>\d+)%"
    r"|W and Z: (?P<unknown>\d+)%"
)
IGNORED = shutil.ignore_patterns("__pycache__", "*.egg-info")
VERSION = "1.2.3"


def run(*command: object, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    # what PYTHONPATH names would come before what is installed
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | COMMITTER | variables
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, env=environment, timeout=600)


def done(*command: object, folder: Path, **variables: str) -> str:
    """What a command prints that has to succeed and tell no errors."""
    ended = run(*command, folder=folder, **variables)
    assert (ended.returncode, ended.stderr) == (0, ""), ended
    return ended.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel that is built from it, as a release has them; nothing is fetched."""
    folder = tmp_path_factory.mktemp("built")
    # a build leaves files behind, so a copy of the project is built
    for pattern in (*OF_A_PROJECT, "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        for path in ROOT.glob(pattern):
            copy = folder / "source" / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    for name in ("mela", "presets"):
        shutil.copytree(ROOT / name, folder / "source" / name, ignore=IGNORED)
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", "."]
    built = run(*build, folder=folder / "source", SETUPTOOLS_SCM_PRETEND_VERSION=VERSION)
    assert built.returncode == 0, built.stderr
    return folder / "dist"


@pytest.fixture(scope="module")
def python(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel, beside the packages that this one has."""
    folder = tmp_path_factory.mktemp("installed")
    (file,) = distributions.glob("*.whl")
    done(sys.executable, "-m", "venv", "--without-pip", folder / "empty", folder=folder)
    python = folder / "empty/bin/python"
    (packages,) = (folder / "empty/lib").glob("python*/site-packages")
    offline = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    installed = run(sys.executable, "-m", "pip", "install", *offline, "--target", packages, file, folder=folder)
    assert installed.returncode == 0, installed.stderr
    # the packages that MeLa needs come last, and MeLa itself only from the wheel
    (packages / "needed.pth").write_text(f"{Path(np.__file__).parents[1]}\n")
    found = done(python, "-c", "import mela; print(mela.__file__)", folder=folder)
    assert found.strip() == str(packages / "mela/__init__.py")
    return python


@pytest.mark.slow
@pytest.mark.versions
def test_what_is_built_is_fit_for_the_index(distributions: Path, tmp_path: Path) -> None:
    files = sorted(distributions.iterdir())
    assert [file.name for file in files] == [f"mela_learn-{VERSION}-py3-none-any.whl", f"mela_learn-{VERSION}.tar.gz"]
    told = run(sys.executable, "-m", "twine", "check", "--strict", *files, folder=tmp_path)
    assert told.returncode == 0, told.stdout
    names = set(zipfile.ZipFile(files[0]).namelist())
    shipped = {f"mela/project/{name}" for name in [*project_files(), *(f"presets/{name}.yaml" for name in PRESETS)]}
    assert shipped == {name for name in names if name.startswith("mela/project/")}
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "mela").rglob("*.py*") if path.suffix != ".pyc"}
    assert modules <= names


@pytest.mark.slow
@pytest.mark.versions
def test_the_wheel_holds_the_presets(python: Path, tmp_path: Path) -> None:
    told = done(python, "-m", "mela", "preset", "glyphs", folder=tmp_path)
    assert told == "params.yaml is now the preset glyphs; `dvc repro` runs it in a project, which `mela init` makes\n"
    assert (tmp_path / "params.yaml").read_bytes() == (ROOT / "presets/glyphs.yaml").read_bytes()
    refused = run(python, "-m", "mela", "preset", "nope", folder=tmp_path)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == f"error: preset nope: no such preset; expected one of {', '.join(PRESETS)}\n"


@pytest.mark.slow
@pytest.mark.versions
def test_the_wheel_holds_the_templates(python: Path) -> None:
    (packages,) = python.parents[1].glob("lib/python*/site-packages")
    for name in ("mela/reporting/page/page.html", "mela/inference/model_card.md.jinja"):
        assert (packages / name).read_bytes() == (ROOT / name).read_bytes()


@pytest.mark.slow
@pytest.mark.versions
def test_the_wheel_tells_its_version(python: Path, tmp_path: Path) -> None:
    assert done(python, "-c", "import mela; print(mela.__version__)", folder=tmp_path).strip() == VERSION
    assert done(python, "-m", "mela", "--version", folder=tmp_path) == f"mela {VERSION}\n"
    assert mela.__version__ == version("mela-learn")


@pytest.mark.slow
@pytest.mark.versions
def test_the_wheel_checks_data(python: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in (f"mine/p{p}/l{label}/{n}.png" for p in range(6) for label in range(2) for n in range(3)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (20, 20), dtype=np.uint8)).save(tmp_path / name)
    told = done(python, "-m", "mela", "data", "check", "mine", "--write", "params.yaml", folder=tmp_path)
    assert told.endswith("made for this data; `dvc repro` runs it in a project, which `mela init` makes\n")
    assert f"root: {(tmp_path / 'mine').resolve()}" in (tmp_path / "params.yaml").read_text("utf-8")


@pytest.fixture(scope="module")
def toured(python: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The project that the tour makes where only the wheel is, and the notebook with what its cells print."""
    folder = tmp_path_factory.mktemp("toured")
    command = [python, ROOT / "docs/_tools/tour.py", "--out", folder / "ran.ipynb", "--folder", folder]
    (packages,) = python.parents[1].glob("lib/python*/site-packages")
    # stages start as forks, without the seconds that importing torch takes in each; PYTHONPATH gives them the wheel
    forks = with_forks(os.environ | COMMITTER | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(packages)})
    words = [str(word) for word in command]
    ended = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, env=forks, timeout=600)
    assert ended.returncode == 0, ended.stderr
    assert f"Made by MeLa {VERSION}:" in (folder / "tour/results/report.html").read_text(encoding="utf-8")
    return folder / "tour", nbformat.read(folder / "ran.ipynb", as_version=4)  # type: ignore[no-untyped-call]


@pytest.mark.slow
@pytest.mark.versions
def test_the_tour_runs_without_a_clone(toured: tuple[Path, Any]) -> None:
    """`mela init`, `dvc repro`, answers, another `dvc repro` and predictions; figures are those of the processor."""
    committed, ran = nbformat.read(NOTEBOOK, as_version=4), toured[1]  # type: ignore[no-untyped-call]
    assert [cell.source for cell in ran.cells] == [cell.source for cell in committed.cells]
    for book in (committed, ran):
        cells = [cell for cell in book.cells if cell.cell_type == "code"]
        assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
        outputs = [output for cell in cells for output in cell.outputs]
        assert sum("image/png" in output.get("data", {}) for output in outputs) == 3
        printed = "".join(output.get("text", "") for output in outputs)
        found = {
            name: float(value) for one in FIGURES.finditer(printed) for name, value in one.groupdict().items() if value
        }
        assert set(found) == set(FIGURES.groupindex)
        # what the text says of them
        assert found["after"] >= found["before"] > 0.5
        assert found["five"] > 50
        assert found["unknown"] > found["known"]
    assert str(Path.home()) not in NOTEBOOK.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.versions
def test_a_project_has_all_that_a_clone_has(python: Path, toured: tuple[Path, Any]) -> None:
    project, variables = toured[0], {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    assert "MeLa on tasks in data/raw/letters" in done(python, "-m", "mela", "summary", folder=project)
    code = json.loads((project / "data/code/report.json").read_text(encoding="utf-8"))
    assert code == Code(ROOT).reached("stages.report"), "so that a cache can be shared with clones"
    # nothing has changed: the code is looked at, and no stage runs again
    again = run(python, "-m", "dvc", "repro", folder=project, **variables)
    assert re.findall(r"^Running stage '(\S+)'", again.stdout, re.MULTILINE) == ["code"], again
    # a stage that the user has changed is code as those of MeLa are
    edit(project / "stages/map.py", "if __name__", "print('mine')\n\nif __name__")
    changed = run(python, "-m", "dvc", "repro", "map", folder=project, **variables)
    assert re.findall(r"^Running stage '(\S+)'", changed.stdout, re.MULTILINE) == ["code", "map"], changed
    for words in (["add", "--all"], ["commit", "--quiet", "--message", "mine"]):
        assert run("git", *words, folder=project).returncode == 0
    assert done(python, "-m", "mela", "init", "--update", folder=project).startswith(".: 1 of ")


@pytest.mark.slow
@pytest.mark.versions
def test_a_project_is_reviewed_and_its_model_used(python: Path, toured: tuple[Path, Any]) -> None:
    person = next((toured[0] / "data/raw/letters").iterdir())
    out = toured[0] / "predictions.csv"
    predict = ["predict", "--support", person, "--query", person, "--strict", "--unknown", "--out", out]
    done(python, "-m", "mela", *predict, folder=toured[0])
    assert len(out.read_text(encoding="utf-8").splitlines()) == 1 + 4 * 6
    command = [python, "-u", "-m", "mela", "review", "--no-browser"]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with subprocess.Popen(command, cwd=toured[0], env=environment, stdout=subprocess.PIPE, text=True) as review:
        assert review.stdout is not None
        try:
            address = next(found[0] for line in review.stdout if (found := re.search(r"http://\S+", line)))
            with urllib.request.urlopen(address, timeout=60) as page:
                assert page.status == 200
                assert "<title>" in page.read().decode("utf-8")
        finally:
            review.send_signal(signal.SIGINT)
            rest = review.communicate(timeout=60)[0]
    assert (review.returncode, rest) == (0, "review: 30 answers are in corrections.csv; `dvc repro` keeps to them\n")


@pytest.mark.slow
@pytest.mark.versions
def test_stages_of_another_version_tell_what_to_do(python: Path, tmp_path: Path) -> None:
    done(python, "-m", "mela", "init", folder=tmp_path)
    edit(tmp_path / "stages/manifest.py", "\n\ndef main(", "\n\nfrom mela.data import gone\n\n\ndef main(")
    ended = run(python, "-m", "stages.manifest", folder=tmp_path)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: stages: not those of the installed version of MeLa (")
    assert ended.stderr.endswith("; run `mela init --update` here\n")
    assert ended.stderr.count("\n") == 1
    assert run("git", "commit", "--quiet", "--all", "--message", "mine", folder=tmp_path).returncode == 0
    assert done(python, "-m", "mela", "init", "--update", folder=tmp_path).startswith(".: 1 of ")


def test_presets_of_the_current_folder_come_first_and_hide_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_preset("mine/own.yaml") == Path("mine/own.yaml")
    assert find_preset("own") == Path("presets/own.yaml"), "which is not there, and is named"
    (tmp_path / "presets").mkdir()
    (tmp_path / "presets/own.yaml").touch()
    assert find_preset("own") == Path("presets/own.yaml")
    assert find_preset("glyphs") == ROOT / "presets/glyphs.yaml"
    assert [*preset_files()] == sorted(["own", *PRESETS])
    (tmp_path / "presets/glyphs.yaml").touch()
    assert find_preset("glyphs") == Path("presets/glyphs.yaml")
    assert [*preset_files(Path("presets"))] == ["glyphs", "own"]


# an argument of an installer, wherever it stands among the others, that is the name alone and no path or file
STRANGER = re.compile(
    r"\b(?:install|uv\s+add|uvx|pipx\s+run)\b(?:[ \t]+[^\s;&|`]+)*?[ \t]+[\"']?mela(?=[\s\"'`,;\[=<>~!]|$)",
    re.MULTILINE,
)


def test_nobody_is_told_to_install_the_package_of_this_name_on_the_index() -> None:
    for wrong in (
        "pip install mela[onnx]",
        "uv pip install -U 'mela'",
        "pip install onnx mela",
        "pip install -r requirements.txt mela",
        "pip install torch==2 'mela[timm]'",
        "pip install mela==0.1.0",
        "uv add mela",
        "conda install -c conda-forge mela",
        "uv pip install --python .venv/bin/python mela",
    ):
        assert STRANGER.search(wrong), wrong
    for right in ("pip install mela-0.1.0-py3-none-any.whl", "pip install './wheels/mela[onnx]'", "pip install -e ."):
        assert not STRANGER.search(right), right
    patterns = ["*.py", "*.md", "*.html", "*.toml", "*.yml", "*.yaml", "Makefile"]
    tracked = run("git", "ls-files", *patterns, folder=ROOT)
    files = [ROOT / name for name in tracked.stdout.splitlines() if ROOT / name != Path(__file__)]
    assert len(files) > 300
    assert [path for path in files if path.exists() and STRANGER.search(path.read_text(encoding="utf-8"))] == []
