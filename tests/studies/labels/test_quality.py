"""Labels of a run against its own true classes."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from mela.data.sampling import draw_with_replacement
from mela.io import schemas, store
from mela.io.feature_tables import write_features
from stages.common import paths
from studies.labels.quality import of_a_run
from tests.helpers.project import ROOT


def test_labels_of_a_run_are_scored_against_its_own_truth(tmp_path: Path) -> None:
    run = tmp_path / "glyphs"
    for path in (paths.TRUTH, paths.TRAIN, paths.FEATURES):
        (run / path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "presets/glyphs.yaml", run / "params.yaml")
    ids, classes, noise = np.arange(80), np.arange(80) % 8, np.random.default_rng(0).normal(0, 0.01, (80, 8))
    truth = pd.DataFrame({"image_id": ids, "class": np.array([*"abcdefgh"])[classes]})
    # a run whose truth calls two classes one
    truth.loc[truth["class"] == "h", "class"] = "g"
    store.write_table(run / paths.TRUTH, truth, schemas.TRUTH, stage="images", params={})
    pools = {str(one): ids[classes == one] for one in range(8)}
    drawn = draw_with_replacement(pools, n_tasks=60, ways=3, shots=2, queries=3, seed=0, split="train")
    store.write_table(run / paths.TRAIN, drawn, schemas.MANIFEST, stage="manifest", params={})
    vectors = (np.eye(8)[classes] + noise).astype(np.float32)
    write_features(run / paths.FEATURES, [(ids, vectors)], 8, stage="extract", params={})
    found = of_a_run(data="glyphs", labeler="merged", projects=tmp_path)
    assert (found["true"], found["clusters"], found["accuracy"], found["tasks_clustered"]) == (7, 8, 100, 100)
    assert 0 < found["ari"] < 1
