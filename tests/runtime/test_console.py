"""What programs say, and how much of it."""

import logging
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from mela.errors import MelaError
from mela.runtime import progress as watching
from mela.runtime.console import log, print_error, speak
from mela.runtime.progress import SILENT, watched
from tests.helpers.processes import python
from tests.helpers.project import ROOT

WORK = """
import time
from mela.runtime.console import speak
from mela.runtime.progress import watched
speak()
with watched("stage", "things") as watch:
    watch.begin(40, 10)
    for number in range(30):
        watch.advance()
        time.sleep(0.02)
        if number == 15:
            from mela.runtime.console import log
            log.info("a line in between")
print("done")
"""


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    yield
    speak("normal")


def on_a_terminal(*arguments: str, **environment: str) -> tuple[int, str]:
    """Exit status of a Python program on a terminal of its own, and what is on it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"} | environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    parts = []
    # Linux ends a terminal whose other side is closed by an error
    with suppress(OSError):
        while part := os.read(ours, 4096):
            parts.append(part)
    os.close(ours)
    return process.wait(timeout=60), b"".join(parts).decode()


def test_a_bar_on_a_terminal_has_rate_and_time_left() -> None:
    status, shown = on_a_terminal("-c", WORK)
    assert status == 0
    assert re.search(r"stage.*\d+/40.*things.*a second.*0:00:\d\d", shown)
    assert "a line in between\r\n" in shown
    assert shown.rstrip().endswith("done")
    # the cursor never goes away: a process that is killed could not bring it back
    assert "\x1b[?25l" not in shown


def test_no_colours_if_none_are_wanted() -> None:
    _, shown = on_a_terminal("-c", WORK, NO_COLOR="1")
    assert "/40" in shown
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", shown)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "shown"),
    [({"TERM": "dumb"}, "a line in between\r\ndone\r\n"), ({"MELA_OUTPUT": "quiet"}, "done\r\n")],
    ids=["the terminal cannot draw", "quiet"],
)
def test_no_bar_on_a_terminal(environment: dict[str, str], shown: str) -> None:
    assert on_a_terminal("-c", WORK, **environment) == (0, shown)


def test_lines_elsewhere(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with watched("embed", "steps") as watch:
        watch.begin(1000, 100, of="first")
        for _ in range(900):
            now += 0.1
            watch.advance()
    assert capsys.readouterr().out.splitlines() == [
        "embed: first: 400 of 1,000 steps, 10 a second, 60.0 s left",
        "embed: first: 700 of 1,000 steps, 10 a second, 30.0 s left",
    ]


def test_work_that_is_soon_done_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with watched("map", "images") as watch:
        watch.begin(2)
        watch.advance(2)
    assert capsys.readouterr() == ("", "")


def test_one_of_several_processes_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "BETWEEN", 0)
    with watched("embed", "steps", shown=False) as watch:
        assert watch is SILENT


@pytest.mark.parametrize(
    ("output", "lines"), [("quiet", []), ("normal", ["told"]), ("verbose", ["more", "told"]), (None, ["told"])]
)
def test_how_much_is_said(
    output: str | None, lines: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MELA_OUTPUT", raising=False)
    speak(output)
    log.debug("more")
    log.info("told")
    assert capsys.readouterr().out.splitlines() == lines


def test_the_environment_decides(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MELA_OUTPUT", "quiet")
    speak()
    log.info("told")
    assert capsys.readouterr().out == ""
    monkeypatch.setenv("MELA_OUTPUT", "loud")
    with pytest.raises(MelaError, match=r"^MELA_OUTPUT: expected quiet, normal, verbose, got 'loud'; "):
        speak()


def test_the_library_is_silent_by_itself() -> None:
    """As libraries are: what it says is for those who ask the logger."""
    code = "import logging; from mela.runtime import log; log.info('no'); logging.basicConfig(level=20)"
    done = python("-c", f"{code}; log.info('yes')", folder=ROOT)
    assert (done.stdout, done.stderr) == ("", "INFO:mela:yes\n")


def test_a_full_output_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full: a device that takes nothing")
    with Path("/dev/full").open("w") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        with pytest.raises(OSError, match="No space left"):
            log.info("told")
        # or it would try again when it is closed
        patch.setattr(full, "close", lambda: None)
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())


def test_handlers_do_not_pile_up() -> None:
    before = len(logging.getLogger("mela").handlers)
    speak("normal")
    assert len(logging.getLogger("mela").handlers) == before


def test_errors_are_plain_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    print_error("error: params.yaml: no such file")
    assert capsys.readouterr().err == "error: params.yaml: no such file\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "error"),
    [({}, "\x1b[1;31merror:\x1b[0m"), ({"NO_COLOR": "1"}, "error:"), ({"TERM": "dumb"}, "error:")],
)
def test_errors_are_red_on_terminals(environment: dict[str, str], error: str) -> None:
    status, seen = on_a_terminal("-m", "mela", "preset", "nope", **environment)
    assert status == 1
    assert seen.startswith(f"{error} preset nope: no such preset")
    assert seen.count("\n") == 1
