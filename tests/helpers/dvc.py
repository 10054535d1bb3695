"""Copies of the project in which real DVC runs."""

import re
import subprocess
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from studies.clones import for_clone
from tests.helpers.forked import with_forks

# what another q runs again
AFTER_LABEL = ["label", "score_labels", "pretrain@pruned", "evaluate", "confusions", "report"]
# with which Git knows who commits, wherever tests run
COMMITTER = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in {"NAME": "test", "EMAIL": "test@example.org"}.items()
}


class Project:
    """A clone of the project with tiny parameters."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def environment(self) -> dict[str, str]:
        environment = for_clone(
            OMP_NUM_THREADS="1",
            **COMMITTER,
            COLUMNS="200",
        )
        environment.pop("PYTHONPATH", None)
        return with_forks(environment)

    def run(self, *command: str, succeeds: bool = True) -> str:
        ended = subprocess.run(
            command, cwd=self.folder, env=self.environment(), capture_output=True, text=True, check=False
        )
        assert (ended.returncode == 0) == succeeds, ended.stdout + ended.stderr
        return ended.stdout + ended.stderr

    def dvc(self, *arguments: str, succeeds: bool = True) -> str:
        return self.run("python", "-m", "dvc", *arguments, succeeds=succeeds)

    def undo(self) -> None:
        """Back to what is committed."""
        self.run("git", "checkout", "--", ".")
        self.dvc("checkout")

    def lock(self) -> dict[str, Any]:
        """In the order in which stages ended, which means nothing."""
        return YAML(typ="safe").load((self.folder / "dvc.lock").read_text(encoding="utf-8"))


def ran(output: str) -> list[str]:
    return re.findall(r"^Running stage '([\w@-]+)'", output, flags=re.MULTILINE)
