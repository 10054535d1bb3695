"""Measure time and memory of the pipeline's steps as images and tasks grow: rows ``scale_*`` of bench.json.

``python -m studies speed.scale``, with OMP_NUM_THREADS=1 for one thread. Images and features are made on the fly; tasks
have 5 classes of 5 + 15 images. Each step runs in a process of its own. `reference` is the time of the previous size in
proportion to the size, so that a ratio of 1 is linear growth (for the first size its own time). What is measured stays
in the folder: after a run that was cut off, the next one goes on.
"""

import inspect
import io
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer
from PIL import Image

from mela.data.array_types import Features, Ints
from mela.data.images import channel_statistics
from mela.data.sampling import draw_with_replacement
from mela.io import feature_tables, schemas, store
from mela.io.atomic import replacing
from mela.models.backbones import build_backbone
from mela.models.features import feature_batches
from mela.params import LABELS
from mela.sources.packing import pack_images, shuffled_ids
from mela.sources.source import ImageSource
from stages import label, label_kmeans, label_merged
from studies.lab import plain
from studies.speed.measure import Usage, record, write_rows

SIZE, CHANNELS, DIMENSIONS, CLASSES = 32, 3, 640, 351
LABEL_IMAGES, J, Q = 100_000, 1000, 4.5
JPEG_SIZE, JPEG_SIDE = (500, 375), 84

Batches = Iterator[tuple[Ints, Features]]


