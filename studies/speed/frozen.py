"""Measure how much time kept features of a frozen network save while a head on it learns.

``python -m studies speed.frozen`` adds a row to studies/results/bench.json: pre-training and Proposition 1 with
features that are kept, and with the network run on the images of each batch. Both take turns, and the images are noise.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer

from mela.data.augmentation import Augmentation
from mela.data.episodes import Episodes
from mela.models.backbones import Backbone, build_backbone
from mela.models.timm_backbones import PREFIX
from mela.training.embeddings import pretrain
from mela.training.kept_features import keep_features
from mela.training.loop import Training
from mela.training.proposition1 import both_losses
from mela.training.schedule import Schedule
from mela.training.targets import Targets
from studies.lab import plain
from studies.speed.measure import alternate, record, write_rows

LABELS, BATCH = 20, 64
AUGMENTATION = Augmentation(crop_padding=4, flip=True, jitter=0.4)


def backbone(network: str, size: int) -> Backbone:
    """Return a frozen network of timm with a head, whose weights are random."""
    how = plain(f"{PREFIX}{network}", size=size, channels=3, width=1, drop_rate=0)
    return build_backbone(**how, seed=0, head=True)


def row(network: str, size: int, images: int, epochs: int, n: int) -> dict[str, Any]:
    """Return the seconds of a training with features that are kept, and without."""
    rng = np.random.default_rng(0)
    packed = rng.integers(256, size=(images, size, size, 3)).astype(np.uint8)
    targets = Targets(image_ids=np.arange(images), labels=np.arange(images) % LABELS)
    roles = ["support", "query"] * (images // 2)
    table = {"task_id": 0, "image_id": targets.image_ids, "local_label": targets.labels, "role": roles}
    tasks = Episodes(pd.DataFrame(table))
    schedule = Schedule(epochs=epochs, learning_rate=0.01, momentum=0.9, weight_decay=5e-4, milestones=[], decay=0.1)

    def kept() -> None:
        whole = backbone(network, size)
        with TemporaryDirectory() as folder:
            found = keep_features(whole, packed, targets.image_ids, folder=Path(folder), files={})
            training = Training(stage="pretrain", schedule=schedule, seed=0)
            classifier, _ = pretrain(found.backbone, found.images, targets, training, batch_size=BATCH)
            both_losses(found.backbone, classifier, found.images, tasks, targets)

    def each_epoch() -> None:
        whole = backbone(network, size)
        training = Training(stage="pretrain", schedule=schedule, seed=0, augmentation=AUGMENTATION)
        classifier, _ = pretrain(whole, packed, targets, training, batch_size=BATCH)
        both_losses(whole, classifier, packed, tasks, targets)

    ours, reference = alternate(kept, each_epoch, n=n)
    what: dict[str, Any] = {"network": network, "size": size, "images": images, "epochs": epochs}
    return record("pretrain_head", ours, reference, unit="s", n=n, **what, threads=torch.get_num_threads())


def main(
    network: Annotated[str, typer.Option(help="of timm")] = "resnet18",
    size: Annotated[int, typer.Option(help="side of the images")] = 64,
    images: Annotated[int, typer.Option(help="how many, an even number")] = 200,
    epochs: Annotated[int, typer.Option()] = 15,
    n: Annotated[int, typer.Option(help="rounds")] = 3,
) -> None:
    """Add the results to studies/results/bench.json."""
    write_rows([row(network, size, images, epochs, n)])
