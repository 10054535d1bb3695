"""Copies of the project in which the benchmark's commands are asked."""

import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from studies.clones import for_clone
from tests.helpers.forked import with_forks
from tests.helpers.project import ROOT

MADE = ("__pycache__", "runs", "cache", "tmp")


def copy_parts(folder: Path, *names: str, without: tuple[str, ...] = ()) -> None:
    """Folders and files of the project at the same places in another, without what was made."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(*MADE, *without))
        else:
            shutil.copy(ROOT / name, folder / name)


def module_at(path: Path, name: str) -> ModuleType:
    """The module that a file in a copy makes, which is found under a name while others of the copy import it."""
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def copy_project(folder: Path) -> None:
    """What the benchmark needs of the project, under Git and without anything that was made."""
    copy_parts(folder, "mela", "stages", "benchmark", ".dvc", without=("results", "dvc.lock"))
    copy_parts(folder, "dvc.yaml", "corrections.csv", "class_names.csv", ".dvcignore", ".gitignore")
    copy_parts(folder, "data/raw", without=("omniglot", "cifar100"))
    shutil.copy(ROOT / "presets/glyphs.yaml", folder / "params.yaml")
    ask("git", "init", "--quiet", where=folder)


def asked(*command: str, where: Path) -> subprocess.CompletedProcess[str]:
    """A command that has ended in a copy of the project."""
    environment = with_forks(for_clone(OMP_NUM_THREADS="1", PYTHONPATH=str(where)))
    return subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=False)


def ask(*command: str, where: Path) -> str:
    """What a command prints that ends well in a copy of the project."""
    done = asked(*command, where=where)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
