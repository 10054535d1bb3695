"""What dvc.yaml and the code say of each other."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.helpers.project import ROOT

STAGES: dict[str, dict[str, Any]] = YAML(typ="safe").load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
# those that have cells of their own in the form of other stages
STAGES = {
    name: stage["do"] | {"foreach": stage["foreach"]} if "do" in stage else stage for name, stage in STAGES.items()
}
# the stage in front of all others
CODE = STAGES.pop("code")


def imported_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the dotted names in imports among some nodes: of modules, and of what is imported from them."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_modules(path: Path) -> set[Path]:
    """Files of this project that a module imports, at its top or inside functions."""
    names = imported_names(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    files = (ROOT.joinpath(*name.split(".")).with_suffix(".py") for name in names)
    return {file for file in files if file.relative_to(ROOT).parts[0] in ("mela", "stages") and file.is_file()}


def listed(stage: str, *kinds: str, stages: Mapping[str, Any] = STAGES, use: str = "merged") -> list[str]:
    """Return what a stage lists, in all its cells or in one such as ``pretrain@merged``, with the labels in use."""
    stage, _, cell = stage.partition("@")
    entries = [entry for kind in kinds for entry in stages[stage].get(kind, [])]
    texts = [entry if isinstance(entry, str) else next(iter(entry)) for entry in entries]
    kinds_of_labels = stages[stage].get("matrix", {}).get("labels")
    # those of the benchmark are in its parameters, and stay as they are
    cells = {one: {"item.labels": one} for one in kinds_of_labels} if isinstance(kinds_of_labels, list) else {"": {}}
    if "foreach" in stages[stage]:
        cells = {
            key: {"key": key} | {f"item.{name}": value for name, value in item.items()}
            for key, item in stages[stage]["foreach"].items()
        }
    filled = []
    for values in [cells[cell]] if cell else cells.values():
        for text in texts:
            for name, value in ({"use": use} | values).items():
                text = text.replace(f"${{{name}}}", value)
            filled.append(text)
    return list(dict.fromkeys(filled))
