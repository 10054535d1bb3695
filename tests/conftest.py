import os
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from shared_people import draw_people

from mela.runtime.console import speak

ROOT = Path(__file__).parents[1]
# small problems: threads would only wait for each other
os.environ.setdefault("OMP_NUM_THREADS", "1")
# and many processes, each of which would compile all that it imports anew
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# a shell that starts tests in the background has them, and all that they start, ignore Ctrl-C, which some are about
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TINY = {
    "data.images_per_class": 20,
    "data.size": 16,
    "tasks.train": 80,
    "tasks.val": 4,
    "tasks.test": 12,
    "model.width": 8,
    "augment.crop_padding": 1,
    "augment.flip": True,
    "augment.jitter": 0.2,
    "embed.epochs": 2,
    "embed.tasks_per_epoch": 20,
    "embed.milestones": [1],
    "labeler.n_clusters": 120,
    "labeler.q": 6.5,
    "kmeans.n_clusters": 20,
    "pretrain.epochs": 2,
    "pretrain.milestones": [1],
    "evaluate.support_copies": 2,
    "report.map_classes": 5,
    "report.map_images": 6,
    "report.usage": False,
    "runtime.device": "cpu",
}
OF_PEOPLE = {
    "data.name": "tasks",
    "data.root": "mine",
    "tasks.shots": 2,
    "embed.tasks_per_epoch": None,
    "embed.epochs": 12,
    "embed.milestones": [8],
    "labeler.n_clusters": 12,
    "kmeans.n_clusters": 6,
    "evaluate.shots": [1],
}
STAGES = [
    "images",
    "names",
    "manifest",
    "embed",
    "extract",
    "label",
    "assign",
    "label_kmeans",
    "label_oracle",
    "score_labels",
    "pretrain",
    "evaluate",
    "map",
    "report",
]


@pytest.fixture(autouse=True, scope="session")
def say_it() -> None:
    """Stages that run in this process say what they do, as they do in one of their own."""
    speak("normal")


@pytest.fixture(autouse=True, scope="session")
def give_memory_back() -> Iterator[None]:
    """Stages that run in this process do not make it keep freed memory, which other tests measure."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mela.runtime.device.keep_freed_memory", lambda: None)
        yield


def change(params: Path, changes: Mapping[str, Any]) -> None:
    """Set dotted keys of a params file."""
    yaml = YAML()
    document = yaml.load(params.read_text(encoding="utf-8"))
    for key, value in changes.items():
        block, name = key.split(".")
        document[block][name] = value
    with params.open("w", encoding="utf-8") as file:
        yaml.dump(document, file)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with the parameters of a tiny run, as the current directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text((ROOT / "presets/glyphs.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    change(tmp_path / "params.yaml", TINY)
    return tmp_path


def run_stages(*names: str) -> None:
    """Run stages in this process, in the current directory; all of them when none is named."""
    for name in names or STAGES:
        import_module(f"stages.{name}").main()


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which all stages have run on tiny glyphs, to be copied or read."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        shutil.copy(ROOT / "presets/glyphs.yaml", "params.yaml")
        change(Path("params.yaml"), TINY)
        run_stages()
    return folder


@pytest.fixture(scope="session")
def of_people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which all stages have run on what people have sorted, to be copied or read."""
    folder = tmp_path_factory.mktemp("people")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        draw_people(folder / "mine")
        shutil.copy(ROOT / "presets/glyphs.yaml", "params.yaml")
        change(Path("params.yaml"), TINY | OF_PEOPLE)
        run_stages()
    return folder


@pytest.fixture
def people_copied(of_people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, as the current directory."""
    shutil.copytree(of_people, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture
def copied(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, as the current directory."""
    shutil.copytree(finished, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"
