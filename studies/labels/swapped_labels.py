"""Give some images of people's tasks a wrong label, and tell what that costs and what finds them."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from mela.io import schemas, store
from mela.io.checked_tables import read_assignments, read_manifest
from mela.io.name_tables import KEYS
from mela.labeling.training_samples import read_samples
from mela.labeling.wrong_labels import WrongLabels, find_wrong_labels
from mela.params import ROUNDS
from stages.common import paths
from studies.clones import change, for_clone
from studies.labels.people import prepare, row_of

# tasks, and kinds of labels that are compared
PEOPLE = 100
COMPARED = {"merged": True, "merged_soft": True, "pruned": False, "oracle": True}
BEFORE = ("images", "names", "manifest")
# as many steps as with the preset's larger epochs
SCHEDULE = {"embed.tasks_per_epoch": None, "embed.epochs": 6, "embed.milestones": [4]}


def measure(*, data: str, wrong: float, seed: int, folder: Path, root: Path) -> list[dict[str, Any]]:
    """Return a row for each kind of labels, and one of what merging finds after images have moved.

    Parameters
    ----------
    data : str
        A preset of images by people, who are alike here.
    wrong : float
        Share of the training images that get another label of their task.
    seed : int
        Of the people, of both trainings, and of which images these are.
    folder : Path
        The run has a folder of its own in this one.
    root : Path
        Folder of the raw data, which glyphs need none of.
    """
    own = folder / f"{data}_{wrong:g}_{seed}"
    prepare(own, data=data, share=0.0, seed=seed, root=root, train=PEOPLE)
    compared = {f"compare.{name}": value for name, value in COMPARED.items()}
    change(own / "params.yaml", compared | {f"rounds.{name}": False for name in ROUNDS} | SCHEDULE)
    for stage in BEFORE:
        _run(own, f"stages.{stage}")
    right = read_manifest(own / paths.TRAIN)
    given = mixed(right, wrong, np.random.default_rng(seed))
    _write(own, given)
    _run(own, "mela", "run", "--from", "corrections")
    metrics = store.read_json(own / paths.OVERVIEW)
    rows = [row_of(metrics, labels) for labels in ("initial", "merged", "merged_soft", "oracle")]
    found, moved = _found(own, given)
    rows[1] |= scores(found, given["local_label"].to_numpy() != right["local_label"].to_numpy())
    change(own / "params.yaml", {"compare.merged_soft": False, "compare.oracle": False})
    _write(own, moved)
    _run(own, "mela", "run", "--from", "label_merged")
    rows.append(row_of(store.read_json(own / paths.OVERVIEW), "merged") | {"labels": "moved"})
    shutil.rmtree(own)
    return rows


def mixed(manifest: pd.DataFrame, share: float, generator: np.random.Generator) -> pd.DataFrame:
    """Return a manifest in which a share of the images have another label of their task, chosen at random."""
    labels = manifest["local_label"].to_numpy()
    ways = manifest.groupby("task_id")["local_label"].transform("nunique").to_numpy()
    others = (labels + generator.integers(1, ways)) % ways
    return manifest.assign(local_label=np.where(generator.random(len(labels)) < share, others, labels))


def _found(run: Path, manifest: pd.DataFrame) -> tuple[WrongLabels, pd.DataFrame]:
    """Return what is found to be wrong, for the rows of a manifest, and the manifest with such images moved."""
    samples, _ = read_samples(manifest, run / paths.FEATURES)
    assigned = read_assignments(run / paths.MERGED_TASKS, manifest)
    known = assigned[assigned["clustered"]].set_index(KEYS)["cluster"]
    clusters = known.reindex(samples.names, fill_value=-1).to_numpy(dtype=np.int64)
    found = find_wrong_labels(samples, clusters)
    probabilities, other = np.empty(len(manifest)), np.empty(len(manifest), dtype=np.int64)
    probabilities[samples.order], other[samples.order] = found.probabilities, samples.local_labels[found.others]
    labels = np.where(probabilities > 0.5, other, manifest["local_label"])
    return WrongLabels(share=found.share, probabilities=probabilities, others=other), manifest.assign(
        local_label=labels
    )


def scores(found: WrongLabels, wrong: "np.ndarray[Any, np.dtype[np.bool_]]") -> dict[str, float | None]:
    """Tell how well wrong labels are found: those with a probability above one half."""
    named = found.probabilities > 0.5
    return {
        "told": 100 * found.share,
        "named": 100 * float(named.mean()),
        "right": 100 * float(wrong[named].mean()) if named.any() else None,
        "found": 100 * float(named[wrong].mean()) if wrong.any() else None,
        "auroc": float(roc_auc_score(wrong, found.probabilities)) if wrong.any() else None,
    }


def _write(run: Path, manifest: pd.DataFrame) -> None:
    store.write_table(run / paths.TRAIN, manifest, schemas.MANIFEST, stage="manifest", params={})


def _run(folder: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-m", *words], cwd=folder, env=for_clone(), check=True)