def synthetic_source(n_images: int) -> ImageSource:
    """Return noise images without files, with names as long as a folder's."""
    bank = np.random.default_rng(0).integers(0, 256, (1000, SIZE, SIZE, CHANNELS), dtype=np.uint8)
    return ImageSource(
        splits=["train"] * n_images,
        sources=[f"train/n{i % CLASSES:08d}/n{i % CLASSES:08d}_{i:08d}.jpg" for i in range(n_images)],
        classes=[f"n{i % CLASSES:08d}" for i in range(n_images)],
        load=lambda i: Image.fromarray(bank[i % 1000] ^ np.uint8(i // 1000 % 256)),
    )


def synthetic_features(n_images: int) -> Batches:
    """Return features around class centers, not negative, half of them zero; image i has class i mod 351."""
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((CLASSES, DIMENSIONS), dtype=np.float32)
    noise = rng.standard_normal((8191, DIMENSIONS), dtype=np.float32)
    for start in range(0, n_images, 1024):
        ids = np.arange(start, min(start + 1024, n_images))
        yield ids, np.maximum(centers[ids % CLASSES] + noise[ids % len(noise)], 0)


def pack(folder: Path, n: int) -> None:
    """Run the stage images: all images and both tables."""
    source, ids = synthetic_source(n), shuffled_ids(n, 0)
    with replacing(folder / "images.npy") as temporary:
        pack_images(temporary, source, ids, size=SIZE, channels=CHANNELS)
    rows = pd.DataFrame({"image_id": ids, "split": source.splits, "source": source.sources}).sort_values("image_id")
    store.write_table(folder / "index.parquet", rows, schemas.INDEX, stage="images", params={})
    classes = pd.DataFrame({"image_id": ids, "class": source.classes}).sort_values("image_id")
    store.write_table(folder / "truth.parquet", classes, schemas.TRUTH, stage="images", params={})


def statistics(folder: Path, n: int) -> None:
    """Compute mean and deviation of all images."""
    channel_statistics(store.open_images(folder / "images.npy"), np.arange(n))


def extract(folder: Path, n: int, *, width: int) -> None:
    """Run the stage extract with conv4: 4 features per channel of its layers, written as they come."""
    backbone = build_backbone(**plain("conv4", size=SIZE, channels=CHANNELS, width=width), seed=0)
    found = feature_batches(backbone, store.open_images(folder / "images.npy"), np.arange(n))
    feature_tables.write_features(folder / "extracted.parquet", found, backbone.dimensions, stage="extract", params={})


def write(folder: Path, n: int) -> None:
    """Write 640 features of each image to disk."""
    feature_tables.write_features(
        folder / "features.parquet", synthetic_features(n), DIMENSIONS, stage="extract", params={}
    )


def read(folder: Path, n: int) -> None:
    """Read 640 features of each image from disk."""
    feature_tables.read_features(folder / "features.parquet")


def kmeans(folder: Path, n: int) -> None:
    """Run the stage label_kmeans with 351 clusters."""
    (folder / "params.yaml").write_text(f"kmeans: {{n_clusters: {CLASSES}, n_init: 1, seed: 0}}\n", encoding="utf-8")
    label_kmeans.main(
        params=folder / "params.yaml", features=folder / "features.parquet", labels=folder / "labels.parquet"
    )


def decode(folder: Path, n: int) -> None:
    """Pack JPEG files of 500 x 375 pixels at 84 pixels."""
    rng, buffer = np.random.default_rng(0), io.BytesIO()
    coarse = Image.fromarray(rng.integers(0, 256, (24, 32, 3), dtype=np.uint8))
    coarse.resize(JPEG_SIZE, Image.Resampling.BICUBIC).save(buffer, "JPEG", quality=90)
    names = [str(i) for i in range(n)]
    source = ImageSource(splits=["train"] * n, sources=names, load=lambda i: Image.open(io.BytesIO(buffer.getvalue())))
    pack_images(folder / "decoded.npy", source, np.arange(n), size=JPEG_SIDE, channels=CHANNELS)


def manifest(folder: Path, n: int) -> None:
    """Run the stage manifest: n tasks drawn with replacement."""
    classes = {str(own): np.arange(own, LABEL_IMAGES, CLASSES) for own in range(CLASSES)}
    drawn = draw_with_replacement(classes, n_tasks=n, ways=5, shots=5, queries=15, seed=0, split="train")
    store.write_table(folder / "manifest.parquet", drawn, schemas.MANIFEST, stage="manifest", params={})


def infer(folder: Path, n: int, *, merge: bool) -> None:
    """Run the stage label_merged or label on 640 features of 100,000 images."""
    shared = {"collisions": "drop", "min_count": 1, "seed": 0}
    pruning = {"n_clusters": J, "q": Q, "guard": True, "cumulative_weights": False, "max_passes": 100}
    blocks = {"merging": shared, "labeler": shared | pruning, "compare": dict.fromkeys(LABELS, True)}
    (folder / "params.yaml").write_text(json.dumps(blocks), encoding="utf-8")
    stage = label_merged if merge else label
    # all of them: one that is left out goes where the project has its own
    outs = inspect.signature(stage.main).parameters.keys() - {"params", "features", "train"}
    features = folder.parent / f"images-{LABEL_IMAGES}" / "features.parquet"
    stage.main(
        params=folder / "params.yaml",
        features=features,
        train=folder / "manifest.parquet",
        **{out: folder / out for out in outs},
    )


IMAGE_STEPS: dict[str, Callable[[Path, int], None]] = {
    "pack": pack,
    "statistics": statistics,
    "extract": partial(extract, width=64),
    "extract_narrow": partial(extract, width=8),
    "write": write,
    "read": read,
    "kmeans": kmeans,
}
TASK_STEPS: dict[str, Callable[[Path, int], None]] = {
    "manifest": manifest,
    "label_merged": partial(infer, merge=True),
    "label_pruned": partial(infer, merge=False),
}
STEPS = IMAGE_STEPS | TASK_STEPS | {"decode": decode}
DECODED = 1000
# the step before makes a load of about 1 itself
SHARED_LOAD = 1.2


def measured(step: str, folder: Path, n: int) -> dict[str, float]:
    """Run a step in this process."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))
    return asdict(Usage.of(lambda: STEPS[step](folder, n)))


def once(step: str, folder: Path, n: int) -> dict[str, float]:
    """Return what a step takes, in a new process unless it is known."""
    known = folder / f"{step}.json"
    if not known.exists():
        load = os.getloadavg()[0]
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            found = pool.submit(measured, step, folder, n).result()
        store.write_json(known, found | {"load": load})
    return store.read_json(known)


def rows_of(step: str, found: dict[int, dict[str, float]]) -> list[dict[str, Any]]:
    """Return the lines of studies/results/bench.json, one per size."""
    sizes = sorted(found)
    rows = []
    for before, n in [(sizes[0], sizes[0]), *pairwise(sizes)]:
        taken, previous = found[n], found[before]
        more: dict[str, Any] = {
            "data": str(n),
            "cpu_seconds": round(taken["cpu_seconds"], 2),
            "cpu_ratio": round(taken["cpu_seconds"] / (previous["cpu_seconds"] * n / before), 3),
            "peak_mb": round(taken["peak"] / 1e6, 1),
            "own_peak_mb": round(taken["own_peak"] / 1e6, 1),
            "threads": int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)),
            "load_before": round(taken["load"], 2),
            "shared_machine": taken["load"] > SHARED_LOAD,
        }
        in_proportion = previous["seconds"] * n / before
        rows.append(record(f"scale_{step}", taken["seconds"], in_proportion, unit="s", n=1, **more))
    return rows


def main(
    images: Annotated[list[int], typer.Option(help="numbers of images")] = [10_000, 100_000, 1_000_000],  # noqa: B006
    tasks: Annotated[list[int], typer.Option(help="numbers of tasks")] = [1000, 5000, 20_000],  # noqa: B006
    steps: Annotated[list[str], typer.Option(help="which")] = list(STEPS),  # noqa: B006
    folder: Annotated[Path, typer.Option(help="for images, features and times: some 8 GB")] = Path("build/scale"),
) -> None:
    """Measure what is missing and add all of it to studies/results/bench.json."""
    if set(steps) & {"label_merged", "label_pruned"}:
        once("write", folder / f"images-{LABEL_IMAGES}", LABEL_IMAGES)
    for step in steps:
        kind, sizes = ("tasks", tasks) if step in TASK_STEPS else ("images", images)
        found = {n: once(step, folder / f"{kind}-{n}", n) for n in sorted([DECODED] if step == "decode" else sizes)}
        write_rows(rows_of(step, found))
