"""Means of task classes."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mela.class_means import class_means
from mela.errors import MelaError


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
@settings(deadline=None, max_examples=30)
def test_means_and_sizes_are_those_of_groupby(seed: int, n_tasks: int) -> None:
    manifest, (image_ids, features) = random_manifest(seed, n_tasks), random_features(seed)
    found = class_means(manifest, image_ids, features)
    samples = pd.DataFrame(features.astype(np.float64), index=image_ids).loc[manifest["image_id"]]
    groups = samples.reset_index(drop=True).groupby([manifest["task_id"], manifest["local_label"]])
    expected = groups.mean()
    np.testing.assert_allclose(found.means, expected.to_numpy(), rtol=0, atol=1e-12)
    assert found.means.dtype == np.float64
    assert list(zip(found.task_ids.tolist(), found.local_labels.tolist(), strict=True)) == expected.index.tolist()
    assert found.sizes.tolist() == groups.size().tolist()


def test_starts_bound_the_tasks() -> None:
    manifest = random_manifest(1, 6)
    found = class_means(manifest, *random_features(1))
    ways = manifest.groupby("task_id")["local_label"].nunique()
    assert ways.nunique() > 1
    assert np.diff(found.starts).tolist() == ways.tolist()
    assert found.task_ids[found.starts[:-1]].tolist() == ways.index.tolist()
    assert found.starts[-1] == len(found.means)


def test_starts_of_a_single_task() -> None:
    found = class_means(random_manifest(0, 1), *random_features(0))
    assert found.starts.tolist() == [0, len(found.means)]


def test_rows_of_finds_the_class_of_each_sample() -> None:
    manifest = random_manifest(2, 6)
    found = class_means(manifest, *random_features(2))
    rows = found.rows_of(manifest)
    assert found.task_ids[rows].tolist() == manifest["task_id"].tolist()
    assert found.local_labels[rows].tolist() == manifest["local_label"].tolist()
    assert np.bincount(rows).tolist() == found.sizes.tolist()


def test_an_image_without_features_is_named() -> None:
    manifest, (image_ids, features) = random_manifest(3, 4), random_features(3)
    missing = int(manifest["image_id"].iloc[5])
    keep = image_ids != missing
    message = rf"^features: expected one .* found none for image {missing}; rerun extract$"
    with pytest.raises(MelaError, match=message):
        class_means(manifest, image_ids[keep], features[keep])


def test_no_tasks() -> None:
    with pytest.raises(MelaError, match=r"^train manifest: expected at least one task, found none$"):
        class_means(random_manifest(0, 1).head(0), *random_features(0))
