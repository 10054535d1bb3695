"""Read what a review asks about: the training tasks of a run, their clusters, names and images."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from mela.data.array_types import Images, Ints
from mela.errors import MelaError
from mela.io import store
from mela.io.checked_tables import read_manifest
from mela.io.name_tables import TASK_NAMES
from mela.labeling.correction_tables import names_of
from mela.labeling.corrections import Corrections
from mela.labeling.labeler_choice import build_labeler
from mela.labeling.links import Name
from mela.labeling.training_samples import features_in, looks_in, read_samples
from mela.params import PARAMS, LabelerParams, MergingParams, UseParams

# as stages/common/paths.py has them
IMAGES = Path("data/images/images.npy")
TRAIN = Path("data/manifest/train.parquet")
NAMES = Path("data/names/labels.parquet")
SOURCES = Path("data/names/sources.parquet")
FEATURES = Path("data/features.parquet")
LAST_ROUND = Path("data/rounds/sixth")


@dataclass(frozen=True, kw_only=True)
class Project:
    """Hold the task classes of a run.

    Attributes
    ----------
    corrections : Corrections
        Their clusters.
    names : list (n,) of (task, label)
        As people wrote them.
    shown : list (n,) of int64 (k,)
        Images of each.
    images : uint8 (n_images, h, w, c)
        All images, packed.
    """

    corrections: Corrections
    names: list[Name]
    shown: list[Ints]
    images: Images


def read_project(folder: Path = Path()) -> Project:
    """Find the clusters that the labels in use have before anybody's word, by the files that a run has left.

    Raises
    ------
    MelaError
        A file is missing, or is none of a run.
    """
    params = folder / PARAMS
    if not params.is_file():
        raise MelaError(f"{params}: no such file; go to the folder of a project, which `mela preset` begins")
    merge = UseParams.read(params).labels == "merged"
    manifest, last = read_manifest(folder / TRAIN), folder / LAST_ROUND
    if merge:
        settings = MergingParams.read(params)
        labeler = build_labeler(**settings.arguments)
        names = folder / NAMES if settings.names else None
        samples, images = read_samples(manifest, features_in(last), looks_in(last), folder / SOURCES, names)
    else:
        labeler = build_labeler(merge=False, **LabelerParams.read(params).arguments)
        samples, images = read_samples(manifest, folder / FEATURES)
    labeler.fit_tasks(samples)
    labels = pd.DataFrame({"task_id": samples.task_ids, "local_label": samples.local_labels})
    return Project(
        corrections=labeler.corrections_,
        names=names_of(labels, store.read_table(folder / NAMES, TASK_NAMES)),
        shown=np.split(images[samples.index], samples.first[1:]),
        images=store.open_images(folder / IMAGES),
    )
