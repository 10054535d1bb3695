"""Make tasks and features to compare labelers on: one embedding per data set and seed, early and late in training.

A cell is made once and then found again, so that a run that was cut off goes on where it stopped.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import typer

from mela.blocks import read_yaml
from mela.data.array_types import Ints
from mela.data.episodes import Episodes
from mela.data.sampling import draw_split, task_table
from mela.io import store
from mela.labeling.task_classes import TaskSamples, manifest_samples
from mela.models.backbones import Backbone
from mela.models.files import load_model, save_model
from mela.params import DataParams, EmbedParams, PretrainParams, TaskParams
from mela.runtime.compute import Compute
from mela.training.targets import Targets
from studies.lab import Lab, cached, lengthened, rescaled

PRESETS = Path(__file__).parents[1] / "presets"
# tasks of classes whose frequencies fall as a power of their rank; other tasks are "once" and "repl", without
# replacement and with it
ZIPF = {"zipf0.5": 0.5, "zipf1": 1.0, "zipf1.5": 1.5}
SCHEDULE = {"learning_rate": 0.05, "momentum": 0.9, "weight_decay": 5e-4, "decay": 0.1}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Describe how the cells of a data set are made; studies/recipes.yaml says what each key is."""

    preset: str
    shots: int
    queries: int
    tasks: int
    weak: int
    epochs: int
    steps: int
    milestones: list[int]
    n_clusters: int
    data: Mapping[str, Any] = field(default_factory=dict)


RECIPES = {name: Recipe(**values) for name, values in read_yaml(Path(__file__).with_name("recipes.yaml")).items()}


def draw_uneven(images: pd.DataFrame, settings: TaskParams, exponent: float) -> pd.DataFrame:
    """Draw training tasks in which some classes are rare.

    The frequency of a class is its rank to the power of -`exponent`, and ranks are drawn by the seed. Images are drawn
    with replacement.

    Parameters
    ----------
    images : DataFrame
        Columns image_id and class.
    settings : TaskParams
    exponent : float

    Returns
    -------
    DataFrame
        As `mela.data.sampling.draw_with_replacement`.
    """
    pools = [own.to_numpy() for _, own in images.groupby("class")["image_id"]]
    generator = np.random.default_rng([settings.seed, round(10 * exponent)])
    share = 1 / (1 + generator.permutation(len(pools))) ** exponent
    ways, per_class, n_tasks = settings.ways, settings.shots + settings.queries, settings.train or 0
    drawn = [
        [generator.choice(pools[chosen], size=per_class, replace=False) for chosen in task]
        for task in (
            generator.choice(len(pools), size=ways, replace=False, p=share / share.sum()) for _ in range(n_tasks)
        )
    ]
    return task_table(np.array(drawn), settings.shots)


def true_classes(truth: pd.DataFrame, ids: Ints, samples: TaskSamples) -> Ints:
    """Return the class of each task class (n_task_classes,), for scoring.

    Parameters
    ----------
    truth : DataFrame
        Columns image_id and class.
    ids : int64 (n_images,)
        Images of the rows of features that the samples are in.
    samples : TaskSamples
    """
    known = truth.set_index("image_id")["class"].reindex(ids)
    return pd.factorize(known)[0][samples.index[samples.first]]


