"""Copies of the project in which the benchmark's commands are asked."""

import shutil
import subprocess
from pathlib import Path

from studies.clones import for_clone
from tests.helpers.forked import with_forks
from tests.helpers.project import ROOT


def copy_project(folder: Path) -> None:
    """What the benchmark needs of the project, under Git and without anything that was made."""
    for name in ("mela", "stages", "benchmark"):
        ignored = shutil.ignore_patterns("__pycache__", "runs", "results", "cache", "tmp", "dvc.lock")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copytree(ROOT / ".dvc", folder / ".dvc", ignore=shutil.ignore_patterns("cache", "tmp"))
    for name in ("dvc.yaml", ".dvcignore", ".gitignore"):
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "data/raw", folder / "data/raw", ignore=lambda *_: ["omniglot", "cifar100"])
    shutil.copy(ROOT / "presets/glyphs.yaml", folder / "params.yaml")
    ask("git", "init", "--quiet", where=folder)


def ask(*command: str, where: Path) -> str:
    """What a command prints that ends well in a copy of the project."""
    environment = with_forks(for_clone(OMP_NUM_THREADS="1", PYTHONPATH=str(where)))
    done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
