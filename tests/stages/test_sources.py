"""Stages that infer labels know whose the tasks are where the raw data says so."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from mela.io import schemas, store
from mela.io.checked_tables import read_manifest
from mela.io.name_tables import TASK_SOURCES
from mela.labeling.training_samples import features_in, read_samples
from stages import label_merged
from stages.common import paths
from tests.helpers.several_tasks import SAMPLES, people, write_last_round

PERSONS, TASKS = 5, 30


@pytest.fixture
def truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """The class of each image of tasks by five people with cameras of their own, whose files are below this folder."""
    monkeypatch.chdir(tmp_path)
    given = people(0)
    write_last_round(given)
    names = pd.DataFrame({"task_id": np.arange(PERSONS * TASKS)})
    names["source"] = np.array(["ann", "bob", "cem", "dee", "eve"])[names["task_id"] // TASKS]
    # a file of its own order
    store.write_table(paths.TASK_SOURCES, names.iloc[::-1], TASK_SOURCES, stage="names", params={})
    return given[-1].repeat(SAMPLES)


def test_samples_have_the_sources_of_their_tasks(truth: np.ndarray) -> None:
    manifest, features = read_manifest(paths.TRAIN), features_in(paths.LAST_ROUND)
    samples, _ = read_samples(manifest.sample(frac=1, random_state=0), features, sources=paths.TASK_SOURCES)
    np.testing.assert_array_equal(samples.sources, np.arange(PERSONS).repeat(TASKS))
    none = pd.DataFrame(columns=TASK_SOURCES.names)
    store.write_table(paths.TASK_SOURCES, none, TASK_SOURCES, stage="names", params={})
    for file in (None, paths.TASK_SOURCES):
        assert read_samples(manifest, features, sources=file)[0].sources is None


@pytest.mark.slow
def test_labels_rest_on_sources(truth: np.ndarray) -> None:
    def found() -> float:
        label_merged.main()
        labels = store.read_table(paths.MERGED_LABELS, schemas.LABELS)
        return float(adjusted_rand_score(truth[labels["image_id"]], labels["label"]))

    assert found() > 0.9
    none = pd.DataFrame(columns=TASK_SOURCES.names)
    store.write_table(paths.TASK_SOURCES, none, TASK_SOURCES, stage="names", params={})
    assert found() < 0.6
