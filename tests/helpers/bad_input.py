"""Bad input of a stage, and what the stage says about it.

In each case the stage ends with status 1, writes the line of the message and no other, and every file is as it was.
"""

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from mela.params import PARAMS
from tests.helpers.folders import contents
from tests.helpers.project import change

Spoil = Callable[[], Any]
Change = Callable[[pd.DataFrame], pd.DataFrame]
RERUN = "rerun the stage that makes it"


class Case(NamedTuple):
    """A stage, what spoils its input, and the message as a regular expression."""

    stage: str
    spoil: Spoil
    message: str


def fails(stage: str, message: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Run a stage, or a cell such as ``pretrain@merged``, as its script does."""
    script, _, cell = stage.partition("@")
    module = import_module(f"stages.{script}")
    start = getattr(module, "run_shared", None) or module.run
    before = contents(Path())
    monkeypatch.setattr(sys, "argv", [f"stages/{script}.py", *([cell] if cell else [])])
    capfd.readouterr()
    with pytest.raises(SystemExit) as ended:
        start(module.main)
    said = capfd.readouterr().err
    assert re.fullmatch(f"error: {message}\n", said), said
    assert ended.value.code == 1
    assert contents(Path()) == before


def one_line_each(cases: dict[str, Case]) -> Callable[..., None]:
    """The test of a module's cases."""

    @pytest.mark.parametrize("name", cases)
    def test(name: str, copied: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        cases[name].spoil()
        fails(cases[name].stage, cases[name].message, monkeypatch, capfd)

    return test


def params(**changes: Any) -> Spoil:
    """Change values, named block__key, or by the block that is one."""
    return lambda: change(PARAMS, {name.replace("__", "."): value for name, value in changes.items()})


def cut(size: int) -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(path.read_bytes()[:size])


def cell(row: int, column: str, value: Any) -> Change:
    """Change one cell."""
    return lambda rows: rows.assign(**{column: rows[column].where(rows.index != row, value)})


def picture(path: str, *, seed: int = 0, mode: str = "L", **options: Any) -> Path:
    """Write a picture."""
    shape = (20, 24) if mode in ("L", "I;16", "F", "P") else (20, 24, len(mode))
    values = np.random.default_rng(seed).integers(0, 255, shape)
    kind = {"I;16": np.uint16, "F": np.float32}.get(mode, np.uint8)
    target = Path("mine") / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if mode == "I;16":
        values *= 257
    Image.fromarray(values.astype(kind), None if mode in ("I;16", "F") else mode).save(target, **options)
    return target


def folders(spoil: Spoil = lambda: None, **changes: Any) -> Spoil:
    """Images of six classes in folders, and what is wrong with them."""

    def prepare() -> None:
        for number in range(6):
            for drawing in range(4):
                picture(f"class {number}/{drawing}.png", seed=10 * number + drawing)
        change(PARAMS, {"data.name": "folder", "data.root": "mine"})
        params(**changes)()
        spoil()

    return prepare


def split_table(text: str) -> Spoil:
    return lambda: (Path("mine/split.csv").write_text(text), change(PARAMS, {"data.table": "split.csv"}))
