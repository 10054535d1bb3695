"""Packing images into one array."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mela.errors import MelaError
from mela.sources import packing
from mela.sources.packing import pack_images, shuffled_ids, to_array
from mela.sources.source import ImageSource


def source_of(images: list[Image.Image], load: Callable[[int], Image.Image] | None = None) -> ImageSource:
    names = [f"{i}.png" for i in range(len(images))]
    return ImageSource(splits=["train"] * len(images), sources=names, load=load or images.__getitem__)


def halves(width: int, height: int, left: object, right: object, mode: str) -> Image.Image:
    image = Image.new(mode, (width, height), right)
    image.paste(left, (0, 0, width // 2, height))
    return image


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [1, 100])
def test_shuffled_ids_are_a_permutation_that_the_seed_decides(n: int, seed: int) -> None:
    ids = shuffled_ids(n, seed)
    assert sorted(ids.tolist()) == list(range(n))
    assert ids.dtype == np.int64
    assert ids.tolist() == shuffled_ids(n, seed).tolist()
    if n > 1:
        assert ids.tolist() != list(range(n))
        assert ids.tolist() != shuffled_ids(n, seed + 1).tolist()


def test_neighbours_of_a_class_are_scattered() -> None:
    ids = shuffled_ids(1000, 0)
    assert abs(np.corrcoef(ids, np.arange(1000))[0, 1]) < 0.1


def test_each_image_goes_to_the_row_of_its_id(tmp_path: Path) -> None:
    images = [Image.new("L", (4, 4), 50 * i) for i in range(5)]
    ids = np.array([3, 0, 4, 1, 2])
    pack_images(tmp_path / "images.npy", source_of(images), ids, size=4, channels=1)
    packed = np.load(tmp_path / "images.npy")
    assert (packed.shape, packed.dtype) == ((5, 4, 4, 1), np.uint8)
    for image, row in enumerate(ids):
        assert (packed[row] == 50 * image).all()


@pytest.mark.parametrize("rows", [1, 3, 7, 100])
def test_blocks_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(packing, "BLOCK_BYTES", rows * 4 * 4)
    pixels = np.random.default_rng(0).integers(0, 256, (20, 4, 4, 1), dtype=np.uint8)
    loaded: list[int] = []

    def load(index: int) -> Image.Image:
        loaded.append(index)
        return Image.fromarray(pixels[index, :, :, 0])

    ids = shuffled_ids(20, 0)
    images = [Image.new("L", (4, 4))] * 20
    pack_images(tmp_path / "images.npy", source_of(images, load), ids, size=4, channels=1)
    expected = np.empty_like(pixels)
    expected[ids] = pixels
    np.save(tmp_path / "expected.npy", expected)
    assert (tmp_path / "images.npy").read_bytes() == (tmp_path / "expected.npy").read_bytes()
    assert sorted(loaded) == list(range(20))
    steps_back = sum(after < before for before, after in pairwise(loaded))
    assert steps_back < -(-20 // rows), "within a block the source is read in its own order"


@pytest.mark.parametrize("channels", [1, 3])
def test_packed_rows_are_the_arrays_of_the_images(tmp_path: Path, channels: int) -> None:
    generator = np.random.default_rng(0)
    sizes = [(8, 8), (20, 9), (5, 30)]
    images = [Image.fromarray(generator.integers(0, 256, (*size, 3), dtype=np.uint8)) for size in sizes]
    pack_images(tmp_path / "images.npy", source_of(images), np.array([2, 0, 1]), size=8, channels=channels)
    packed = np.load(tmp_path / "images.npy")
    assert packed.shape == (3, 8, 8, channels)
    for image, row in enumerate([2, 0, 1]):
        np.testing.assert_array_equal(packed[row], to_array(images[image], size=8, channels=channels))


def test_an_image_of_the_right_size_stays_as_it_is() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    np.testing.assert_array_equal(to_array(Image.fromarray(pixels), size=8, channels=3), pixels)


def test_the_centred_square_is_kept() -> None:
    wide = Image.new("L", (30, 10), 255)
    wide.paste(100, (10, 0, 20, 10))
    assert (to_array(wide, size=10, channels=1) == 100).all()
    assert (to_array(wide.rotate(90, expand=True), size=10, channels=1) == 100).all()


@pytest.mark.parametrize("size", [10, 80])
def test_images_are_resized_without_turning_or_mirroring(size: int) -> None:
    image = halves(40, 40, 0, 200, "L")
    image.paste(90, (0, 0, 20, 20))
    array = to_array(image, size=size, channels=1)[..., 0].astype(np.float64)
    assert array.shape == (size, size)
    quarters = array.reshape(2, size // 2, 2, size // 2).mean(axis=(1, 3))
    np.testing.assert_allclose(quarters, [[90, 200], [0, 200]], atol=6)


def test_resizing_is_lanczos() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (24, 24), dtype=np.uint8)
    image = Image.fromarray(pixels)
    expected = np.asarray(image.resize((10, 10), Image.Resampling.LANCZOS))
    np.testing.assert_array_equal(to_array(image, size=10, channels=1)[..., 0], expected)


@pytest.mark.parametrize(
    ("mode", "colour", "grey", "rgb"),
    [
        ("L", 77, 77, (77, 77, 77)),
        ("1", 1, 255, (255, 255, 255)),
        ("RGB", (255, 0, 0), 76, (255, 0, 0)),
        ("RGB", (0, 0, 255), 29, (0, 0, 255)),
    ],
)
def test_colours(mode: str, colour: object, grey: int, rgb: tuple[int, int, int]) -> None:
    image = Image.new(mode, (6, 6), colour)
    assert (to_array(image, size=6, channels=1) == grey).all()
    assert (to_array(image, size=6, channels=3) == rgb).all()
    assert (to_array(image, size=3, channels=3) == rgb).all()


def test_a_palette_is_resolved() -> None:
    image = halves(8, 8, (255, 0, 0), (0, 0, 255), "RGB").quantize(2)
    assert image.mode == "P"
    array = to_array(image, size=8, channels=3)
    assert (array[:, :4] == (255, 0, 0)).all()
    assert (array[:, 4:] == (0, 0, 255)).all()


def test_an_image_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    def load(index: int) -> Image.Image:
        raise MelaError(f"{index}.png: expected an image")

    source = source_of([Image.new("L", (4, 4))], load)
    with pytest.raises(MelaError, match=r"^0\.png: expected an image$"):
        pack_images(tmp_path / "i.npy", source, shuffled_ids(1, 0), size=4, channels=1)
