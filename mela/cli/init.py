"""Define ``mela init``: make a project, in which the pipeline runs without a clone."""

import shlex
import shutil
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from mela.cli.shipped_files import preset_files
from mela.errors import MelaError
from mela.runtime.console import log

PIPELINE, PARAMS, CONFIG, NAMES = "dvc.yaml", "params.yaml", ".dvc/config", "class_names.csv"
CODE = "python -m stages.code"
# what --update replaces: the rest is the user's from the first day
OF_MELA = (PIPELINE, "stages/", ".dvc/plots/")
# in a clone the stage `code` depends on the package beside it; an installed one can change without a file changing here
IN_A_CLONE, IN_A_PROJECT = "    deps:\n      - mela\n      - stages\n", "    always_changed: true\n"
SETTINGS = "[core]\n    analytics = false\n    check_update = false\n"
NO_GIT = "    no_scm = true\n"
MESSAGE = "Make a project of MeLa"


def init(
    folder: Annotated[Path, typer.Argument(help="Where to make it; new or not.")] = Path(),
    preset: Annotated[
        str,
        typer.Option(help="The preset that becomes params.yaml.", autocompletion=lambda: [*preset_files()]),
    ] = "glyphs",
    update: Annotated[
        bool, typer.Option("--update", help="Replace dvc.yaml, stages/ and .dvc/plots/ by those of this version.")
    ] = False,
) -> None:
    """Make a project: a folder in which `dvc repro` runs the pipeline, with stages, parameters and settings of DVC.

    Nothing that is there is overwritten: `params.yaml` and `.gitignore`, for example, stay as they are. If the folder
    is in no Git repository, it becomes one, with a first commit; without Git, DVC is told to do without it.

    Example: `mela init letters && cd letters && dvc repro`
    """
    from mela.cli.shipped_files import find_preset, project_files, shipped
    from mela.io.appended_tables import header
    from mela.io.atomic import together
    from mela.io.store import write_text
    from mela.labeling import correction_tables, given_names
    from mela.params import check_document

    if folder.exists() and not folder.is_dir():
        raise MelaError(f"{folder}: expected a folder, got a file; choose another name")
    if folder.resolve() == shipped().resolve():
        raise MelaError(
            f"{folder}: this is the clone that MeLa itself is in; choose another folder, or run `dvc repro`"
        )
    if preset not in preset_files():
        raise MelaError(f"--preset: expected one of {', '.join(preset_files())}, got {preset!r}; correct it")
    # what a clone has in these files is its user's: answers, names, and where data are pushed to
    own = {CONFIG: SETTINGS, "corrections.csv": header(correction_tables.COLUMNS), NAMES: header(given_names.COLUMNS)}
    texts = own | {name: path.read_text(encoding="utf-8") for name, path in project_files().items()}
    if texts[PIPELINE].count(IN_A_CLONE) != 1:
        raise MelaError(f"{PIPELINE}: the stage `code` has other dependencies than those of this version; install anew")
    texts[PIPELINE] = texts[PIPELINE].replace(IN_A_CLONE, IN_A_PROJECT)
    git = shutil.which("git")
    if git is None:
        texts[CONFIG] += NO_GIT
    if update:
        _require_project(folder, git)
        # projects of earlier versions lack this file, on which a stage depends
        new = [] if (folder / NAMES).exists() else [NAMES]
        texts = {name: text for name, text in texts.items() if name.startswith(OF_MELA) or name in new}
    else:
        source = find_preset(preset)
        check_document(source)
        texts[PARAMS] = source.read_text(encoding="utf-8")
    different = [name for name, text in texts.items() if _differs(folder / name, text)]
    there = [] if update else [name for name in different if (folder / name).exists()]
    if taken := [name for name in there if name.startswith(OF_MELA)]:
        more = f" and {len(taken) - 3:,} more" if len(taken) > 3 else ""
        raise MelaError(
            f"{folder}: {', '.join(taken[:3])}{more}: there already, with other content; choose another folder, or add "
            f"--update to have {', '.join(OF_MELA)} replaced"
        )
    different = [name for name in different if name not in there]
    with together():
        for name in different:
            write_text(folder / name, texts[name])
    if update:
        log.info(f"{folder}: {len(different):,} of {len(texts):,} files of the pipeline are new or have changed")
        return
    if there:
        log.info(f"{folder}: kept as they are: {', '.join(there)}")
    if git is not None and _git(git, folder, "rev-parse").returncode == 0:
        log.info(f"{folder}: part of a Git repository; `dvc exp run` needs the new files committed there")
    elif git is not None:
        _make_repository(git, folder, different)
    enter = "" if folder.resolve() == Path.cwd() else f"cd {shlex.quote(str(folder))} && "
    params = f"its own {PARAMS}" if PARAMS in there else f"the preset {preset}"
    # importing it would take a second
    by_dvc = find_spec("dvc") is not None
    log.info(f"{folder}: is a project now, with {params}; `{enter}{'dvc repro' if by_dvc else 'mela run'}` runs it")
    if not by_dvc:
        log.info(
            f"{folder}: DVC is not installed; `pip install dvc` brings `dvc repro`, which keeps what has not changed"
        )


def _make_repository(git: str, folder: Path, names: Sequence[str]) -> None:
    """Commit the files to a new repository: DVC compares experiments with a commit."""
    for arguments in (["init", "--quiet"], ["add", "--", *names], ["commit", "--quiet", "-m", MESSAGE]):
        ended = _git(git, folder, *arguments)
        if ended.returncode:
            why = " ".join(ended.stderr.split())
            log.warning(f"{folder}: `git {arguments[0]}` failed: {why}; `dvc exp run` needs a commit")
            return


def _require_project(folder: Path, git: str | None) -> None:
    """Raise MelaError unless a folder is a project of MeLa, of which nothing would be lost."""
    pipeline = folder / PIPELINE
    if not pipeline.is_file() or CODE not in pipeline.read_text(encoding="utf-8", errors="replace"):
        raise MelaError(f"{folder}: --update: expected a project of MeLa, got none; leave out --update")
    changed = "" if git is None else _git(git, folder, "status", "--porcelain", "--", *OF_MELA).stdout.strip()
    if changed:
        first = changed.splitlines()[0].split()[-1]
        raise MelaError(
            f"{folder}: --update would replace {first}, whose changes are in no commit; commit or undo them"
        )


def _differs(path: Path, text: str) -> bool:
    """Tell whether a file is missing, or has another text."""
    return not path.is_file() or path.read_bytes() != text.encode("utf-8")


def _git(git: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([git, "-C", folder, *arguments], capture_output=True, text=True, check=False)  # noqa: S603
