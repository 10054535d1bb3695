"""Give every reader damaged files, and the labeler odd features, at random for any length of time.

A reader gives what a file holds or says in one line (`MelaError`) what is wrong with it; anything else is a find:
another exception, a warning, a crash, or more memory than the child process is given. Each batch runs in a process of
its own, so that a crash is a find like any other. Writes studies/results/fuzz.json.

Atheris is guided by coverage, and readers that are compiled, such as those of pyarrow, Pillow and safetensors, report
none to it.
"""

import json
import random
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer
from PIL import Image

from mela.errors import MelaError
from mela.io import feature_tables, schemas, store
from mela.io.text_tables import read_text
from mela.labeling.labeler_choice import build_labeler
from mela.models.backbones import build_backbone
from mela.models.files import load_model, save_model
from mela.params import check_document
from mela.sources.image_files import open_image
from mela.sources.split_tables import parse_split_table
from mela.sources.task_rows import check_tasks, read_table
from mela.training.checkpoint import Checkpoint
from mela.training.targets import read_targets
from studies.lab import plain

ROOT = Path(__file__).parents[2]
RESULT = Path("studies/results/fuzz.json")
MEMORY = 2**33
SIZE = 16
LABELER = "labeler"

Target = tuple[Callable[[Path], Any], Callable[[Path], Any]]
"""What writes a good file, and what reads it."""


def _table(schema: Any, **columns: Any) -> Callable[[Path], None]:
    return lambda path: store.write_table(path, pd.DataFrame(columns), schema, stage="fuzz", params={})


def _features(path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(300, 7)).astype(np.float32)
    feature_tables.write_features(path, [(np.arange(300), values)], 7, stage="fuzz", params={})


def _model(path: Path) -> None:
    configuration = plain("conv4", size=SIZE, channels=1, width=2)
    save_model(path, build_backbone(**configuration, seed=0), configuration)


def _checkpoint(path: Path) -> Checkpoint:
    return Checkpoint(path=path, fingerprint="a", interval=0)


def _read_checkpoint(path: Path) -> None:
    """Read what was saved, or nothing."""
    found = _checkpoint(path).load()
    assert found is None or (found[0]["x"].tolist() == [0, 1, 2, 3, 4] and found[1] == {"steps": 1}), "another state"


def _picture(path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 255, (24, 20, 3), dtype=np.uint8)
    Image.fromarray(values).save(path, **({"compression": "tiff_lzw"} if path.suffix == ".tif" else {}))


def _task_table(suffix: str) -> Callable[[Path], None]:
    rows = [*product("ab", "xyz", ("support", "query"))]
    table = pd.DataFrame(rows, columns=["task_id", "local_label", "role"])
    table.insert(2, "path", [f"{number}.png" for number in range(len(rows))])
    return lambda path: table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)


def _read_tasks(path: Path) -> None:
    for number in range(12):
        (path.parent / f"{number}.png").touch()
    check_tasks(read_table(path, path.parent))


IMAGES = np.zeros((2, SIZE, SIZE, 1), dtype=np.uint8)
LABELS = {"image_id": np.arange(60), "label": np.arange(60) % 5}
CURVE = {"epoch": [1, 2], "loss": 0.5, "accuracy": 9.5, "learning_rate": 0.1}
TARGETS: dict[str, Target] = {
    "params.yaml": (lambda path: path.write_bytes((ROOT / "presets/glyphs.yaml").read_bytes()), check_document),
    "features.parquet": (_features, feature_tables.read_features),
    "labels.parquet": (_table(schemas.LABELS, **LABELS), partial(read_targets, soft=False)),
    "soft.parquet": (_table(schemas.SOFT_LABELS, **LABELS, weight=1.0), partial(read_targets, soft=True)),
    "images.npy": (lambda path: np.save(path, IMAGES), lambda path: store.open_images(path).sum()),
    "model.safetensors": (_model, lambda path: load_model(path, torch.device("cpu"), IMAGES)),
    "checkpoint.safetensors": (
        lambda path: _checkpoint(path).save({"x": torch.arange(5)}, {"steps": 1}),
        _read_checkpoint,
    ),
    "metrics.json": (lambda path: store.write_json(path, {"a": [1, 2.5, None]}), store.read_json),
    "curve.csv": (
        lambda path: store.write_csv(path, pd.DataFrame(CURVE)),
        partial(store.read_csv, schema=schemas.CURVE),
    ),
    "split.csv": (
        lambda path: path.write_text("split,class\ntrain,a\nval,b\ntest,c\n"),
        lambda path: parse_split_table(read_text(path, "data.table"), where=path.name),
    ),
    "tasks.csv": (_task_table("csv"), _read_tasks),
    "tasks.parquet": (_task_table("parquet"), _read_tasks),
    **{
        f"image.{suffix}": (_picture, lambda path: open_image(path, path.name).load())
        for suffix in ("png", "jpg", "gif", "bmp", "webp", "tif")
    },
}


