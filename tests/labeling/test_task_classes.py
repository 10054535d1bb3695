"""Samples grouped by task class, and the means of task classes."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mela.errors import MelaError
from mela.labeling import task_classes as task_samples
from mela.labeling.task_classes import class_means, group_samples, manifest_samples


def random_manifest(seed: int, n_tasks: int) -> pd.DataFrame:
    """Tasks with ids out of order and unequal ways and shots, in shuffled rows."""
    generator = np.random.default_rng(seed)
    rows = [
        (task, int(image), label, "support")
        for task in generator.choice(100, size=n_tasks, replace=False)
        for label in range(generator.integers(2, 5))
        for image in generator.choice(50, size=generator.integers(1, 6), replace=False)
    ]
    manifest = pd.DataFrame(rows, columns=["task_id", "image_id", "local_label", "role"])
    return manifest.sample(frac=1, random_state=seed).reset_index(drop=True)


def random_features(seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.permutation(50), generator.normal(3, 1, size=(50, 4)).astype(np.float32)


@given(seed=st.integers(0, 2**32 - 1), n_tasks=st.integers(1, 8))
@example(seed=0, n_tasks=1)
@example(seed=1, n_tasks=6)
@settings(deadline=None, max_examples=30)
def test_classes_are_those_of_groupby(seed: int, n_tasks: int) -> None:
    manifest, (image_ids, features) = random_manifest(seed, n_tasks), random_features(seed)
    found = manifest_samples(manifest, image_ids, features)
    groups = manifest.groupby(["task_id", "local_label"])
    assert list(zip(found.task_ids.tolist(), found.local_labels.tolist(), strict=True)) == list(groups.groups)
    assert found.sizes.tolist() == groups.size().tolist()
    sorted_rows = manifest.iloc[found.order]
    assert found.task_ids[found.classes].tolist() == sorted_rows["task_id"].tolist()
    assert found.local_labels[found.classes].tolist() == sorted_rows["local_label"].tolist()
    assert image_ids[found.index].tolist() == sorted_rows["image_id"].tolist()
    # starts bound the tasks
    ways = manifest.groupby("task_id")["local_label"].nunique()
    assert found.starts.tolist() == [0, *ways.cumsum()]
    assert found.task_ids[found.starts[:-1]].tolist() == ways.index.tolist()


@pytest.mark.parametrize("block", [1, 3, 10, 1000])
def test_blocks_hold_whole_classes(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_samples, "BLOCK_SAMPLES", block)
    manifest = random_manifest(4, 8)
    found = manifest_samples(manifest, *random_features(4))
    blocks = list(found.blocks())
    assert np.concatenate([classes for _, classes in blocks]).tolist() == found.classes.tolist()
    np.testing.assert_array_equal(np.concatenate([part for part, _ in blocks]), found.features[found.index])
    assert all(part.dtype == np.float64 for part, _ in blocks)
    ends = [classes[-1] for _, classes in blocks]
    assert all(classes[0] == end + 1 for end, (_, classes) in zip(ends[:-1], blocks[1:], strict=True))
    assert all(len(classes) <= max(block, 5) for _, classes in blocks)
    assert len(blocks) == 1 or block < len(manifest)


@pytest.mark.parametrize("names", [["b", "a", "c"], [2.5, -1.0, 7.0], [10, 9, 11]])
def test_names_of_any_kind(names: list[Any]) -> None:
    tasks = np.array([names[i] for i in (0, 1, 0, 1, 2, 2)])
    labels = np.array(["x", "y", "z", "x", "x", "y"])
    found = group_samples(np.arange(6.0)[:, None], np.arange(6), tasks, labels)
    assert found.order.tolist() == [3, 1, 0, 2, 4, 5]
    assert found.task_ids.tolist() == sorted(names)[:1] * 2 + sorted(names)[1:2] * 2 + sorted(names)[2:] * 2
    assert found.local_labels.tolist() == ["x", "y", "x", "z", "x", "y"]


def test_an_image_without_features_is_named() -> None:
    manifest, (image_ids, features) = random_manifest(3, 4), random_features(3)
    missing = int(manifest["image_id"].iloc[5])
    keep = image_ids != missing
    message = rf"^features: expected one .* found none for image {missing}; rerun extract$"
    with pytest.raises(MelaError, match=message):
        manifest_samples(manifest, image_ids[keep], features[keep])


def test_no_tasks() -> None:
    with pytest.raises(MelaError, match=r"^train manifest: it has no task"):
        manifest_samples(random_manifest(0, 1).head(0), *random_features(0))


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
