"""Peaks of memory, each in a process of its own, so that nothing that was freed before can hide them."""

from pathlib import Path

import numpy as np
import pytest

from mela.io import feature_tables
from tests.helpers.processes import python
from tests.helpers.project import ROOT

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak is Linux's to tell")

ROWS, DIMENSIONS = 80_000, 512
FEATURES = 4 * ROWS * DIMENSIONS
BATCHES = f"""
def batches():
    for start in range(0, {ROWS}, 64):
        ids = np.arange(start, min(start + 64, {ROWS}))
        yield ids, np.ones((len(ids), {DIMENSIONS}), dtype=np.float32) * ids[:, None]
"""


def growth(expression: str, before: str = "") -> int:
    """Bytes by which the peak rises while the expression is evaluated."""
    script = f"""
import numpy as np
from pathlib import Path
from studies.speed.measure import Usage
from mela.io import feature_tables
{before}
print(Usage.of(lambda: {expression}).peak)
"""
    done = python("-c", script, folder=ROOT)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("features") / "features.parquet"
    some = np.random.default_rng(0).normal(size=(ROWS // 10, DIMENSIONS)).astype(np.float32)
    batches = ((np.arange(len(some)) + i * len(some), some + i) for i in range(10))
    feature_tables.write_features(path, batches, DIMENSIONS, stage="extract", params={})
    return path


@pytest.mark.slow
def test_reading_features_takes_little_more_than_the_features(features: Path) -> None:
    assert FEATURES < growth(f"feature_tables.read_features(Path({str(features)!r}))") < 1.5 * FEATURES


@pytest.mark.slow
def test_features_are_written_without_ever_being_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "features.parquet"
    write = f"feature_tables.write_features(Path({str(path)!r}), batches(), {DIMENSIONS}, stage='extract', params={{}})"
    assert growth(write, BATCHES) < 0.8 * FEATURES
    assert len(feature_tables.read_features(path)[0]) == ROWS


@pytest.mark.slow
def test_kmeans_holds_the_features_twice_and_no_more(features: Path, tmp_path: Path) -> None:
    params = tmp_path / "params.yaml"
    params.write_text("kmeans: {n_clusters: 2, n_init: 1, seed: 0}\n", encoding="utf-8")
    paths = f"params=Path({str(params)!r}), features=Path({str(features)!r}), labels=Path({str(tmp_path / 'l')!r})"
    peak = growth(f"label_kmeans.main({paths})", "import sklearn.cluster; from stages import label_kmeans")
    assert peak < 2.5 * FEATURES


def test_packing_holds_one_block_of_images(tmp_path: Path) -> None:
    setting = """
from PIL import Image
from mela.sources import packing
from mela.sources.source import ImageSource
packing.BLOCK_BYTES = 2**22
n = 2000
picture = Image.fromarray(np.full((128, 128, 3), 7, dtype=np.uint8))
source = ImageSource(splits=["train"] * n, sources=[str(i) for i in range(n)], load=lambda index: picture)
ids = packing.shuffled_ids(n, 0)
"""
    path = tmp_path / "images.npy"
    peak = growth(f"packing.pack_images(Path({str(path)!r}), source, ids, size=128, channels=3)", setting)
    assert peak < 0.3 * path.stat().st_size


def test_channel_statistics_hold_few_images() -> None:
    setting = """
from mela.data.images import channel_statistics
images = np.ones((4096, 32, 32, 3), dtype=np.uint8)
"""
    # all as 8-byte numbers would be 100 MB
    assert growth("channel_statistics(images, np.arange(4096))", setting) < 30e6
