"""The library as people install it who have no clone: what the wheel holds, and what they are told to install."""

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import mela
from mela.cli.preset_folder import find_preset, preset_files
from tests.helpers.project import ROOT

IGNORED = shutil.ignore_patterns("__pycache__", "*.egg-info")


def run(*command: object, folder: Path) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    # what PYTHONPATH names would come before what is installed
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment into which a wheel is installed, beside the packages that this one has.

    Nothing is fetched: the wheel is built by the setuptools that is here, and what it needs is here as well.
    """
    folder = tmp_path_factory.mktemp("installed")
    # a build leaves files behind, so a copy of the project is built
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    for name in ("mela", "presets"):
        shutil.copytree(ROOT / name, folder / name, ignore=IGNORED)
    offline = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    wheel = [sys.executable, "-m", "pip", "wheel", *offline, "--no-build-isolation", "--wheel-dir", "wheels", "."]
    built = run(*wheel, folder=folder)
    assert built.returncode == 0, built.stderr
    (file,) = (folder / "wheels").glob("mela-*.whl")
    made = run(sys.executable, "-m", "venv", "--without-pip", folder / "empty", folder=folder)
    assert made.returncode == 0, made.stderr
    python = folder / "empty/bin/python"
    (packages,) = (folder / "empty/lib").glob("python*/site-packages")
    target = ["--target", packages]
    installed = run(sys.executable, "-m", "pip", "install", *offline, *target, file, folder=folder)
    assert installed.returncode == 0, installed.stderr
    # the packages that MeLa needs come last, and MeLa itself only from the wheel
    (packages / "needed.pth").write_text(f"{Path(np.__file__).parents[1]}\n")
    found = run(python, "-c", "import mela; print(mela.__file__)", folder=folder / "wheels")
    assert found.stdout.strip() == str(packages / "mela/__init__.py"), found.stderr
    return python


@pytest.mark.slow
@pytest.mark.versions
def test_the_wheel_holds_the_presets(python: Path, tmp_path: Path) -> None:
    done = run(python, "-m", "mela", "preset", "glyphs", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "params.yaml is now the preset glyphs; `dvc repro` runs it in a clone of the project\n"
    assert (tmp_path / "params.yaml").read_bytes() == (ROOT / "presets/glyphs.yaml").read_bytes()
    refused = run(python, "-m", "mela", "preset", "nope", folder=tmp_path)
    names = ", ".join(sorted(path.stem for path in (ROOT / "presets").glob("*.yaml")))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == f"error: preset nope: no such preset; expected one of {names}\n"


@pytest.mark.slow
@pytest.mark.versions
def test_the_wheel_holds_the_templates(python: Path) -> None:
    (packages,) = python.parents[1].glob("lib/python*/site-packages")
    for name in ("mela/reporting/page/page.html", "mela/inference/model_card.md.jinja"):
        assert (packages / name).read_bytes() == (ROOT / name).read_bytes()


@pytest.mark.slow
@pytest.mark.versions
def test_the_wheel_tells_its_version(python: Path, tmp_path: Path) -> None:
    told = run(python, "-c", "import mela; print(mela.__version__)", folder=tmp_path)
    assert told.stdout.strip() == mela.__version__ == version("mela")
    done = run(python, "-m", "mela", "--version", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"mela {mela.__version__}\n")


@pytest.mark.slow
@pytest.mark.versions
def test_the_wheel_checks_data(python: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in (f"mine/p{p}/l{label}/{n}.png" for p in range(6) for label in range(2) for n in range(3)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (20, 20), dtype=np.uint8)).save(tmp_path / name)
    done = run(python, "-m", "mela", "data", "check", "mine", "--write", "params.yaml", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("params.yaml is made for this data; `dvc repro` runs it in a clone of the project\n")
    assert f"root: {(tmp_path / 'mine').resolve()}" in (tmp_path / "params.yaml").read_text("utf-8")


def test_presets_of_the_current_folder_come_first_and_hide_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = sorted(path.stem for path in (ROOT / "presets").glob("*.yaml"))
    assert find_preset("mine/own.yaml") == Path("mine/own.yaml")
    assert find_preset("own") == Path("presets/own.yaml"), "which is not there, and is named"
    (tmp_path / "presets").mkdir()
    (tmp_path / "presets/own.yaml").touch()
    assert find_preset("own") == Path("presets/own.yaml")
    assert find_preset("glyphs") == ROOT / "presets/glyphs.yaml"
    assert [*preset_files()] == sorted(["own", *shipped])
    (tmp_path / "presets/glyphs.yaml").touch()
    assert find_preset("glyphs") == Path("presets/glyphs.yaml")
    assert [*preset_files(Path("presets"))] == ["glyphs", "own"]


FILES = sorted(
    path
    for pattern in ("**/*.py", "**/*.md", "**/*.html", "**/*.toml", "**/*.yml", "**/*.yaml", "Makefile")
    for path in ROOT.glob(pattern)
    if path != Path(__file__) and not any(part.startswith(".venv") or part == "site" for part in path.parts)
)
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
    assert len(FILES) > 300
    assert [path.relative_to(ROOT) for path in FILES if STRANGER.search(path.read_text(encoding="utf-8"))] == []
