"""Which optimizer and learning rate suits each method: trained on one seed, measured on validation tasks.

``python -m bench.method_rates`` after ``dvc repro`` in benchmark/ has drawn the tasks; goes on where it stopped, and
writes results/method_rates.csv. The rates that methods have in `mela.methods` were chosen by this table; no test task
is read.
"""

from itertools import product
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
import typer

from benchmark import places
from mela import store
from mela.augmentation import Augmentation
from mela.backbones import build_backbone
from mela.checked import read_manifest
from mela.compute import Compute
from mela.device import choose_device
from mela.episodes import Episodes
from mela.errors import MelaError
from mela.meta_test import own_rule
from mela.meta_training import train_on_tasks
from mela.method import find_method, method_names
from mela.models import configure
from mela.params import AugmentParams, EvaluateParams, MethodsParams, ModelParams
from mela.precision import choose_dtype
from mela.seeding import seeded
from mela.training import Schedule, Training

SEED = 100
RATES: list[tuple[Literal["sgd", "adam"], float]] = [
    ("sgd", 0.1),
    ("adam", 0.003),
    ("sgd", 0.05),
    ("sgd", 0.02),
    ("adam", 0.001),
    ("sgd", 0.005),
]


def measure(data: str, name: str, optimizer: Literal["sgd", "adam"], rate: float) -> dict[str, float]:
    """Validation accuracies of a method that was trained at a learning rate."""
    params, folder = places.preset(data), places.shared(data)
    settings, model = MethodsParams.read(params), ModelParams.read(params)
    images = store.open_images(folder / "images.npy")
    tasks, validation = (Episodes(read_manifest(folder / f"{split}.parquet")) for split in ("train", "val"))
    configuration, device = configure(model, images, tasks.image_ids()), choose_device("auto")
    with seeded(SEED):
        learner = find_method(name).learner(build_backbone(**configuration, seed=SEED)).to(device)
    train_on_tasks(
        learner,
        images,
        tasks,
        Training(
            stage="methods",
            schedule=Schedule(
                **settings.schedule(), learning_rate=rate, optimizer=optimizer, rate_name="the learning rate"
            ),
            seed=SEED,
            augmentation=Augmentation(**AugmentParams.read(params).model_dump()),
            compute=Compute(dtype=choose_dtype(model.precision, device)),
        ),
        tasks_per_epoch=settings.tasks_per_epoch,
        tasks_per_step=settings.tasks_per_step,
    )
    accuracies = own_rule(learner, images, validation, EvaluateParams.read(params).shots)
    return {str(setting): mean for setting, mean in accuracies.groupby("setting")["accuracy"].mean().items()}


def main(
    data: Annotated[str, typer.Option(help="data set")] = "glyphs",
    methods: Annotated[list[str] | None, typer.Option(help="by default all that learn from tasks")] = None,
    adam: Annotated[list[float] | None, typer.Option(help="rates of Adam to try; by default several of both")] = None,
    out: Annotated[Path, typer.Option(help="the table")] = Path("results/method_rates.csv"),
) -> None:
    """All rates of all methods."""
    names = methods or [name for name in method_names() if find_method(name).sees == "tasks"]
    rates: list[tuple[Literal["sgd", "adam"], float]] = [("adam", rate) for rate in adam] if adam else RATES
    for (optimizer, rate), name in product(rates, names):
        known = pd.read_csv(out) if out.exists() else pd.DataFrame(columns=["data", "method", "optimizer", "rate"])
        key = {"data": data, "method": name, "optimizer": optimizer, "rate": rate}
        if (known[list(key)] == pd.Series(key)).all(axis=1).any():
            continue
        try:
            found = measure(data, name, optimizer, rate)
        except MelaError as error:
            typer.echo(f"{name}, {optimizer}, {rate:g}: {error}")
            found = {}
        # another process may have added rows
        known = pd.read_csv(out) if out.exists() else known
        store.write_csv(out, pd.concat([known, pd.DataFrame([key | found])]).sort_values([*key], kind="stable"))
        typer.echo(f"{key} {found}")


if __name__ == "__main__":
    typer.run(main)
