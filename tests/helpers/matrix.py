"""Parameters of a benchmark of few cells."""

import shutil
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.helpers.project import ROOT

SMALL: dict[str, Any] = {
    "data": ["tiny"],
    "seeds": [0],
    "labels": ["merged", "oracle"],
    "inferred": ["merged"],
    "pruned": [],
    "task_methods": ["protonet"],
    "image_methods": [],
    "label_methods": ["rfs"],
    "distill_from": [],
    "tuned_methods": [],
    "tuned_from": [],
}


def write_matrix(folder: Path, **changes: Any) -> Path:
    """The parameters in a folder, with those of the glyphs for each data set that has none; None leaves a key out."""
    content = {key: value for key, value in (SMALL | changes).items() if value is not None}
    (folder / "data").mkdir(parents=True, exist_ok=True)
    for name in SMALL["data"] if "data" not in changes else changes["data"]:
        if not (path := folder / f"data/{name}.yaml").exists():
            shutil.copy(ROOT / "benchmark/data/glyphs.yaml", path)
    path = folder / "params.yaml"
    with path.open("w", encoding="utf-8") as file:
        YAML().dump(content, file)
    return path
