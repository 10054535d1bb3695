"""Open and pack real data sets as the pipeline does, for ``python -m studies data.real``."""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer

from mela.errors import MelaError
from mela.io import schemas, store
from mela.io.checked_tables import read_truth
from mela.io.schemas import SPLITS
from mela.params import PARAMS
from mela.runtime.usage import FOLDER as USAGE
from mela.runtime.usage import read_usage
from mela.sources.check.recognised import KNOWN
from stages.common import paths
from studies.clones import change, for_clone

ROOT = Path(__file__).parents[2]
# the preset that a data set is packed by, where that has another name
PRESETS = dict.fromkeys(("cub", "aircraft", "vgg_flower"), "mini_imagenet_cpu")


def measure(*, data: str, root: list[str]) -> dict[str, Any]:
    """Return what the stage ``images`` makes of a data set, and what that takes.

    Parameters
    ----------
    data : str
        Value of ``data.name``.
    root : list of str
        NAME=FOLDER for each data set.

    Raises
    ------
    MelaError
        The stage refuses the folder; the message is the stage's.
    """
    roots = dict(item.split("=", 1) for item in root)
    if data not in roots:
        raise typer.BadParameter(f"--root: expected {data}=FOLDER, got {', '.join(root) or 'nothing'}")
    home = Path(roots[data]).resolve()
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        preset = ROOT / "presets" / f"{PRESETS.get(data, data)}.yaml"
        (folder / PARAMS).write_text(preset.read_text(encoding="utf-8"), encoding="utf-8")
        change(folder / PARAMS, {"data.name": data, "data.root": str(home)})
        done = subprocess.run(
            [sys.executable, "-m", "stages.images"],
            cwd=folder,
            env=for_clone(PYTHONPATH=str(ROOT)),
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode:
            raise MelaError(done.stderr.strip().removeprefix("error: "))
        index, truth = store.read_table(folder / paths.INDEX, schemas.INDEX), read_truth(folder / paths.TRUTH)
        classes = truth.merge(index, on="image_id").groupby("split")["class"].nunique()
        usage = read_usage(folder / USAGE / "images.json")
        form = next((one.form_of(home) for one in KNOWN if one.name == data), None)
        return {
            "form": form.title if form else "",
            "images": len(index),
            **{split: int(classes.get(split, 0)) for split in SPLITS},
            "megabytes": (folder / paths.IMAGES).stat().st_size / 1e6,
            "seconds": usage.seconds,
            "memory_mb": usage.memory / 1e6,
        }
