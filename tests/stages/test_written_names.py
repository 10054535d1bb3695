"""Stages and the review read what people call their labels where `merging.names` says so, and not otherwise."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from mela.io import schemas, store
from mela.io.checked_tables import read_manifest
from mela.io.name_tables import TASK_NAMES, TASK_SOURCES, no_names
from mela.labeling.training_samples import features_in, read_samples
from mela.review.project import read_project
from stages import label_merged
from stages.common import paths
from studies.clones import change
from tests.helpers.several_tasks import WAYS, people, write_last_round

TASKS = 120


@pytest.fixture
def truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """The class of each task class, of people who differ much and use the same words; their files are below here."""
    monkeypatch.chdir(tmp_path)
    given = people(0, persons=TASKS, tasks=1, shift=0.0, own=1.1)
    rows, classes = write_last_round(given), given[-1]
    sources = pd.DataFrame(columns=TASK_SOURCES.names)
    store.write_table(paths.TASK_SOURCES, sources, TASK_SOURCES, stage="names", params={})
    names = rows.drop_duplicates(["task_id", "local_label"])[["task_id", "local_label"]]
    names = names.assign(task=names["task_id"].astype(str), label=[f"word {'abcdefgh'[c % 8]}{c}" for c in classes])
    # a file of its own order
    store.write_table(paths.TASK_NAMES, names.iloc[::-1], TASK_NAMES, stage="names", params={})
    store.write_array(paths.IMAGES, np.zeros((len(rows), 16, 16, 1), dtype=np.uint8))
    return classes


def test_samples_have_the_names_of_their_labels(truth: np.ndarray) -> None:
    manifest, features = read_manifest(paths.TRAIN), features_in(paths.LAST_ROUND)
    samples, _ = read_samples(manifest.sample(frac=1, random_state=0), features, names=paths.TASK_NAMES)
    assert samples.written is not None
    assert samples.written.tolist() == [f"word {'abcdefgh'[c % 8]}{c}" for c in truth]
    odd = np.arange(TASKS) % 2 == 1
    np.testing.assert_array_equal(samples.some(odd).written, samples.written[np.repeat(odd, WAYS)])
    store.write_table(paths.TASK_NAMES, no_names()[0], TASK_NAMES, stage="names", params={})
    for file in (None, paths.TASK_NAMES):
        assert read_samples(manifest, features, names=file)[0].written is None


@pytest.mark.slow
def test_labels_and_the_review_rest_on_names_if_asked(truth: np.ndarray, capsys: pytest.CaptureFixture[str]) -> None:
    def found() -> float:
        label_merged.main()
        table = store.read_table(paths.MERGED_TASKS, schemas.ASSIGNMENTS).sort_values(["task_id", "local_label"])
        reviewed = read_project().corrections.clusters
        assert adjusted_rand_score(table["cluster"], reviewed) > 0.97, "but for what collides in tasks"
        return float(adjusted_rand_score(truth, table["cluster"]))

    assert found() < 0.7, "features alone see through little"
    assert "names" not in capsys.readouterr().out
    change(Path("params.yaml"), {"merging.names": True})
    assert found() > 0.95
    lines = capsys.readouterr().out
    assert f"label_merged: names of {len(truth)} of {len(truth)} labels count" in lines
