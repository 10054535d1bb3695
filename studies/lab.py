"""Provide what studies train with: images and tasks of one data set, its parameters, and trainings by these."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import torch

from mela.blocks import Block
from mela.data.array_types import Features, Images, Ints
from mela.data.augmentation import NONE, Augmentation
from mela.data.episodes import Episodes
from mela.evaluation.accuracy import evaluate_model
from mela.io import store
from mela.io.atomic import replacing
from mela.labeling.image_labels import image_weights, label_images, weights_table
from mela.labeling.task_labeler import TaskLabeler
from mela.learners.base import Learner
from mela.models.backbones import Backbone, build_backbone
from mela.models.features import extract_features
from mela.models.files import configure, load_model, save_model
from mela.params import (
    AugmentParams,
    DataParams,
    EmbedParams,
    EvaluateParams,
    MethodsParams,
    ModelParams,
    PretrainParams,
    TuningParams,
)
from mela.runtime.compute import Compute
from mela.sources.open import open_source
from mela.sources.packing import pack_images, shuffled_ids
from mela.training.checkpoint import Checkpoint
from mela.training.embeddings import pretrain, train_embedding
from mela.training.loop import Training
from mela.training.on_tasks import train_on_tasks
from mela.training.schedule import Schedule
from mela.training.targets import Targets, soft_targets

B = TypeVar("B", bound=Block)
Scheduled = TypeVar("Scheduled", EmbedParams, MethodsParams, TuningParams, PretrainParams)


def plain(name: str, *, size: int, channels: int, **changes: Any) -> dict[str, Any]:
    """Return the configuration of an embedding for unseen images."""
    own = {"width": 64, "drop_rate": 0.1, "drop_block": 2, "mean": [0.5] * channels, "std": [0.3] * channels}
    return {"name": name, "size": size, "channels": channels, **own, **changes}


def rescaled(milestones: Sequence[int], total: int, epochs: int) -> list[int]:
    """Return the milestones of a schedule of `total` epochs for one of `epochs`."""
    return sorted({max(1, round(at * epochs / total)) for at in milestones})


def lengthened(settings: Scheduled, epochs: int) -> Scheduled:
    """Return the same parameters for so many epochs, with milestones at the same shares."""
    milestones = rescaled(settings.milestones, settings.epochs, epochs)
    return settings.model_copy(update={"epochs": epochs, "milestones": milestones})


def trained_longer(settings: Scheduled, times: float) -> Scheduled:
    """Return the same parameters for so many times the epochs, which are at least one."""
    return lengthened(settings, max(1, round(settings.epochs * times)))


def cached(path: Path, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """Return the table in a Parquet file; make it first if it is missing."""
    if not path.exists():
        table = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            table.to_parquet(temporary)
    return pd.read_parquet(path)


def wide(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Return columns task_id, setting and accuracy with a row for each task and a column for each setting."""
    return accuracies.pivot(index="task_id", columns="setting", values="accuracy")


def inferred(found: TaskLabeler, image_ids: Ints, classes: Ints, *, soft: bool) -> Targets:
    """Return the targets of pre-training from inferred labels: one label of each image, or if soft shares of several.

    Parameters
    ----------
    found : LearnLabeler or MergeLabeler
        A fitted one, with weights if `soft`.
    image_ids, classes : int64 (n,)
        The image and the task class of each sample.
    soft : bool
    """
    flat = label_images(found.class_labels_, len(found.cluster_centers_), image_ids, classes)
    if not soft:
        return Targets(image_ids=flat.image_ids, labels=flat.labels)
    weights = image_weights(flat, found.class_weights_, image_ids, classes)
    return soft_targets(weights_table(flat.image_ids, weights), "weights")


