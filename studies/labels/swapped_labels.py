"""Give some images of people's tasks a wrong label, and tell what that costs and what finds them."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from mela.data.array_types import Floats
from mela.io import schemas, store
from mela.io.checked_tables import read_assignments, read_manifest, read_truth
from mela.io.name_tables import KEYS
from mela.labeling.training_samples import read_samples
from mela.labeling.wrong_label_listing import clusters_of
from mela.labeling.wrong_labels import find_wrong_labels
from mela.params import ROUNDS
from stages.common import paths
from studies.clones import change, run_module, run_stages
from studies.labels.expected import scored
from studies.labels.people import prepare, row_of

# tasks, and kinds of labels that are compared
PEOPLE = 100
COMPARED = {"merged": True, "merged_soft": True, "pruned": False, "oracle": True}
BEFORE = ("images", "names", "manifest")
# rounds are off, and only pass on what they get
TO_LABELS = ("corrections", "embed", "extract", *(f"round {name}" for name in ROUNDS), "label_merged")
GLYPHS, LOOK = "glyphs_people", 0.75
# as many steps as with the preset's larger epochs
SCHEDULE = {"embed.tasks_per_epoch": None, "embed.epochs": 6, "embed.milestones": [4]}


def cell_of(cell: dict[str, Any]) -> dict[str, Any]:
    """Return a cell of the grid; photographs always have looks, since training on them takes long."""
    return cell | {"look": LOOK} if cell["data"] != GLYPHS else cell


def measure(*, data: str, look: float, wrong: float, seed: int, folder: Path, root: Path) -> list[dict[str, Any]]:
    """Return a row for each kind of labels, and one of what merging finds after images have moved.

    Parameters
    ----------
    data : str
        A preset of images by people.
    look : float
        How often an image has its person's look. Where it is not 0, nothing is trained on labels, which would take
        rounds, and the only row is that of merging.
    wrong : float
        Share of the training images that get another label of their task.
    seed : int
        Of the people, of both trainings, and of which images these are.
    folder : Path
        The run has a folder of its own in this one.
    root : Path
        Folder of the raw data, which glyphs need none of.
    """
    own = folder / f"{data}_{look:g}_{wrong:g}_{seed}"
    prepare(own, data=data, share=look, seed=seed, root=root, train=PEOPLE)
    compared = {f"compare.{name}": value for name, value in COMPARED.items()}
    change(own / "params.yaml", compared | {f"rounds.{name}": False for name in ROUNDS} | SCHEDULE)
    run_stages(own, *BEFORE)
    right = read_manifest(own / paths.TRAIN)
    given = mixed(right, wrong, np.random.default_rng(seed))
    _write(own, given)
    run_stages(own, *TO_LABELS)
    found, moved = _found(own, given)
    told = scores(found, given["local_label"].to_numpy() != right["local_label"].to_numpy())
    if look:
        rows = [{"labels": "merged"} | quality(own, right) | told]
        shutil.rmtree(own)
        return rows
    run_module(own, "mela", "run", "--from", "label")
    metrics = store.read_json(own / paths.OVERVIEW)
    rows = [row_of(metrics, labels) for labels in ("initial", "merged", "merged_soft", "oracle")]
    rows[1] |= quality(own, right) | told
    change(own / "params.yaml", {"compare.merged_soft": False, "compare.oracle": False})
    _write(own, moved)
    run_module(own, "mela", "run", "--from", "label_merged")
    rows.append(row_of(store.read_json(own / paths.OVERVIEW), "merged") | {"labels": "moved"} | quality(own, right))
    shutil.rmtree(own)
    return rows


def mixed(manifest: pd.DataFrame, share: float, generator: np.random.Generator) -> pd.DataFrame:
    """Return a manifest in which a share of the images have another label of their task, chosen at random."""
    labels = manifest["local_label"].to_numpy()
    ways = manifest.groupby("task_id")["local_label"].transform("nunique").to_numpy()
    others = (labels + generator.integers(1, ways)) % ways
    return manifest.assign(local_label=np.where(generator.random(len(labels)) < share, others, labels))


def quality(run: Path, right: pd.DataFrame) -> dict[str, Any]:
    """Return the number of clusters and the adjusted Rand index of what people mean by their labels.

    A task class is of the class that its images would have if none had a wrong label.
    """
    classes = read_truth(run / paths.TRUTH).set_index("image_id")["class"]
    truth = right.assign(name=right["image_id"].map(classes)).drop_duplicates(KEYS)
    table = truth.merge(read_assignments(run / paths.MERGED_TASKS, right), on=KEYS)
    clusters = table["cluster"].where(table["clustered"], -1).to_numpy(dtype=np.int64)
    return scored(np.unique(table["name"], return_inverse=True)[1], clusters)


def _found(run: Path, manifest: pd.DataFrame) -> tuple[Floats, pd.DataFrame]:
    """Return how probably the label of each row of a manifest is wrong, and the manifest with such images moved."""
    samples, _ = read_samples(manifest, run / paths.FEATURES)
    clusters = clusters_of(samples, read_assignments(run / paths.MERGED_TASKS, manifest))
    found = find_wrong_labels(samples, clusters)
    probabilities = samples.in_given_order(found.probabilities)
    other = samples.in_given_order(samples.local_labels[found.others])
    labels = np.where(probabilities > 0.5, other, manifest["local_label"])
    return probabilities, manifest.assign(local_label=labels)


def scores(found: Floats, wrong: "np.ndarray[Any, np.dtype[np.bool_]]") -> dict[str, float | None]:
    """Tell how well wrong labels are found: those with a probability above one half."""
    named = found > 0.5
    return {
        "told": 100 * float(found.mean()),
        "named": 100 * float(named.mean()),
        "right": 100 * float(wrong[named].mean()) if named.any() else None,
        "found": 100 * float(named[wrong].mean()) if wrong.any() else None,
        "auroc": float(roc_auc_score(wrong, found)) if wrong.any() else None,
    }


def _write(run: Path, manifest: pd.DataFrame) -> None:
    store.write_table(run / paths.TRAIN, manifest, schemas.MANIFEST, stage="manifest", params={})
