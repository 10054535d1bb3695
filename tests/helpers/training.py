"""Trains both embeddings in float64 and writes what was learnt: run alone and by torchrun by test_team.py."""

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from mela.data.augmentation import Augmentation
from mela.models.features import feature_batches
from mela.runtime.compute import Compute
from mela.runtime.team import joined
from mela.training.embeddings import pretrain, train_embedding
from mela.training.loop import Training
from mela.training.schedule import Schedule
from mela.training.targets import Targets
from tests.helpers.embedding import backbone, episodes

IMAGES = np.random.default_rng(0).integers(0, 256, (72, 16, 16, 3), dtype=np.uint8)
AUGMENTATION = Augmentation(crop_padding=2, flip=True, jitter=0.3, surroundings=0.5)
PLAIN = Schedule(epochs=2, learning_rate=0.02, momentum=0.9, weight_decay=5e-4, milestones=[], decay=0.1)
SCHEDULE = replace(PLAIN, scheduler="cosine", nesterov=True, decay_norms=False)


def main(path: str) -> None:
    """Write weights, curves and features."""
    with joined(torch.device("cpu")) as team:
        compute = Compute(dtype=torch.float32, team=team)
        how: dict[str, Any] = {"augmentation": AUGMENTATION, "rotated_classes": True, "accumulate": 2}
        training = Training(stage="pretrain", schedule=SCHEDULE, seed=0, compute=compute, **how)
        # without dropout, whose masks are those of the processes
        network: dict[str, Any] = {"channels": 3, "drop_rate": 0, "drop_block": 1}
        initial, final = (backbone("resnet12", **network).double() for _ in range(2))
        first = train_embedding(
            initial,
            IMAGES,
            episodes([([2, 2], 4), ([2, 2, 2], 4)] * 5),
            replace(training, stage="embed"),
            ridge=0.5,
            normalize=False,
            tasks_per_epoch=9,
            tasks_per_step=5,
        )
        targets = Targets(image_ids=np.arange(5, 60), labels=np.arange(55) % 4)
        _, second = pretrain(final, IMAGES, targets, training, batch_size=13, label_smoothing=0.1)
        features = list(feature_batches(final.float(), IMAGES, np.arange(3, 60), team=team))
        # the others have no image to look at
        features += feature_batches(final, IMAGES, np.array([7]), team=team)
    if team.leads:
        curves = [[epoch.loss, epoch.accuracy] for epoch in [*first, *second]]
        tensors = {
            "curves": torch.tensor(curves),
            "features": torch.from_numpy(np.concatenate([found for _, found in features])),
        }
        for name, model in {"initial": initial, "final": final}.items():
            tensors |= {f"{name}.{key}": value.contiguous() for key, value in model.state_dict().items()}
        save_file(tensors, path)


if __name__ == "__main__":
    main(sys.argv[1])
