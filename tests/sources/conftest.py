"""Fixtures of folders of images."""

from pathlib import Path

import pytest

from mela.params import PARAMS
from tests.helpers.folders import noise
from tests.helpers.project import change


@pytest.fixture
def mine(project: Path) -> Path:
    """Four people with two labels of three photographs each, and parameters for them."""
    for person in range(4):
        for label in range(2):
            folder = Path("mine") / f"p{person}" / f"l{label}"
            folder.mkdir(parents=True)
            for number in range(3):
                noise(100 * person + 10 * label + number).save(folder / f"{number}.png")
    change(PARAMS, {"data.name": "tasks", "data.root": "mine", "data.channels": 3})
    return Path("mine")
