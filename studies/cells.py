"""Tasks and features to compare labelers on: one embedding per data set and seed, early and late in its training.

A cell is made once and then found again, so that a run that was cut off goes on where it stopped.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import typer

from mela.data.augmentation import NONE, Augmentation
from mela.data.episodes import Episodes
from mela.data.sampling import draw_split
from mela.evaluation.accuracy import evaluate_model
from mela.io import store
from mela.io.atomic import replacing
from mela.labeling.task_classes import TaskSamples, manifest_samples
from mela.models.backbones import Backbone, build_backbone
from mela.models.features import extract_features
from mela.models.files import configure, save_model
from mela.params import (
    DataParams,
    EmbedParams,
    EvaluateParams,
    MethodsParams,
    ModelParams,
    PretrainParams,
    TaskParams,
    TuningParams,
    read_document,
)
from mela.runtime.compute import Compute
from mela.sources.open import open_source
from mela.sources.packing import pack_images, shuffled_ids
from mela.training.embeddings import train_embedding
from mela.training.loop import Schedule, Training

Scheduled = TypeVar("Scheduled", EmbedParams, MethodsParams, TuningParams, PretrainParams)
PRESETS = Path(__file__).parents[1] / "presets"
STRENGTHS = ("weak", "strong")
# tasks without replacement, with it, and with it of classes whose frequencies fall as a power of their rank
ZIPF = {"zipf0.5": 0.5, "zipf1": 1.0, "zipf1.5": 1.5}
REGIMES = ("once", "repl", *ZIPF)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How the cells of a data set are made.

    Attributes
    ----------
    preset : str
        Where the image size, the model and the augmentation come from.
    data : mapping
        What differs from the preset's data block.
    shots, queries : int
        Of the training tasks.
    tasks : int
        Tasks drawn with replacement; without it, all that the images allow.
    weak : int
        Steps after which the embedding is weak.
    epochs, steps, milestones
        Of the training that follows.
    n_clusters : int
        J of pruning.
    """

    preset: str
    data: Mapping[str, Any]
    shots: int
    queries: int
    tasks: int
    weak: int
    epochs: int
    steps: int
    milestones: tuple[int, ...]
    n_clusters: int = 300


def rescaled(milestones: Sequence[int], total: int, epochs: int) -> list[int]:
    """Milestones of a schedule of `total` epochs for one of `epochs`."""
    return sorted({max(1, round(at * epochs / total)) for at in milestones})


def lengthened(settings: Scheduled, epochs: int) -> Scheduled:
    """The same parameters for so many epochs, with milestones at the same shares."""
    milestones = rescaled(settings.milestones, settings.epochs, epochs)
    return settings.model_copy(update={"epochs": epochs, "milestones": milestones})


RECIPES = {
    "glyphs": Recipe(
        preset="glyphs", data={}, shots=5, queries=15, tasks=3000, weak=50, epochs=4, steps=150, milestones=(3,)
    ),
    "omniglot": Recipe(
        preset="omniglot_cpu",
        data={},
        shots=2,
        queries=3,
        tasks=20_000,
        weak=100,
        epochs=6,
        steps=400,
        milestones=(4, 5),
        n_clusters=3000,
    ),
    "cifar_fs": Recipe(
        preset="cifar_fs_cpu",
        data={},
        shots=5,
        queries=15,
        tasks=3000,
        weak=250,
        epochs=9,
        steps=300,
        milestones=(6, 8),
    ),
}
RECIPES["fc100"] = replace(RECIPES["cifar_fs"], data={"name": "fc100"})


def pack(folder: Path, data: DataParams, shots: int) -> None:
    """Write images.npy and truth.parquet (image_id, split, class) of a data set; the second is there once both are."""
    source = open_source(data, shots=shots)
    ids = shuffled_ids(len(source), data.seed)
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / "images.npy") as temporary:
        pack_images(temporary, source, ids, size=data.size, channels=data.channels)
    table = pd.DataFrame({"image_id": ids, "split": source.splits, "class": source.classes}).sort_values("image_id")
    with replacing(folder / "truth.parquet") as temporary:
        table.to_parquet(temporary)


