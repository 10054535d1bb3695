"""Real data sets are packed by the pipeline's own stage, and what is not whole is refused as there."""

import io
from collections import Counter
from pathlib import Path

import pytest
import typer
from PIL import Image

from mela.errors import MelaError
from mela.sources.benchmarks import split_of_classes
from studies.data.real import measure

IMAGES = 8_189


@pytest.mark.slow
def test_a_whole_data_set_is_packed(tmp_path: Path) -> None:
    content = io.BytesIO()
    Image.new("RGB", (8, 8), (1, 2, 3)).save(content, format="PNG")
    classes = split_of_classes("vgg_flower")
    for label, place in zip(classes, range(len(classes)), strict=True):
        (tmp_path / label).mkdir()
        for number in range(place, IMAGES, len(classes)):
            (tmp_path / label / f"{number}.png").write_bytes(content.getvalue())
    found = measure(data="vgg_flower", root=[f"vgg_flower={tmp_path}"])
    assert found["form"] == "a folder for each class, perhaps in train, val and test"
    assert {split: found[split] for split in ("train", "val", "test")} == Counter(classes.values())
    assert found["images"] == IMAGES
    # three bytes a pixel, and the header
    assert found["megabytes"] * 1e6 == IMAGES * 84 * 84 * 3 + 128
    assert found["seconds"] > 0
    assert found["memory_mb"] > 50

    (tmp_path / next(iter(classes)) / "0.png").unlink()
    with pytest.raises(
        MelaError, match=r"^data.root: expected 8,189 images in .*, got 8,188; point data.root at the co"
    ):
        measure(data="vgg_flower", root=[f"vgg_flower={tmp_path}"])


def test_a_folder_has_to_be_named() -> None:
    with pytest.raises(typer.BadParameter, match=r"--root: expected cub=FOLDER, got omniglot=x"):
        measure(data="cub", root=["omniglot=x"])
