"""Measure what costs nothing but time when tasks are tested: centred features, and copies of support images."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from mela.data.array_types import Features, Ints
from mela.data.augmentation import Augmentation
from mela.data.episodes import Episodes
from mela.data.sampling import draw_split
from mela.evaluation.accuracy import evaluate_tasks, unit_lookup
from mela.io import schemas, store
from mela.models.features import extract_features
from mela.models.files import load_model
from mela.params import AugmentParams, EvaluateParams, TaskParams
from stages.common import paths
from studies.training.task_methods import CPU, Run
from studies.training.trials import SEED, means

TASKS = 1000
COPIES = (1, 5, 30)


def measure(*, data: str, labels: str, projects: Path) -> list[dict[str, Any]]:
    """Return validation accuracies with features as they are and centred, and with some numbers of copies.

    Centred features have the mean of the training classes subtracted before they are scaled to length 1.

    Parameters
    ----------
    data : str
        A preset; its pipeline ran in the folder DATA_0 of `projects`.
    labels : str
        Labels that the embedding was trained on.
    projects : Path
    """
    own = Run.of(projects / f"{data}_0", SEED)
    index = store.read_table(own.folder / paths.INDEX, schemas.INDEX)
    known = index.merge(store.read_table(own.folder / paths.TRUTH, schemas.TRUTH), on="image_id")
    settings = own.block(TaskParams, val=TASKS, seed=SEED)
    tasks = Episodes(draw_split(known[known["split"] == "val"], settings, "val"))
    backbone = load_model(own.folder / paths.MODELS / f"{labels}.safetensors", CPU, own.images)
    generator = torch.Generator().manual_seed(SEED)
    augmentation = Augmentation(**own.block(AugmentParams).model_dump()).of_one_image

    def augmented(batch: Tensor) -> Tensor:
        return augmentation(batch, generator)

    base = known[known["split"] == "train"]
    features = pd.DataFrame(extract_features(backbone, own.images, base["image_id"].to_numpy()))
    centre = features.groupby(base["class"].to_numpy()).mean().mean().to_numpy(np.float32)
    ids, support = tasks.image_ids(), tasks.support_ids()
    plain = extract_features(backbone, own.images, ids)[:, None]
    draws = range(max(COPIES))
    copies = np.stack([extract_features(backbone, own.images, support, augmented) for _ in draws], axis=1)
    return [
        {"centred": centred, "copies": count} | _accuracies(own, tasks, plain - less, support, copies[:, :count] - less)
        for centred, less in {"no": np.zeros_like(centre), "yes": centre}.items()
        for count in COPIES
    ]


def _accuracies(own: Run, tasks: Episodes, plain: Features, support: Ints, copies: Features) -> dict[str, float]:
    """Return mean accuracies with copies in place of support images; a single one is the image itself."""
    head = {name: getattr(own.block(EvaluateParams), name) for name in ("shots", "C", "max_iter", "solver")}
    count = copies.shape[1]
    others = None if count == 1 else unit_lookup(support, copies)
    found = means(evaluate_tasks(unit_lookup(tasks.image_ids(), plain), tasks, **head, copies=others))
    return {setting: found[setting if others is None else f"{setting}_{count}x"] for setting in ("1_shot", "5_shot")}
