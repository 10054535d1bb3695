"""What a run took, and where and with what it was made."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mela.errors import MelaError
from mela.reporting.environment import commit, hardware, versions
from mela.runtime.console import duration
from mela.runtime.usage import Usage, keep, kept, measured
from studies.clones import for_clone
from tests.helpers.processes import started


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.8449, "0.84 s"),
        (9.99, "9.99 s"),
        (12.34, "12.3 s"),
        (99.97, "1 min 40 s"),
        (125.4, "2 min 05 s"),
        (3599.9, "1 h 00 min"),
        (12_345, "3 h 25 min"),
    ],
)
def test_durations_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.slow
def test_time_and_memory() -> None:
    with measured() as usage:
        held = bytearray(b"x" * 300 * 2**20)
        time.sleep(0.2)
    assert 0.2 <= usage.seconds < 5
    assert len(held) < usage.memory < 2**40
    with measured(time.time() - 100) as usage:
        pass
    assert usage.seconds == pytest.approx(100, abs=1)


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    keep("label", Usage(seconds=1.5, memory=2**20), tmp_path)
    assert kept(["images", "label"], tmp_path) == {"label": Usage(seconds=1.5, memory=2**20)}
    (tmp_path / "label.json").write_text("{}")
    with pytest.raises(MelaError, match=r"label\.json: expected seconds and memory_bytes, got none; delete it"):
        kept(["label"], tmp_path)


@pytest.mark.slow
def test_a_stage_tells_what_it_took(project: Path) -> None:
    held = bytearray(b"x" * 500 * 2**20)
    ended = started(sys.executable, "-m", "stages.images")
    found = re.search(r"^images: [\d.]+ s, (\d+) MiB of memory at most$", ended.stdout, flags=re.MULTILINE)
    assert found is not None
    assert 50 < int(found[1]) < 480 < len(held) / 2**20, "not what the process that started it holds"
    assert kept(["images"], project / "results/usage")["images"].seconds > 0.1


def test_versions_and_hardware() -> None:
    assert {"Python", "torch", "numpy", "mela"} <= versions().keys()
    assert re.fullmatch(r".+, \d+ cores?, \d+ GiB of memory; \w+", hardware())


def test_the_commit_is_that_of_the_code(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        names = {f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        command = ["git", "-C", str(tmp_path), *arguments]
        done = subprocess.run(command, env=for_clone(**names), capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert commit(tmp_path) is None
    git("init", "--quiet")
    assert commit(tmp_path) is None
    (tmp_path / "mela").mkdir()
    (tmp_path / "mela/code.py").write_text("1")
    git("add", "--all")
    git("commit", "--quiet", "--message", "code")
    code = git("rev-parse", "HEAD")
    (tmp_path / "results.csv").write_text("1")
    git("add", "--all")
    git("commit", "--quiet", "--message", "results")
    assert commit(tmp_path) == code != git("rev-parse", "HEAD")
    (tmp_path / "params.yaml").write_text("of another experiment")
    assert commit(tmp_path) == code
    (tmp_path / "mela/code.py").write_text("2")
    assert commit(tmp_path) == f"{code}, with changes"
