"""Means of task classes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mela.labeling import task_classes as task_samples
from mela.labeling.task_classes import class_means, group_samples


@pytest.mark.parametrize("block", [2, 7, 4096])
@given(seed=st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=30)
def test_means_and_sizes_are_those_of_a_plain_loop(seed: int, block: int) -> None:
    rng = np.random.default_rng(seed)
    features = rng.normal(3, 1, size=(30, 4)).astype(np.float32)
    index, tasks, labels = rng.integers(0, 30, size=60), rng.integers(0, 5, size=60), rng.integers(0, 4, size=60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task_samples, "BLOCK_SAMPLES", block)
        found = class_means(group_samples(features, index, tasks, labels))
    wanted = sorted({(int(task), int(label)) for task, label in zip(tasks, labels, strict=True)})
    members = [features[index[(tasks == task) & (labels == label)]].astype(np.float64) for task, label in wanted]
    np.testing.assert_allclose(found.means, [own.mean(axis=0) for own in members], rtol=0, atol=1e-12)
    assert found.means.dtype == np.float64
    assert found.sizes.tolist() == [len(own) for own in members]
    assert found.task_ids.tolist() == [task for task, _ in wanted]
    assert found.ways.tolist() == np.unique([task for task, _ in wanted], return_counts=True)[1].tolist()
    assert found.ways[found.task_ids[found.starts[:-1]].tolist().index(found.widest)] == found.ways.max()
