"""Measure everything that needs a GPU, in one run of under ten minutes.

``python -m studies speed.gpu --root FOLDER_OF_CIFAR100`` runs it.
Training of ResNet-12 at 32 pixels against the reference way, its share of the rate at which the GPU multiplies large
matrices of bfloat16, and the whole preset cifar_fs_short, stage by stage. Rows are written as soon as they are known.
Without a GPU it says so and ends.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import torch
import typer

from mela.params import LABELS as KINDS
from mela.params import ROUNDS
from studies.clones import change
from studies.speed.measure import record, write_rows
from studies.speed.train_steps import COLOUR, Setting, row_of

LABELING = ("label_merged", "label", "label_kmeans", "label_oracle")
BEFORE = ("images", "names", "manifest", "corrections", "embed", "extract", *(f"round {name}" for name in ROUNDS))
STAGES = [*BEFORE, *LABELING, *(f"pretrain {name}" for name in KINDS), "evaluate"]
# one training on labels, as a user has who does not compare
ONE = {f"compare.{name}": name == "pruned" for name in KINDS}
LIMIT_S = 300.0
BIG: dict[str, Any] = {"steps": 300, "network": "resnet12", "device": "cuda", "workers": (4, 8, 16)}
RESNET12 = Setting(size=32, channels=3, augmentation=COLOUR, **BIG)


def training_rows(setting: Setting, n: int) -> list[dict[str, Any]]:
    """Return the rows of the faster of the two, compiled or not."""
    found = [row_of("train_resnet12_32_gpu", setting, n, compiled=compiled) for compiled in (False, True)]
    best = max(found, key=lambda row: row["ours"])
    return [best | {"other": {"compiled": not best["compiled"], "ours": min(row["ours"] for row in found)}}]


def run_preset(root: Path, *, preset: Path, changes: dict[str, Any], project: Path) -> dict[str, float]:
    """Return the seconds of each stage of a preset, run in a folder of its own without DVC."""
    with TemporaryDirectory() as folder:
        shutil.copy(preset, folder / Path("params.yaml"))
        change(folder / Path("params.yaml"), {"data.root": str(root.resolve())} | changes)
        environment = os.environ | {"PYTHONPATH": str(project.resolve())}
        taken = {}
        for stage in STAGES:
            start = time.perf_counter()
            subprocess.run([sys.executable, "-m", *f"stages.{stage}".split()], cwd=folder, env=environment, check=True)
            taken[stage] = round(time.perf_counter() - start, 1)
            print(f"{stage}: {taken[stage]} s", flush=True)
        print((Path(folder) / "results/evaluate/metrics.json").read_text(encoding="utf-8"), flush=True)
    return taken


def main(
    root: Annotated[Path | None, typer.Option(help="folder of CIFAR-100; without it the preset is not run")] = None,
    n: Annotated[int, typer.Option(help="rounds")] = 3,
) -> None:
    """Add the results to studies/results/bench.json."""
    if not torch.cuda.is_available():
        print("speed.gpu: no GPU on this machine, nothing measured", file=sys.stderr)
        raise typer.Exit(1)
    gpu = {"gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda}
    rows = [row | gpu for row in training_rows(RESNET12, n)]
    write_rows(rows)
    if root is None:
        return
    more = {"compiled": bool(rows[0]["compiled"])} | gpu
    changes = {"runtime.compile": more["compiled"]} | ONE
    taken = run_preset(root, preset=Path("presets/cifar_fs_short.yaml"), changes=changes, project=Path())
    write_rows(
        [record("pipeline_cifar_fs_short_gpu", sum(taken.values()), LIMIT_S, unit="s", n=1, stages=taken, **more)]
    )
