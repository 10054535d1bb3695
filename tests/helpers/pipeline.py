"""What dvc.yaml and the code say of each other."""

import ast
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.helpers.project import ROOT

STAGES: dict[str, dict[str, Any]] = YAML(typ="safe").load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
# the stage in front of all others
CODE = STAGES.pop("code")


def imported_modules(path: Path) -> set[Path]:
    """Files of this project that a module imports, at its top or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            file = ROOT.joinpath(*name.split(".")).with_suffix(".py")
            if name.split(".")[0] in ("mela", "stages") and file.is_file():
                found.add(file)
    return found


def listed(stage: str, *kinds: str) -> list[str]:
    entries = [entry for kind in kinds for entry in STAGES[stage].get(kind, [])]
    return [entry if isinstance(entry, str) else next(iter(entry)) for entry in entries]
