"""Record where and with what a result was made."""

import os
import platform
import shutil
import subprocess
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from mela.runtime.release import own_version

PACKAGES = ("torch", "torchvision", "scikit-learn", "scipy", "numpy", "pandas", "pyarrow", "pillow", "dvc")
CODE = ("mela", "stages", "dvc.yaml", "requirements.txt")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages on which figures depend, as far as they are installed."""
    found = {"Python": platform.python_version(), "mela": own_version()}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def hardware() -> str:
    """Describe processor, cores, memory, and the system, in one line."""
    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    memory = psutil.virtual_memory().total / 2**30
    return f"{_processor()}, {cores} core{'s'[: cores != 1]}, {memory:.0f} GiB of memory; {platform.system()}"


def _processor() -> str:
    """Return the processor's name by Linux, elsewhere by Python."""
    facts = Path("/proc/cpuinfo")
    if facts.is_file():
        for line in facts.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def commit(root: Path = Path()) -> str | None:
    """Return the last commit of the code in this folder, and whether it was changed since; None if Git knows none.

    Later commits, of results for example, are not named: they change nothing.
    """
    git = shutil.which("git")
    if git is None:
        return None

    def ask(*arguments: str) -> str | None:
        command = [git, "-C", str(root), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        return done.stdout.strip() if done.returncode == 0 else None

    last = ask("log", "-1", "--format=%H", "--", *CODE)
    if not last:
        return None
    return last + (", with changes" if ask("status", "--porcelain", "--", *CODE) else "")