def damage(content: bytes, draw: random.Random) -> bytes:
    """Make one to four changes: bytes are flipped, set, cut out, doubled, or put in place of others."""
    changed = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        start = draw.randrange(len(changed) + 1)
        end = min(len(changed), start + draw.choice((1, 1, 2, 4, 8, 64)))
        kind = draw.randrange(6)
        if kind == 0 and start < len(changed):
            changed[start] ^= 1 << draw.randrange(8)
        elif kind == 1:
            changed[start:end] = draw.randbytes(end - start)
        elif kind == 2:
            changed[start:end] = b""
        elif kind == 3:
            changed[start:start] = changed[start:end]
        elif kind == 4:
            changed[start:end] = draw.choice((b"\xff", b"\0", b"9", b'"', b",", b"\n")) * (end - start)
        else:
            del changed[start:]
    return bytes(changed)


def read_damaged(name: str, seed: int, folder: Path) -> str | None:
    """Read a damaged file; return what is found, if anything."""
    write, read = TARGETS[name]
    path = folder / name
    good = folder / f"good.{name}"
    if not good.exists():
        write(good)
    path.write_bytes(damage(good.read_bytes(), random.Random(f"{name} {seed}")))
    return attempt(lambda: read(path))


def attempt(work: Callable[[], Any]) -> str | None:
    """Return the error of a piece of work; None if there is none, or if it is a MelaError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            work()
    except MelaError:
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def label_odd_tasks(seed: int) -> None:
    """Fit a labeler to features of an unusual kind, and check its promises."""
    draw = np.random.default_rng(seed)
    n_tasks, m = int(draw.integers(1, 40)), int(draw.integers(1, 12))
    X, y, groups = [], [], []
    prototypes = draw.normal(size=(int(draw.integers(1, 12)), m))
    for task in range(n_tasks):
        ways = int(draw.integers(1 if draw.random() < 0.02 else 2, 6))
        for label in range(ways):
            own = prototypes[draw.integers(len(prototypes))]
            size = int(draw.integers(1, 6))
            X.append(own + draw.choice([0.0, 0.1, 1.0]) * draw.normal(size=(size, m)))
            y += [label] * size
            groups += [task] * size
    features = np.concatenate(X)
    match int(draw.integers(8)):
        case 0:
            features[:] = 1.0
        case 1:
            features *= 10.0 ** draw.integers(-150, 150)
        case 2:
            features[:, draw.integers(m)] = 0
        case 3:
            features = np.repeat(features[:, :1], m, axis=1)
        case 4:
            features[draw.integers(len(features))] = draw.choice([np.nan, np.inf, 1e30])
        case 5:
            features = features.astype(np.float32)
    labeler = build_labeler(
        merge=bool(draw.random() < 0.6),
        n_clusters=int(draw.integers(2, 30)),
        q=float(draw.choice([0.0, 3.5, 6.5])),
        min_count=int(draw.integers(1, 4)),
        collisions="drop" if draw.random() < 0.5 else "assign",
        soft=bool(draw.random() < 0.5),
        random_state=seed,
    )
    y_, groups_ = np.array(y), np.array(groups)
    labels = labeler.fit(features, y_, groups_).labels_
    assert labels.shape == (len(features),)
    assert labels.min() >= -1
    assert labels.max() < len(labeler.cluster_centers_)
    found = pd.DataFrame({"task": groups_, "y": y_, "label": labels})
    assert (found.groupby(["task", "y"])["label"].nunique() == 1).all(), "one label for each class of a task"
    clustered = found[found["label"] >= 0].drop_duplicates(["task", "y"])
    assert not clustered.duplicated(["task", "label"]).any(), "classes of a task have different labels"


def batch(name: str, first: int, count: int) -> list[tuple[int, str]]:
    """Return the errors found by some seeds."""
    with TemporaryDirectory() as folder:

        def find(seed: int) -> str | None:
            return (
                attempt(partial(label_odd_tasks, seed)) if name == LABELER else read_damaged(name, seed, Path(folder))
            )

        return [(seed, found[:300]) for seed in range(first, first + count) if (found := find(seed))]


def main(
    minutes: Annotated[float, typer.Option(help="how long")] = 60,
    first: Annotated[int, typer.Option(help="seed to begin with")] = 0,
    count: Annotated[int, typer.Option(help="of a batch")] = 500,
    child: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    """Damage files until the time is over."""
    if child:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        print(json.dumps(batch(child, first, count)))
        return
    end, done, finds = time.monotonic() + 60 * minutes, Counter[str](), []
    while time.monotonic() < end:
        for name in [*TARGETS, LABELER]:
            some = count // 10 if name in (LABELER, "params.yaml") else count
            command = ["--child", name, "--first", str(first), "--count", str(some)]
            ended = subprocess.run(
                [sys.executable, "-m", "studies", "robustness.fuzz", *command], capture_output=True, text=True
            )
            crash = [(first, f"ended with {ended.returncode}: {ended.stderr[-300:]}")]
            for seed, text in crash if ended.returncode else json.loads(ended.stdout):
                finds.append({"target": name, "seed": seed, "found": text})
                print(name, seed, text, flush=True)
            done[name] += some
            store.write_json(RESULT, {"minutes": minutes, "runs": dict(done), "finds": finds})
        first += count
    print({"runs": sum(done.values()), "finds": len(finds)})
