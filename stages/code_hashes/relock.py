"""Carry lock files over to code that has moved or was rewritten, without running the stages again.

A stage is carried over if the lock file says that it was up to date at an old revision, and if all definitions that it
reaches are the same at that revision and now. Stages that were due at the old revision stay due.
"""

import hashlib
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from mela.errors import MelaError
from mela.runtime.console import ending_in_one_line, log
from stages.code_hashes.hash_files import BENCHMARK, OF_BENCHMARK, PIPELINE, Files
from stages.code_hashes.reached_code import PACKAGES, Code, renaming

PIPELINES = {Path(): PIPELINE, BENCHMARK: OF_BENCHMARK}
Entry = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Hold what a dvc.yaml says of a stage, with its variables filled in.

    Attributes
    ----------
    command : str
    deps : list of str
        Their paths as in the lock file.
    """

    command: str
    deps: list[str]


@dataclass(kw_only=True)
class Side:
    """Hold a pipeline at one revision.

    Attributes
    ----------
    root : Path
        The repository.
    folder : Path
        Folder of the pipeline, below that.
    stages : dict
        All stages by their names.
    code : set of str
        Those of their dependencies that are code, or are written by stages that read code.
    """

    root: Path
    folder: Path
    stages: dict[str, Stage]
    code: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, root: Path, folder: Path) -> "Side":
        """Read a dvc.yaml, and run its stages of code."""
        from dvc.dependency import ParamsDependency
        from dvc.repo import Repo

        repo = Repo(str(root / folder))
        side = cls(root=root, folder=folder, stages={})
        written: list[str] = []
        for stage in repo.index.stages:
            files = [dep.def_path for dep in stage.deps if not isinstance(dep, ParamsDependency)]
            side.stages[stage.name] = Stage(command=stage.cmd, deps=files)
            if is_code(stage.name):
                written += [out.def_path for out in stage.outs]
                _run(stage.cmd, root / folder)
        side.code = {
            dep
            for stage in side.stages.values()
            for dep in stage.deps
            if dep.endswith(".py") or any(dep == out or dep.startswith(f"{out}/") for out in written)
        }
        return side

    def file(self, dep: str) -> dict[str, Any]:
        """Return a dependency as a lock file writes it; only its path if it is missing."""
        path = self.root / self.folder / dep
        if not path.is_file():
            return {"path": dep}
        content = path.read_bytes()
        digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
        return {"path": dep, "hash": "md5", "md5": digest, "size": len(content)}


def is_code(stage: str) -> bool:
    """Tell whether a stage only writes down what the code of others is."""
    return stage == "code" or stage.startswith("code_")


def main(
    old: Annotated[str, typer.Argument(help="Git revision for whose code the lock files are")],
    new: Annotated[str | None, typer.Argument(help="Git revision of the code now; the working tree by default")] = None,
    moved: Annotated[
        list[str] | None, typer.Option(help="OLD=NEW: a module or definition that has another name now")
    ] = None,
    accept: Annotated[list[str] | None, typer.Option(help="a definition that differs and still does the same")] = None,
    rerun: Annotated[list[str] | None, typer.Option(help="one whose stages are to run again and stay due")] = None,
) -> None:
    """Rewrite dvc.lock and benchmark/dvc.lock for code that is the same in all definitions that stages reach."""
    renamed = dict(_pair(text) for text in moved or [])
    with _clone(old) as before, _clone(new) if new else nullcontext(Path()) as after:
        locks = [
            Lock(folder / "dvc.lock", Side.read(before, folder), Side.read(after, folder), files, renamed)
            for folder, files in PIPELINES.items()
            if (folder / "dvc.lock").is_file()
        ]
        for lock in locks:
            lock.carry_over(accept or [], rerun or [])
    problems: dict[str, list[str]] = {}
    for lock in locks:
        for name, stages in lock.problems.items():
            problems.setdefault(name, []).extend(dict.fromkeys(stages))
    if problems:
        raise MelaError(_refusal(old, problems))
    for lock in locks:
        lock.write()


class Lock:
    """Carry a lock file over."""

    def __init__(self, path: Path, old: Side, new: Side, files: Files, renamed: Mapping[str, str]) -> None:
        from dvc.utils.serialize import load_yaml

        self.path, self.old, self.new, self.files = path, old, new, files
        self.content: dict[str, Any] = load_yaml(path)
        self.starts = files.starts(new.root)
        self.problems: dict[str, list[str]] = {}
        packages = (*PACKAGES, *(name.split(".")[0] for pair in renamed.items() for name in pair))
        self._before, self._after = Code(old.root, packages, renamed), Code(new.root, packages)
        self._now = renaming(renamed)
        self._names_before = {now: before for before, now in renamed.items()}
        self._former = renaming(self._names_before)
        self._differences: dict[str, list[str]] = {}
        self.carried, self.due = 0, 0

    def carry_over(self, accepted: Sequence[str], rerun: Sequence[str] = ()) -> None:
        """Give each stage that was up to date its new dependencies, or note what differs.

        Parameters
        ----------
        accepted, rerun : sequence of str
            Patterns of definitions that differ: those that do the same, and those whose stages are to run again.
        """
        entries: dict[str, Entry] = self.content["stages"]
        for name in list(entries):
            if is_code(name):
                if name not in self.new.stages:
                    del entries[name]
                continue
            if name not in self.old.stages or name not in self.new.stages or not self._is_current(name, entries[name]):
                self.due += 1
                continue
            code = [dep for dep in self.new.stages[name].deps if dep in self.new.code]
            if any(_matches(difference, rerun) for dep in code for difference in self._compared(dep)):
                self.due += 1
                continue
            entries[name] = self._carried(name, entries[name], accepted)
            self.carried += 1

    def _is_current(self, name: str, entry: Entry) -> bool:
        """Tell whether a stage has run with the code of the old revision."""
        stage = self.old.stages[name]
        locked = {dep["path"]: dep for dep in entry.get("deps", [])}
        return shlex.split(entry["cmd"]) == shlex.split(stage.command) and all(
            dep in locked and locked[dep] == self.old.file(dep) for dep in stage.deps if dep in self.old.code
        )

    def _carried(self, name: str, entry: Entry, accepted: Sequence[str]) -> Entry:
        before, after = self.old.stages[name], self.new.stages[name]
        if [self._now(word) for word in _values(before.command)] != _values(after.command):
            self.problems.setdefault(f"the command of {name.split('@')[0]}", []).append(name)
        locked = {dep["path"]: dep for dep in entry.get("deps", [])}
        deps = []
        for dep in after.deps:
            if dep in self.new.code:
                for difference in self._compared(dep):
                    if not _matches(difference, accepted):
                        self.problems.setdefault(difference, []).append(name)
                deps.append(self.new.file(dep))
            elif dep in locked:
                deps.append(locked[dep])
            elif (former := self._former_path(dep)) in locked:
                deps.append(locked[former] | {"path": dep})
            else:
                self.problems.setdefault(f"{dep}, which was no dependency,", []).append(name)
        # DVC writes them in this order, and a lock file that has another shows differences which are none
        return entry | {"cmd": after.command, "deps": sorted(deps, key=itemgetter("path"))}

    def _former_path(self, dep: str) -> str:
        """Return the former path of a file or folder in a package that has moved."""
        parts = Path(os.path.normpath(self.new.folder / dep)).parts
        for end in range(len(parts), 0, -1):
            if before := self._names_before.get(".".join(parts[:end])):
                former = Path(*before.split("."), *parts[end:])
                return Path(os.path.relpath(former, self.new.folder)).as_posix()
        return dep

    def _compared(self, dep: str) -> list[str]:
        """Return the definitions behind a file of hashes that differ between both trees."""
        if dep not in self._differences:
            out = (self.new.root / self.files.out).resolve()
            file = (self.new.root / self.new.folder / dep).resolve()
            behind = self.starts.get(file.relative_to(out).with_suffix("").as_posix())
            if behind is None:
                raise MelaError(
                    f"{self.path.with_suffix('.yaml')}: {dep}: no script or method has this file; correct it"
                )
            module, start = behind
            before, after = self._before.reached(self._former(module), start), self._after.reached(module, start)
            changed = [one for one in after if after[one] != before.get(one)]
            # what is no longer reached follows from another change, unless it acts by itself
            gone = [one for one in before if one not in after and ":" in one]
            self._differences[dep] = changed + gone
        return self._differences[dep]

    def write(self) -> None:
        """Write the lock file as DVC does."""
        from dvc.utils.serialize import dump_yaml

        dump_yaml(self.path, self.content)
        due = "; the others are due" if self.due else ""
        log.info(f"{self.path}: {self.carried:,} of {self.carried + self.due:,} stages carried over{due}")


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _values(command: str) -> list[str]:
    """Return the words of a command without the names of its options."""
    return [word for word in shlex.split(command) if not word.startswith("--")]


def _pair(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise MelaError(f"--moved: expected OLD=NEW, got {text!r}; give the dotted names of a module, before and after")
    return old, new


def _refusal(old: str, problems: Mapping[str, list[str]]) -> str:
    """Print a line for each difference; return the line that the program ends with."""
    for name, stages in problems.items():
        kinds = sorted({stage.split("@")[0] for stage in stages})
        log.info(f"{name}: not the same as at {old}; reached by {', '.join(kinds)} ({len(stages):,} in all)")
    few = ", ".join(list(problems)[:3]) + (f" and {len(problems) - 3:,} more" if len(problems) > 3 else "")
    return (
        f"stages reach what is not the same as at {old}: {few}; nothing was written; name what still does the same "
        "with --accept, and what its stages are to run again for with --rerun"
    )


def _run(command: str, folder: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    ended = subprocess.run(  # noqa: S602
        command, shell=True, cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        why = ended.stderr.strip().splitlines()[-1:] or [f"exit status {ended.returncode}"]
        raise MelaError(f"{folder}: `{command}` failed: {why[0]}; correct what it says")


@contextmanager
def _clone(revision: str) -> Iterator[Path]:
    """Yield a folder with the files of a revision, which is deleted at the end."""

    def git(*arguments: str) -> str:
        ended = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)  # noqa: S603, S607
        if ended.returncode:
            raise MelaError(f"{revision}: {' '.join(ended.stderr.split())}; give a revision of this repository")
        return ended.stdout.strip()

    commit = git("rev-parse", "--verify", f"{revision}^{{commit}}")
    with TemporaryDirectory() as folder:
        git("clone", "--quiet", "--shared", "--no-checkout", ".", folder)
        git("-C", folder, "checkout", "--quiet", "--detach", commit)
        yield Path(folder)


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(main)
    with ending_in_one_line():
        app()
