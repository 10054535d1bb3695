"""Run the whole pipeline on glyphs that people draw, once for each share of their look and seed."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from mela.io import store
from mela.params import DataParams
from studies.clones import change, for_clone

ROOT = Path(__file__).parents[2]
PRESET = ROOT / "presets/glyphs_people.yaml"
LABELS = ("initial", "merged", "pruned", "oracle")
SEEDS = ("data.seed", "embed.seed", "pretrain.seed")


def measure(*, share: float, seed: int, folder: Path) -> list[dict[str, Any]]:
    """Return a row for each kind of labels; files of the run stay in a folder of its own until it has ended.

    Parameters
    ----------
    share : float
        How often a drawing has its person's typeface, weight, slant and ink.
    seed : int
        Of the people, and of both trainings.
    folder : Path
    """
    own = folder / f"{share:g}_{seed}"
    own.mkdir(parents=True, exist_ok=True)
    for file in ("dvc.yaml", "mela", "stages"):
        (own / file).unlink(missing_ok=True)
        (own / file).symlink_to(ROOT / file)
    shutil.copy(PRESET, own / "params.yaml")
    people = DataParams.read(PRESET).people
    assert people is not None
    changed = people.model_dump() | {"share": share}
    change(own / "params.yaml", {"data.people": changed} | dict.fromkeys(SEEDS, seed))
    subprocess.run([sys.executable, "-m", "mela", "run"], cwd=own, env=for_clone(), check=True)
    found = store.read_json(own / "results/metrics.json")
    shutil.rmtree(own)
    return [row_of(found, labels) for labels in LABELS]


def row_of(metrics: dict[str, Any], labels: str) -> dict[str, Any]:
    """Return the row of one kind of labels, from the metrics of a run."""
    known = metrics[labels]
    row = {"labels": labels, "true_classes": metrics["true_classes"]}
    row |= {name: known.get(name) for name in ("clusters", "accuracy", "ari", "tasks_clustered")}
    for setting in ("1_shot", "5_shot"):
        row |= {setting: known[setting]["mean"], f"{setting}_ci95": known[setting]["ci95"]}
        row |= {f"{setting}_to_oracle": known[setting].get("to_oracle")}
    return row