def logistic_accuracies(
    backbone: Backbone, images: npt.NDArray[np.uint8], tasks: Episodes, head: EvaluateParams
) -> pd.DataFrame:
    """Columns task_id, setting, accuracy: by the logistic head, with each support image as it is."""
    return evaluate_model(
        backbone,
        images,
        tasks,
        shots=head.shots,
        C=head.C,
        max_iter=head.max_iter,
        solver=head.solver,
        copies=1,
        augmentation=NONE,
        seed=head.seed,
    )


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
    per_class = settings.shots + settings.queries
    drawn = [
        [generator.choice(pools[chosen], size=per_class, replace=False) for chosen in task]
        for task in (
            generator.choice(len(pools), size=settings.ways, replace=False, p=share / share.sum())
            for _ in range(settings.train or 0)
        )
    ]
    n_tasks, ways = len(drawn), settings.ways
    return pd.DataFrame(
        {
            "task_id": np.repeat(np.arange(n_tasks), ways * per_class),
            "image_id": np.array(drawn).reshape(-1),
            "local_label": np.tile(np.repeat(np.arange(ways), per_class), n_tasks),
            "role": np.tile(np.repeat(["support", "query"], [settings.shots, settings.queries]), n_tasks * ways),
        }
    )


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One data set and seed."""

    folder: Path
    name: str
    seed: int

    @property
    def recipe(self) -> Recipe:
        """How it is made."""
        return RECIPES[self.name]

    def block(self, kind: type[Any], **changes: Any) -> Any:
        """A block of the preset with changes."""
        values: dict[str, Any] = self._document()[kind.block]
        return kind.model_validate(values | changes, strict=True)

    @property
    def augmentation(self) -> Augmentation:
        """Of both trainings."""
        return Augmentation(**self._document()["augment"])

    def _document(self) -> Any:
        return read_document(PRESETS / f"{self.recipe.preset}.yaml")

    @property
    def base(self) -> Path:
        """Folder of the data set."""
        return self.folder / self.name

    @property
    def own(self) -> Path:
        """Folder of the seed."""
        return self.base / str(self.seed)

    def images(self) -> npt.NDArray[np.uint8]:
        """All images, packed."""
        return store.open_images(self.base / "images.npy")

    def truth(self) -> pd.DataFrame:
        """Columns image_id, split, class."""
        path = self.base / "truth.parquet"
        if not path.is_file():
            raise typer.BadParameter(f"{path}: no such file; run `python -m studies.labels.grid` for {self.name} first")
        return pd.read_parquet(path)

    def tasks(self, name: str) -> pd.DataFrame:
        """Return the manifest of a regime, of val or of test; it is drawn when it is first asked for."""
        path = self.own / f"{name}.parquet"
        if not path.exists():
            split = "train" if name in REGIMES else name
            draws: dict[str, dict[str, Any]] = {
                "once": {"train": None, "replacement": False},
                "repl": {"train": self.recipe.tasks},
                **{name: {"train": self.recipe.tasks} for name in ZIPF},
                "val": {"val": 200},
                "test": {"test": 1000},
            }
            truth = self.truth()
            settings = self.block(
                TaskParams, shots=self.recipe.shots, queries=self.recipe.queries, seed=self.seed, **draws[name]
            )
            images = truth[truth["split"] == split]
            drawn = draw_uneven(images, settings, ZIPF[name]) if name in ZIPF else draw_split(images, settings, split)
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as temporary:
                drawn.to_parquet(temporary)
        return pd.read_parquet(path)

    def samples(self, strength: str, regime: str) -> TaskSamples:
        """Training tasks with the features of an embedding."""
        return manifest_samples(
            self.tasks(regime), np.load(self.own / "ids.npy"), np.load(self.own / f"{strength}.npy")
        )

    def true_classes(self, samples: TaskSamples) -> npt.NDArray[np.int64]:
        """The class of each task class, for scoring."""
        known = self.truth().set_index("image_id")["class"].loc[np.load(self.own / "ids.npy")]
        return pd.factorize(known)[0][samples.index[samples.first]]

    def accuracy(self, strength: str) -> float:
        """Validation accuracy of the embedding in percent."""
        return float(store.read_json(self.own / f"{strength}.json")["val"])

    def make(self, root: Path) -> None:
        """Pack the images, draw tasks, train the embedding and write its features."""
        if (self.own / "done").exists():
            return
        if not (self.base / "truth.parquet").exists():
            pack(self.base, self.block(DataParams, root=str(root), **self.recipe.data), self.recipe.shots)
        images, tasks, recipe = self.images(), Episodes(self.tasks("once")), self.recipe
        self.own.mkdir(parents=True, exist_ok=True)
        truth = self.truth()
        ids = np.sort(truth.loc[truth["split"] == "train", "image_id"].to_numpy())
        np.save(self.own / "ids.npy", ids)
        configuration = configure(self.block(ModelParams), images, tasks.image_ids())
        backbone = build_backbone(**configuration, seed=self.seed)
        self.train(backbone, tasks, epochs=1, steps=recipe.weak, milestones=[])
        self._write(backbone, configuration, ids, "weak")
        self.train_strong(backbone, tasks)
        self._write(backbone, configuration, ids, "strong")
        (self.own / "done").touch()

    def train_strong(self, backbone: Backbone, tasks: Episodes, compute: Compute | None = None) -> None:
        """Train an embedding with the recipe's steps, in place; with fewer tasks in an epoch it has more of these."""
        recipe = self.recipe
        epochs = max(1, round(recipe.epochs * recipe.steps / min(recipe.steps, len(tasks))))
        milestones = rescaled(recipe.milestones, recipe.epochs, epochs)
        self.train(backbone, tasks, epochs=epochs, steps=recipe.steps, milestones=milestones, compute=compute)

    def train(
        self,
        backbone: Backbone,
        tasks: Episodes,
        *,
        epochs: int,
        steps: int,
        milestones: list[int],
        compute: Compute | None = None,
    ) -> None:
        """Train an embedding on tasks, in place, as the cells are."""
        schedule = Schedule(
            learning_rate=0.05, momentum=0.9, weight_decay=5e-4, decay=0.1, epochs=epochs, milestones=milestones
        )
        train_embedding(
            backbone,
            self.images(),
            tasks,
            self.training("embed", schedule, compute),
            ridge=1e-3,
            normalize=False,
            tasks_per_epoch=min(steps, len(tasks)),
        )

    def training(self, stage: str, schedule: Schedule, compute: Compute | None = None) -> Training:
        """With what all have in common; every epoch is told."""
        return Training(
            stage=stage,
            schedule=schedule,
            seed=self.seed,
            augmentation=self.augmentation,
            compute=compute or Compute(),
            on_epoch=lambda epoch: print(self.name, self.seed, epoch, flush=True),
        )

    def _write(
        self, backbone: Backbone, configuration: dict[str, Any], ids: npt.NDArray[np.int64], strength: str
    ) -> None:
        images = self.images()
        np.save(self.own / f"{strength}.npy", extract_features(backbone, images, ids))
        shots = min(5, self.recipe.shots)
        head: EvaluateParams = self.block(EvaluateParams, shots=[shots])
        accuracies = logistic_accuracies(backbone, images, Episodes(self.tasks("val")), head)
        result = {"val": float(accuracies["accuracy"].mean()), "shots": shots}
        save_model(self.own / f"{strength}.safetensors", backbone, configuration)
        (self.own / f"{strength}.json").write_text(json.dumps(result), encoding="utf-8")