class Cell(Lab):
    """Hold one data set and seed; the folder is called as the data set is."""

    @classmethod
    def of(cls, folder: Path, data: str, seed: int, compute: Compute | None = None) -> "Cell":
        """Return the cell of a data set and a seed below the folder of all cells."""
        if data not in RECIPES:
            raise typer.BadParameter(f"--data: expected {' or '.join(RECIPES)}, got {data!r}")
        preset = PRESETS / f"{RECIPES[data].preset}.yaml"
        return cls(params=preset, folder=folder / data, seed=seed, compute=compute or Compute())

    @property
    def recipe(self) -> Recipe:
        """Recipe of the data set."""
        return RECIPES[self.folder.name]

    @property
    def own(self) -> Path:
        """Folder of the seed."""
        return self.folder / str(self.seed)

    @property
    def ids(self) -> Ints:
        """Ids of the images that have features."""
        path = self.own / "ids.npy"
        if not path.is_file():
            name = self.folder.name
            raise typer.BadParameter(f"{path}: no such file; run `python -m studies labels.grid --data {name}` first")
        return np.load(path)

    def tasks(self, name: str) -> pd.DataFrame:
        """Return the manifest of val, test, or a way of drawing tasks; it is drawn when first asked for."""
        draws: dict[str, dict[str, Any]] = {
            "once": {"train": None, "replacement": False},
            **{name: {"train": self.recipe.tasks} for name in ("repl", *ZIPF)},
            "val": {"val": 200},
            "test": {"test": 1000},
        }
        if name not in draws:
            raise typer.BadParameter(f"--tasks: expected {' or '.join(draws)}, got {name!r}")

        def drawn() -> pd.DataFrame:
            shape = {"shots": self.recipe.shots, "queries": self.recipe.queries, "seed": self.seed}
            settings = self.block(TaskParams, **shape, **draws[name])
            split = name if name in ("val", "test") else "train"
            images = self.truth(split)
            return draw_uneven(images, settings, ZIPF[name]) if name in ZIPF else draw_split(images, settings, split)

        return cached(self.own / f"{name}.parquet", drawn)

    def samples(self, strength: str, tasks: str) -> TaskSamples:
        """Return training tasks with the features of an embedding."""
        return manifest_samples(self.tasks(tasks), self.ids, np.load(self.own / f"{strength}.npy"))

    def true_classes(self, samples: TaskSamples) -> Ints:
        """Return the class of each task class, for scoring."""
        return true_classes(self.truth("train"), self.ids, samples)

    def validation(self, strength: str) -> float:
        """Return the validation accuracy of the embedding in percent."""
        return float(store.read_json(self.own / f"{strength}.json")["val"])

    def load(self, strength: str) -> Backbone:
        """Return the embedding."""
        return load_model(self.own / f"{strength}.safetensors", torch.device("cpu"), self.images)

    def make(self, root: Path) -> "Cell":
        """Pack the images, draw tasks, train the embedding and write its features, unless that is done."""
        if (self.own / "done").exists():
            return self
        self.pack(self.block(DataParams, root=str(root), **self.recipe.data), self.recipe.shots)
        tasks = Episodes(self.tasks("once"))
        ids = np.sort(self.truth("train")["image_id"].to_numpy())
        np.save(self.own / "ids.npy", ids)
        backbone, shots = self.backbone(tasks.image_ids()), min(5, self.recipe.shots)
        for strength in ("weak", "strong"):
            if strength == "weak":
                self.train(backbone, tasks, epochs=1, steps=self.recipe.weak, milestones=[])
            else:
                self.train_strong(backbone, tasks)
            np.save(self.own / f"{strength}.npy", self.features(backbone, ids))
            accuracies = self.accuracies(backbone, Episodes(self.tasks("val")), shots=[shots])
            save_model(self.own / f"{strength}.safetensors", backbone, self.configuration(tasks.image_ids()))
            result = {"val": float(accuracies["accuracy"].mean()), "shots": shots}
            store.write_json(self.own / f"{strength}.json", result)
        (self.own / "done").touch()
        return self

    def train_strong(self, backbone: Backbone, tasks: Episodes) -> Backbone:
        """Train an embedding in place with the recipe's steps; with fewer tasks in an epoch it has more of these."""
        recipe = self.recipe
        epochs = max(1, round(recipe.epochs * recipe.steps / min(recipe.steps, len(tasks))))
        milestones = rescaled(recipe.milestones, recipe.epochs, epochs)
        return self.train(backbone, tasks, epochs=epochs, steps=recipe.steps, milestones=milestones)

    def train(self, backbone: Backbone, tasks: Episodes, *, epochs: int, steps: int, milestones: list[int]) -> Backbone:
        """Train an embedding on tasks, in place, as the cells are."""
        changes: dict[str, Any] = {"epochs": epochs, "milestones": milestones, "ridge": 1e-3, "normalize": False}
        changes |= {"tasks_per_epoch": min(steps, len(tasks)), "tasks_per_step": 1}
        return self.embed(backbone, tasks, self.block(EmbedParams, **SCHEDULE, **changes))

    def finished(self, targets: Targets, epochs: int | None = None) -> Backbone:
        """Return an embedding pre-trained with the preset's schedule, or for so many epochs."""
        settings = self.block(PretrainParams)
        return self.pretrained(targets, lengthened(settings, epochs) if epochs else settings)

    def tested(self, backbone: Backbone, tasks: pd.DataFrame) -> pd.DataFrame:
        """Return columns task_id, setting, accuracy: the preset's meta-test at one shot and at the recipe's."""
        return self.accuracies(backbone, Episodes(tasks), shots=[1, self.recipe.shots])
