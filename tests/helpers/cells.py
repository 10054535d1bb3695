"""The benchmark's definition, and results such as its cells leave."""

import re
from typing import Any

import pandas as pd
from ruamel.yaml import YAML

from benchmark.matrix import Matrix
from tests.helpers.project import ROOT

HERE = ROOT / "benchmark"
YAML_FILES = {name: YAML(typ="safe").load((HERE / f"{name}.yaml").read_text("utf-8")) for name in ("dvc", "params")}
STAGES: dict[str, dict[str, Any]] = YAML_FILES["dvc"]["stages"]
# the stage in front of all others
CODE = STAGES.pop("code")
MATRIX = Matrix.read(HERE / "params.yaml")


def filled(text: str, cell: dict[str, Any]) -> str:
    return re.sub(r"\$\{item\.(\w+)\}", lambda found: str(cell[found[1]]), text)


def results(accuracies: dict[str, list[list[float]]]) -> pd.DataFrame:
    """Of systems: accuracies of seeds and tasks."""
    return pd.DataFrame(
        [
            {"system": system, "seed": seed, "setting": "1_shot", "task_id": task, "accuracy": accuracy}
            for system, seeds in accuracies.items()
            for seed, tasks in enumerate(seeds)
            for task, accuracy in enumerate(tasks)
        ]
    )
