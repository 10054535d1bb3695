"""Batches of packed images."""

from pathlib import Path

import numpy as np
import pytest
import torch

from mela.data.images import ImageLoader, to_unit

CPU = torch.device("cpu")


@pytest.mark.parametrize("resident", [None, False, True])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_batch_is_the_images_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resident: bool | None, channels: int
) -> None:
    images = np.random.default_rng(0).integers(0, 256, (9, 6, 4, channels), dtype=np.uint8)
    np.save(tmp_path / "images.npy", images)
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
    monkeypatch.setattr("mela.data.images.COPY_BYTES", 2 * images[0].nbytes + 1)
    ids = np.array([7, 0, 0, 8])

    batch = ImageLoader(mapped, CPU, resident=resident)(ids)

    assert batch.dtype == torch.uint8
    assert batch.shape == (4, channels, 6, 4)
    assert batch.is_contiguous(memory_format=torch.channels_last)
    assert (batch.permute(0, 2, 3, 1).numpy() == images[ids]).all()
    batch.zero_()
    assert (mapped == images).all()


def test_unit() -> None:
    batch = torch.tensor([0, 51, 255], dtype=torch.uint8)
    assert to_unit(batch).tolist() == pytest.approx([0, 0.2, 1])
    already = torch.tensor([0.5])
    assert to_unit(already) is already
