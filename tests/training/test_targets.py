"""Labels as pre-training meets them."""

import re

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_array

from mela.errors import MelaError
from mela.training.targets import Targets, soft_targets


def rows(*rows: tuple[int, int, float]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["image_id", "label", "weight"])
    return table.astype({"image_id": np.int64, "label": np.int64, "weight": np.float64})


def test_one_label_each() -> None:
    targets = Targets(image_ids=np.array([4, 7, 9]), labels=np.array([2, 0, 2]))
    assert targets.n_labels == 3
    batch = targets.batch(np.array([2, 1]))
    assert batch.dtype == torch.int64
    assert batch.tolist() == [2, 0]


def test_shares_of_several_labels_in_any_order() -> None:
    targets = soft_targets(rows((7, 3, 0.75), (2, 1, 0.5), (7, 0, 0.25), (5, 2, 1.0), (2, 0, 0.5)), "soft.parquet")
    assert targets.image_ids.tolist() == [2, 5, 7]
    assert targets.labels.tolist() == [0, 2, 3], "the largest share, the smallest label at a tie"
    assert targets.n_labels == 4
    batch = targets.batch(np.array([2, 0]))
    assert batch.dtype == torch.float32
    assert batch.tolist() == [[0.25, 0, 0, 0.75], [0.5, 0.5, 0, 0]]


def test_no_rows_at_all() -> None:
    assert soft_targets(rows(), "soft.parquet").n_labels == 0


@pytest.mark.parametrize(
    ("bad", "found"),
    [
        ([(5, 0, 0.5), (5, 1, 0.4)], "0: 0.5, 1: 0.4"),
        ([(5, 0, 1.5), (5, 1, -0.5)], "0: 1.5, 1: -0.5"),
        ([(5, 0, 1.0), (5, 1, 0.0)], "0: 1, 1: 0"),
        ([(5, 0, 0.5), (5, 0, 0.5)], "0: 0.5, 0: 0.5"),
        ([(5, -1, 1.0)], "-1: 1"),
        ([(5, 0, float("nan"))], "0: nan"),
    ],
)
def test_bad_weights_name_the_image(bad: list[tuple[int, int, float]], found: str) -> None:
    message = re.escape(f"soft.parquet: image 5: its labels and weights are {found}, ")
    with pytest.raises(MelaError, match=f"^{message}.*; rerun the stage that makes it$"):
        soft_targets(rows((3, 0, 1.0), *bad, (8, 1, 1.0)), "soft.parquet")


def test_shares_may_leave_a_label_without_a_winner() -> None:
    shares = csr_array(np.array([[0.6, 0.4], [0.7, 0.3]]))
    assert Targets(image_ids=np.array([0, 1]), labels=np.array([0, 0]), shares=shares).n_labels == 2
