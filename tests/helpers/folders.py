"""Folders of images as people have them, and what the check and the stages say of them."""

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import stages.images
from mela.errors import MelaError
from tests.helpers.commands import mela
from tests.helpers.processes import python
from tests.helpers.project import ROOT

PRESET, BENCHMARK = ROOT / "presets/glyphs.yaml", ROOT / "benchmark/data/glyphs.yaml"


@dataclass
class Done:
    """How `mela data check` ended."""

    status: int
    out: str
    err: str

    def errors(self) -> list[str]:
        return [line.removeprefix("error: ") for line in self.out.splitlines() if line.startswith("error: ")]

    def warnings(self) -> list[str]:
        return [line.removeprefix("warning: ") for line in self.out.splitlines() if line.startswith("warning: ")]


def check(*arguments: object, preset: str | Path | None = PRESET) -> Done:
    """Run the command in this process; without a preset it chooses one."""
    done = mela("data", "check", *arguments, *(() if preset is None else ("--preset", preset)))
    return Done(done.returncode, done.stdout, done.stderr)


def picture(path: str, seed: int, mode: str = "RGB", size: tuple[int, int] = (40, 34)) -> Path:
    target = Path("mine") / path
    target.parent.mkdir(parents=True, exist_ok=True)
    shape = size[::-1] if mode == "L" else (*size[::-1], len(mode))
    Image.fromarray(np.random.default_rng(seed).integers(0, 255, shape, dtype=np.uint8), mode).save(target)
    return target


def people(n_people: int = 6, n_labels: int = 2, n_images: int = 4, mode: str = "RGB") -> list[str]:
    """Folders <person>/<label>/<image>."""
    names = [
        f"p{person}/l{(person + label) % 4}/{number}.png"
        for person in range(n_people)
        for label in range(n_labels)
        for number in range(n_images)
    ]
    for seed, name in enumerate(names):
        picture(name, seed, mode)
    return names


def table_of(names: list[str], name: str = "tasks.csv", **columns: Callable[[str], str]) -> pd.DataFrame:
    rows = pd.DataFrame(
        {"task_id": [n.split("/")[0] for n in names], "local_label": [n.split("/")[1] for n in names], "path": names}
        | {column: [choose(n) for n in names] for column, choose in columns.items()}
    )
    rows.to_csv(f"mine/{name}", index=False)
    return rows


def noise(seed: int, size: tuple[int, int] = (24, 20)) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 255, (*size, 3), dtype=np.uint8))


def told_by_the_stage(capsys: pytest.CaptureFixture[str]) -> str:
    """What the stage images says: its error, or its lines."""
    try:
        stages.images.main()
    except MelaError as error:
        return f"error: {error}"
    return capsys.readouterr().out


def socket_at(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path.name)
    os.chdir(here)


def truncated(path: Path) -> None:
    noise(9, (200, 200)).save(path)
    path.write_bytes(path.read_bytes()[:3000])


@contextmanager
def rights_of(path: Path, mode: int) -> Iterator[None]:
    """Other rights of a file or folder, for a while."""
    before = path.stat().st_mode
    path.chmod(mode)
    try:
        yield
    finally:
        path.chmod(before)


def contents(folder: Path) -> dict[str, object]:
    """Every file and link below a folder."""
    return {
        path.relative_to(folder).as_posix(): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def without_rights(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A module that a user runs whom the rights of files concern; root gives up what root is exempt from."""
    return python("-m", "tests.helpers.restricted", "rights", module, *arguments)


def without(*names: str) -> Callable[[Path], None]:
    """What removes files below a folder."""

    def remove(root: Path) -> None:
        for name in names:
            (root / name).unlink()

    return remove


def edited(name: str, old: str, new: str) -> Callable[[Path], None]:
    """What changes a text in a file below a folder once."""

    def edit(root: Path) -> None:
        text = (root / name).read_text()
        assert old in text
        (root / name).write_text(text.replace(old, new, 1))

    return edit
