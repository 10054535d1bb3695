"""The command line as its users meet it: help, completion, what it says and how it ends."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from mela.cli import main as cli
from tests.helpers.processes import python
from tests.helpers.project import ROOT

COMMAND = typer.main.get_command(cli.app)
NAMES = [["preset"], ["summary"], ["download"], ["label"], ["data"], ["data", "check"], ["predict"], ["export"]]


def mela(*arguments: str, folder: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    return python("-W", "error", "-m", "mela", *arguments, folder=folder, COLUMNS="120", **environment)


def plain(text: str) -> str:
    """In one line, without the frames around options."""
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", text).split())


def test_help_is_where_one_would_begin() -> None:
    done = mela("--help")
    assert done.returncode == 0
    said = plain(done.stdout)
    for words in ("dvc repro", "dvc exp run -S pretrain.epochs=20", "The exit status is 0", "NO_COLOR", "MELA_OUTPUT"):
        assert words in said
    order = [done.stdout.index(panel) for panel in ("Run the pipeline", "Your own data", "Use what was learned")]
    assert order == sorted(order)
    for name, *_ in NAMES:
        assert re.search(rf"│ {name} ", done.stdout)


@pytest.mark.parametrize("names", NAMES, ids=" ".join)
def test_every_command_explains_itself(names: list[str]) -> None:
    """And each of its options."""
    command = COMMAND
    for name in names:
        command = command.commands[name]  # type: ignore[attr-defined]
    assert command.help
    for parameter in command.params:
        assert getattr(parameter, "help", None), f"{names}: {parameter.name}"


def test_no_arguments_show_the_help() -> None:
    done = mela()
    assert "Run the pipeline" in done.stdout + done.stderr
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("mela preset om", ["omniglot", "omniglot_cpu", "omniglot_on_paper", "omniglot_people"]),
        ("mela download c", ["cifar100"]),
        ("mela pre", ["predict", "preset"]),
        ("mela data ", ["check", "put-back"]),
        ("mela export --on", ["--onnx"]),
    ],
)
def test_the_shell_completes(typed: str, offered: list[str]) -> None:
    words = typed.split(" ")
    code = "import sys; sys.argv = ['mela']; from mela.cli.main import main; main()"
    asked = {"_MELA_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    done = python("-c", code, folder=ROOT, **asked)
    assert sorted(done.stdout.split()) == offered


def test_version() -> None:
    done = mela("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"mela \d+\.\d+\.\d+\S*\n", done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(("option", "said"), [("--quiet", False), ("-q", False), ("--verbose", True)])
def test_quiet_and_verbose(option: str, said: bool, tmp_path: Path) -> None:
    done = mela(option, "preset", "glyphs", "--params", str(tmp_path / "params.yaml"))
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) == said
    assert (tmp_path / "params.yaml").is_file()


@pytest.mark.slow
def test_verbose_tells_where_an_error_comes_from() -> None:
    done = mela("--verbose", "preset", "nope")
    assert done.returncode == 1
    assert "Traceback" in done.stdout
    assert done.stderr.startswith("error: preset nope: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in mela("preset", "nope").stdout


def test_both_at_once() -> None:
    done = mela("-q", "-v", "summary")
    assert done.returncode == 1
    assert done.stderr == "error: --quiet, --verbose: expected one of them at most, got both; leave one out\n"


def test_an_output_that_is_not_known() -> None:
    done = mela("summary", MELA_OUTPUT="loud")
    assert done.returncode == 1
    assert done.stderr == "error: MELA_OUTPUT: expected quiet, normal, verbose, got 'loud'; correct it or unset it\n"
    stage = python("-m", "stages.label_oracle", folder=ROOT, MELA_OUTPUT="loud")
    assert (stage.returncode, stage.stderr) == (1, done.stderr)


@pytest.mark.parametrize(("output", "lines"), [("quiet", 0), ("normal", 2), ("verbose", 2)])
def test_a_stage_says_as_much_as_is_wanted(output: str, lines: int, copied: Path) -> None:
    done = python("-m", "stages.label_oracle", folder=copied, MELA_OUTPUT=output)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == lines


def test_ctrl_c_has_a_status_of_its_own_and_no_traceback() -> None:
    # in short parts: a signal just before a sleep is noticed after it
    wait = "lambda: (print('ready', flush=True), [time.sleep(0.01) for _ in range(3000)])"
    code = f"import time; from mela.cli import main as cli; cli.app.command('wait')({wait})"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{code}; import sys; sys.argv = ['mela', 'wait']; cli.main()"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in errors


def test_a_wrong_command_line_is_another_status() -> None:
    assert mela("label").returncode == 2
    assert mela("nope").returncode == 2
