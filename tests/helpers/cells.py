"""The benchmark's definition, and results such as its cells leave."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from ruamel.yaml import YAML

from benchmark.matrix import Matrix
from mela.io import schemas, store
from tests.helpers.project import ROOT

HERE = ROOT / "benchmark"
YAML_FILES = {name: YAML(typ="safe").load((HERE / f"{name}.yaml").read_text("utf-8")) for name in ("dvc", "params")}
STAGES: dict[str, dict[str, Any]] = YAML_FILES["dvc"]["stages"]
# the stage in front of all others
CODE = STAGES.pop("code")
MATRIX = Matrix.read(HERE / "params.yaml")


def filled(text: str, cell: dict[str, Any]) -> str:
    return re.sub(r"\$\{item\.(\w+)\}", lambda found: str(cell[found[1]]), text)


def results(accuracies: Mapping[str, Sequence[Sequence[float]] | Mapping[int, Sequence[float]]]) -> pd.DataFrame:
    """Of systems: accuracies of tasks for each seed, which has a number of its own or that of its place."""
    return pd.DataFrame(
        [
            {"system": system, "seed": seed, "setting": "1_shot", "task_id": task, "accuracy": accuracy}
            for system, seeds in accuracies.items()
            for seed, tasks in (seeds.items() if isinstance(seeds, Mapping) else enumerate(seeds))
            for task, accuracy in enumerate(tasks)
        ]
    )


def write_results(path: Path, rows: pd.DataFrame) -> None:
    """The accuracies of one system and one seed, as its cell leaves them."""
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    store.write_table(path, rows[schemas.RESULTS.names], schemas.RESULTS, stage="test", params={})
