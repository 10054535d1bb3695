"""Run the whole pipeline on images by people, once for each share of their look and seed."""

import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from mela.data.augmentation import Augmentation
from mela.data.episodes import Episodes
from mela.evaluation.accuracy import evaluate_model, summarize
from mela.evaluation.label_scores import score_labels
from mela.io import store
from mela.io.checked_tables import read_manifest, read_truth
from mela.io.schemas import ACCURACIES
from mela.labeling.merge_labeler import MergeLabeler
from mela.labeling.round_labels import labels_so_far
from mela.labeling.training_samples import features_in, looks_in, read_samples
from mela.models.files import load_model
from mela.params import (
    PARAMS,
    ROUNDS,
    AugmentParams,
    DataParams,
    EvaluateParams,
    MergingParams,
    PeopleParams,
    RoundsParams,
)
from stages.common import paths
from stages.common.round_files import round_files
from studies.clones import change, run_module

ROOT = Path(__file__).parents[2]
LABELS = ("initial", "merged", "pruned", "oracle")
SEEDS = ("data.seed", "embed.seed", "pretrain.seed")


def preset(data: str) -> Path:
    """Return the preset of a data set by people."""
    return ROOT / f"presets/{data}.yaml"


def people_of(data: str) -> PeopleParams:
    """Return the people of a data set."""
    people = DataParams.read(preset(data)).people
    assert people is not None
    return people


def own_share(cell: dict[str, Any]) -> dict[str, Any]:
    """Return a cell of the grid without a share if people have no look: their subclasses alone tell them apart."""
    return cell | {"share": None} if people_of(cell["data"]).share is None else cell


def run_folder(folder: Path, data: str, share: float | None, seed: int) -> Path:
    """Return the folder of one run."""
    return folder / f"{data}_{'none' if share is None else f'{share:g}'}_{seed}"


def measure(
    *, data: str, share: float | None, seed: int, folder: Path, root: Path, keep: bool = False
) -> list[dict[str, Any]]:
    """Return a row for each kind of labels, and for each round.

    Parameters
    ----------
    data : str
        The preset.
    share : float or None
        How often an image has its person's look.
    seed : int
        Of the people, and of both trainings.
    folder : Path
        The run has a folder of its own in this one.
    root : Path
        Folder of the raw data, which glyphs need none of.
    keep : bool, default=False
        Whether what the run has made is left there, but for its images.
    """
    own = run_folder(folder, data, share, seed)
    prepare(own, data=data, share=share, seed=seed, root=root)
    rows = run_pipeline(own) + row_of_task_classes(own) + rows_of_rounds(own)
    shutil.rmtree(own / paths.IMAGES.parent if keep else own)
    return rows


def run_pipeline(own: Path) -> list[dict[str, Any]]:
    """Run all stages in a folder that is prepared, and return a row for each kind of labels."""
    run_module(own, "mela", "run")
    found = store.read_json(own / paths.OVERVIEW)
    return [row_of(found, labels) for labels in LABELS]


def prepare(own: Path, *, data: str, share: float | None, seed: int, root: Path, **changed: int) -> None:
    """Make the folder of one run, with its parameters; what is changed are keys of ``data.people``."""
    link_code(own)
    shutil.copy(preset(data), own / "params.yaml")
    people = people_of(data).model_dump(exclude_defaults=True) | {"share": share} | changed
    changes = {"data.people": people, "data.root": str(root.resolve())} | dict.fromkeys(SEEDS, seed)
    change(own / "params.yaml", changes)


def link_code(own: Path) -> None:
    """Make a folder in which stages of this code run."""
    own.mkdir(parents=True, exist_ok=True)
    for file in ("dvc.yaml", "mela", "presets", "stages"):
        (own / file).unlink(missing_ok=True)
        (own / file).symlink_to(ROOT / file)


def row_of_task_classes(run: Path) -> list[dict[str, Any]]:
    """Return a row for the embedding of the first round, to which each task class is a label; none without it."""
    if not RoundsParams.read(run / PARAMS).first:
        return []
    overview = store.read_json(run / paths.OVERVIEW)
    return [row_of(overview | {"task_classes": accuracies_of(run, ["first"])["first"]}, "task_classes")]


def accuracies_of(run: Path, rounds: Sequence[str]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the accuracies of rounds' embeddings, by round and setting, as the results of a run have others."""
    known = store.read_table(run / paths.PER_TASK, ACCURACIES).query("split == 'test'")
    found = [tested(run, run / round_files(number).model).assign(model=number) for number in rounds]
    told = summarize(pd.concat([known, *found]))
    return {
        number: {
            setting: interval | {"to_oracle": told["to_oracle"][number][setting]["mean"]}
            for setting, interval in told["accuracy"][number].items()
        }
        for number in rounds
    }


def tested(run: Path, model: Path) -> pd.DataFrame:
    """Return the accuracies of an embedding on the test tasks of a run, as `mela.evaluation.accuracy` has them."""
    images = store.open_images(run / paths.IMAGES)
    settings = EvaluateParams.read(run / PARAMS)
    how = settings.model_dump(exclude={"support_copies"}) | {"copies": settings.support_copies}
    changes = Augmentation(**AugmentParams.read(run / PARAMS).model_dump())
    tasks = Episodes(read_manifest(run / paths.TEST))
    return evaluate_model(load_model(model, torch.device("cpu"), images), images, tasks, **how, augmentation=changes)


def rows_of_rounds(run: Path) -> list[dict[str, Any]]:
    """Return a row for each round but the first: how good the labels are that it learned, which are found once more."""
    rounds, merging = RoundsParams.read(run / PARAMS), MergingParams.read(run / PARAMS)
    manifest, truth = read_manifest(run / paths.TRAIN), read_truth(run / paths.TRUTH)
    rows = []
    for before, number in pairwise(ROUNDS):
        if getattr(rounds, number):
            folder = run / paths.ROUND_FEATURES / before
            samples, known = read_samples(manifest, features_in(folder), looks_in(folder), run / paths.TASK_SOURCES)
            labeler = MergeLabeler(**merging.arguments)
            flat, _ = labels_so_far(samples, known, labeler)
            table = pd.DataFrame({"image_id": flat.image_ids, "label": flat.labels})
            scores = score_labels(table, None, manifest, truth)
            rows.append({"labels": number} | {name: scores[name] for name in ("true_classes", "clusters", "ari")})
    return rows


def row_of(metrics: dict[str, Any], labels: str) -> dict[str, Any]:
    """Return the row of one kind of labels, from the metrics of a run."""
    known = metrics[labels]
    row = {"labels": labels, "true_classes": metrics["true_classes"]}
    row |= {name: known.get(name) for name in ("clusters", "accuracy", "ari", "tasks_clustered")}
    for setting in ("1_shot", "5_shot"):
        row |= {setting: known[setting]["mean"], f"{setting}_ci95": known[setting]["ci95"]}
        row |= {f"{setting}_to_oracle": known[setting].get("to_oracle")}
    return row