@dataclass(frozen=True, kw_only=True)
class Lab:
    """Hold images and tasks of one data set, and train on them.

    Attributes
    ----------
    params : Path
        The parameters.
    folder : Path
        Folder of images.npy, with truth.parquet (image_id, split, class) beside it.
    seed : int
        Seed of all trainings.
    compute : Compute
    """

    params: Path
    folder: Path
    seed: int
    compute: Compute = field(default_factory=Compute)

    def block(self, kind: type[B], **changes: Any) -> B:
        """Return a block of the parameters with changes."""
        return kind.model_validate(kind.read(self.params).model_dump() | changes)

    def pack(self, data: DataParams, shots: int) -> None:
        """Write images.npy and truth.parquet of a data set; the second is there once both are."""
        if (self.folder / "truth.parquet").exists():
            return
        source = open_source(data, shots=shots)
        ids = shuffled_ids(len(source), data.seed)
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing(self.folder / "images.npy") as temporary:
            pack_images(temporary, source, ids, size=data.image_size, channels=data.channels)
        table = pd.DataFrame({"image_id": ids, "split": source.splits, "class": source.classes})
        cached(self.folder / "truth.parquet", lambda: table.sort_values("image_id"))

    @cached_property
    def images(self) -> Images:
        """All images, packed."""
        return store.open_images(self.folder / "images.npy")

    def truth(self, split: str) -> pd.DataFrame:
        """Return columns image_id and class of a split."""
        table = pd.read_parquet(self.folder / "truth.parquet")
        return table[table["split"] == split]

    def true_targets(self, image_ids: Ints) -> Targets:
        """Return the true classes of training images as labels."""
        known = self.truth("train").set_index("image_id")["class"].reindex(image_ids)
        return Targets(image_ids=image_ids, labels=pd.factorize(known, sort=True)[0])

    def configuration(self, image_ids: Ints) -> dict[str, Any]:
        """Return the configuration of an embedding for the images that it learns from."""
        return configure(self.block(ModelParams), self.images, image_ids)

    def backbone(self, image_ids: Ints) -> Backbone:
        """Return an untrained embedding for the images that it learns from."""
        return build_backbone(**self.configuration(image_ids), seed=self.seed)

    def features(self, backbone: Backbone, image_ids: Ints) -> Features:
        """Return the features of images."""
        return extract_features(backbone, self.images, image_ids)

    def training(
        self, stage: str, schedule: Schedule, *, rotated_classes: bool = False, checkpoint: Checkpoint | None = None
    ) -> Training:
        """Return what all trainings have in common; each prints its epochs."""
        return Training(
            stage=stage,
            schedule=schedule,
            seed=self.seed,
            augmentation=Augmentation(**self.block(AugmentParams).model_dump()),
            rotated_classes=rotated_classes,
            compute=self.compute,
            checkpoint=checkpoint,
            on_epoch=lambda epoch: print(
                f"{self.folder.name}, seed {self.seed}: {stage}: epoch {epoch.epoch}: loss {epoch.loss:.4f}", flush=True
            ),
        )

    def kept(self, path: Path, tasks: Episodes, train: Callable[[Backbone], Backbone]) -> Backbone:
        """Return the embedding in a file; train it on tasks first if it is missing."""
        if not path.exists():
            ids = tasks.image_ids()
            path.parent.mkdir(parents=True, exist_ok=True)
            save_model(path, train(self.backbone(ids)), self.configuration(ids))
        return load_model(path, torch.device("cpu"), self.images)

    def embed(self, backbone: Backbone, tasks: Episodes, settings: EmbedParams, **changes: Any) -> Backbone:
        """Train an embedding on tasks, in place, and return it; `changes` are those of the schedule."""
        schedule = Schedule(**settings.schedule() | changes)
        training = self.training("embed", schedule, rotated_classes=settings.rotated_classes)
        train_embedding(backbone, self.images, tasks, training, **settings.how())
        return backbone

    def learn(
        self,
        learner: Learner,
        tasks: Episodes,
        settings: MethodsParams | TuningParams,
        by: Schedule,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        """Train a method on tasks, in place."""
        how = {name: getattr(settings, name) for name in ("tasks_per_epoch", "tasks_per_step")}
        training = self.training("methods", by, rotated_classes=settings.rotated_classes, checkpoint=checkpoint)
        train_on_tasks(learner, self.images, tasks, training, **how)

    def pretrained(self, targets: Targets, settings: PretrainParams) -> Backbone:
        """Return an embedding that has learned to tell global labels apart."""
        backbone = self.backbone(targets.image_ids)
        schedule = Schedule(**settings.schedule())
        training = self.training("pretrain", schedule, rotated_classes=settings.rotated_classes)
        how: dict[str, Any] = {"batch_size": settings.batch_size, "label_smoothing": settings.label_smoothing}
        pretrain(backbone, self.images, targets, training, **how)
        return backbone

    def accuracies(self, backbone: Backbone, tasks: Episodes, **changes: Any) -> pd.DataFrame:
        """Return columns task_id, setting, accuracy: by the logistic head, with each support image as it is."""
        head = self.block(EvaluateParams, **changes)
        how: dict[str, Any] = {name: getattr(head, name) for name in ("shots", "C", "max_iter", "solver", "seed")}
        return evaluate_model(backbone, self.images, tasks, copies=1, augmentation=NONE, **how)
