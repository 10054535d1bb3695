"""Samples of people who have several tasks each."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from mela.io import schemas, store
from mela.io.feature_tables import write_features
from mela.io.look_files import write_looks
from mela.labeling.training_samples import features_in, looks_in
from stages.common import paths
from tests.helpers.project import ROOT

WAYS, SAMPLES = 5, 12
Given = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def people(seed: int, *, persons: int = 5, tasks: int = 30, shift: float = 2.0, own: float = 0.3) -> Given:
    """X, y, groups, sources and the true class of each task class, of persons with several tasks."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(40, 24))
    shifts = rng.normal(size=(persons, 24)) * shift * (np.arange(24) < 6)
    versions = rng.normal(size=(persons, 40, 24)) * own
    truth = np.concatenate([rng.permutation(40)[:WAYS] for _ in range(persons * tasks)])
    person = np.arange(persons).repeat(tasks * WAYS)
    means = centers[truth] + shifts[person] + versions[person, truth]
    X = means.repeat(SAMPLES, axis=0) + rng.normal(size=(len(truth) * SAMPLES, 24)) * 0.7
    y = np.tile(np.arange(WAYS).repeat(SAMPLES), persons * tasks)
    return X, y, np.arange(persons * tasks).repeat(WAYS * SAMPLES), person.repeat(SAMPLES), truth


def write_last_round(given: Given) -> pd.DataFrame:
    """Write what `stages.label_merged` reads of such people, below the working folder; return the labels of images."""
    X, y, groups, _, _ = given
    images = np.arange(len(X))
    rows = pd.DataFrame({"task_id": groups, "image_id": images, "local_label": y})
    rows["role"] = np.where(images % SAMPLES < 3, "support", "query")
    store.write_table(paths.TRAIN, rows, schemas.MANIFEST, stage="manifest", params={})
    features = [(images, X.astype(np.float32))]
    write_features(features_in(paths.LAST_ROUND), features, X.shape[1], stage="round", params={})
    write_looks(looks_in(paths.LAST_ROUND), None)
    store.write_table(paths.LINKS, schemas.LINKS.empty_table(), schemas.LINKS, stage="corrections", params={})
    shutil.copy(ROOT / "params.yaml", Path())
    return rows
