"""Which learning rate and scale of logits suit each method, and what a longer training gives: on validation tasks.

``python -m bench.method_rates`` after ``dvc repro`` in benchmark/ has drawn the tasks, and trained what ``--start``
names; goes on where it stopped, and writes results/method_rates.csv, with one seed. The rates and scales that methods
have in `mela.methods` were chosen by this table; no test task is read.
"""

from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
import typer
from torch import nn

from bench.cells import lengthened
from benchmark import places
from mela import store
from mela.augmentation import Augmentation
from mela.backbones import build_backbone
from mela.checked import read_manifest
from mela.compute import Compute
from mela.device import choose_device
from mela.episodes import Episodes
from mela.errors import MelaError
from mela.learned import load_learned
from mela.learner import Learner
from mela.meta_test import own_rule
from mela.meta_training import train_on_tasks
from mela.method import find_method, method_names
from mela.models import configure
from mela.params import AugmentParams, EvaluateParams, MethodsParams, ModelParams, TuningParams
from mela.precision import choose_dtype
from mela.seeding import seeded
from mela.training import Schedule, Training

SEED = 100
START_SEED = 0
NOTHING = "nothing"
RATES: list[tuple[Literal["sgd", "adam"], float]] = [
    ("sgd", 0.1),
    ("adam", 0.003),
    ("sgd", 0.05),
    ("sgd", 0.02),
    ("adam", 0.001),
    ("sgd", 0.005),
]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A row of the table: a method, and how it is trained.

    Attributes
    ----------
    data, method : str
    start : str
        System whose embedding it goes on from, of seed `START_SEED`; or `NOTHING`.
    longer : float
        Share of the schedule's epochs.
    optimizer : {"sgd", "adam"}
    rate : float
    scale : str
        Of the logits, at the start; or `NOTHING` where the method does not learn it.
    """

    data: str
    method: str
    start: str
    longer: float
    optimizer: Literal["sgd", "adam"]
    rate: float
    scale: str

    def measure(self) -> dict[str, float]:
        """Validation accuracies after the training."""
        params, folder = places.preset(self.data), places.shared(self.data)
        new = self.start == NOTHING
        settings = MethodsParams.read(params) if new else TuningParams.read(params)
        share = settings.rate if isinstance(settings, TuningParams) else 1.0
        if self.longer != 1:
            settings = lengthened(settings, max(1, round(settings.epochs * self.longer)))
        images = store.open_images(folder / "images.npy")
        tasks, validation = (Episodes(read_manifest(folder / f"{split}.parquet")) for split in ("train", "val"))
        model, device = ModelParams.read(params), choose_device("auto")
        configuration = configure(model, images, tasks.image_ids())
        with seeded(SEED):
            learner: Learner = find_method(self.method).learner(build_backbone(**configuration, seed=SEED)).to(device)
        if self.scale != NOTHING:
            nn.init.constant_(learner.scale, float(self.scale))
        if not new:
            known = load_learned(folder / f"seed{START_SEED}" / self.start / places.MODEL, device, images)
            learner.backbone.load_state_dict(known.backbone.state_dict())
        train_on_tasks(
            learner,
            images,
            tasks,
            Training(
                stage="methods",
                schedule=Schedule(
                    **settings.schedule(),
                    learning_rate=self.rate,
                    optimizer=self.optimizer,
                    embedding_rate=share,
                    rate_name="the learning rate",
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
    start: Annotated[str, typer.Option(help="system to go on from, such as mela-rfs")] = NOTHING,
    longer: Annotated[float, typer.Option(help="share of the schedule's epochs")] = 1.0,
    adam: Annotated[list[float] | None, typer.Option(help="rates of Adam to try; by default several of both")] = None,
    scale: Annotated[list[float] | None, typer.Option(help="scales to try; by default each method's own")] = None,
    out: Annotated[Path, typer.Option(help="the table")] = Path("results/method_rates.csv"),
) -> None:
    """All rates and scales of all methods."""
    names = methods or [name for name in method_names() if find_method(name).sees == "tasks"]
    rates: list[tuple[Literal["sgd", "adam"], float]] = [("adam", rate) for rate in adam] if adam else RATES
    scales: list[float | None] = [*scale] if scale else [None]
    for (optimizer, rate), name, factor in product(rates, names, scales):
        own = getattr(find_method(name).learner, "initial_scale", None)
        written = NOTHING if own is None else f"{own if factor is None else factor:g}"
        trial = Trial(data=data, method=name, start=start, longer=longer, optimizer=optimizer, rate=rate, scale=written)
        key = asdict(trial)
        known = read(out, [*key])
        if (known[list(key)] == pd.Series(key)).all(axis=1).any():
            continue
        try:
            found = trial.measure()
        except MelaError as error:
            typer.echo(f"{key}: {error}")
            found = {}
        # another process may have added rows
        known = read(out, [*key])
        store.write_csv(out, pd.concat([known, pd.DataFrame([key | found])]).sort_values([*key], kind="stable"))
        typer.echo(f"{key} {found}")


def read(path: Path, columns: list[str]) -> pd.DataFrame:
    """What is measured."""
    return pd.read_csv(path, dtype={"scale": str}) if path.exists() else pd.DataFrame(columns=columns)


if __name__ == "__main__":
    typer.run(main)
