import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mela.runtime.console import speak
from tests.helpers.people import draw_people
from tests.helpers.project import OF_PEOPLE, ROOT, TINY, change, run_stages

# small problems: threads would only wait for each other
os.environ.setdefault("OMP_NUM_THREADS", "1")
# and many processes, each of which would compile all that it imports anew
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# a shell that starts tests in the background has them, and all that they start, ignore Ctrl-C, which some are about
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the slow tests, so that no process is left with one of them while the others have ended."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


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


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with the parameters of a tiny run, as the current directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text((ROOT / "presets/glyphs.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    change(tmp_path / "params.yaml", TINY)
    return tmp_path


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
