"""Let a simulated person answer what a review asks, and tell how much better the labels get."""

from pathlib import Path
from typing import Any

import numpy as np

from mela.data.array_types import Ints
from mela.io import store
from mela.io.checked_tables import read_manifest, read_truth
from mela.labeling.corrections import Corrections
from mela.labeling.links import Links
from mela.labeling.merge_labeler import MergeLabeler
from mela.labeling.questions import questions
from mela.labeling.task_classes import TaskSamples, manifest_samples
from stages.common import paths
from studies.cells import true_classes
from studies.labels.expected import kept_samples, scored
from studies.labels.frozen import network_features, trained_network

ANSWERS = (0, 10, 20, 50, 100)
# of data sets whose features are those of a network that others have trained
TASKS = 100
FROZEN = ("flowers102", "cub100")
DRAWS = 5


def cell_of(cell: dict[str, Any]) -> dict[str, Any]:
    """Return a cell of the grid, without a share where no people differ by their look."""
    return cell | {"share": None} if cell["data"] in FROZEN else cell


def measure(*, data: str, share: float | None, seed: int, folder: Path, projects: Path) -> list[dict[str, Any]]:
    """Return the adjusted Rand index after some answers, by how the questions are chosen.

    Parameters
    ----------
    data : str
        Images by people, from a run that `labels.people --keep` has left, with the features of its last round; or
        flowers102 or cub100, 100 tasks of each, from the run of metadataset_cpu, with the features of a network that
        others have trained.
    share, seed, folder
        As in `studies.labels.expected.kept_samples`. Of the other data sets, each seed takes another hundred tasks.
    projects : Path
        The pipeline of metadataset_cpu ran in the folder metadataset_cpu_0 of it.
    """
    if data in FROZEN:
        samples, truth = _frozen(projects / "metadataset_cpu_0", data, seed)
    else:
        samples, truth = kept_samples(folder, data, share, seed, "sixth")
    own = MergeLabeler().fit_tasks(samples).corrections_
    draws = {"worth": 1, "question": DRAWS, "pair": DRAWS}
    rows = []
    for chosen, count in draws.items():
        found = [_asked(own, truth, chosen, draw) for draw in range(count)]
        for position, answers in enumerate(ANSWERS):
            told = [one[position] for one in found]
            means = {name: float(np.mean([one[name] for one in told])) for name in ("clusters", "same", "ari")}
            expected = [one["expected_ari"] for one in told if one["expected_ari"] is not None]
            rows.append(
                {"chosen": chosen, "answers": answers, "true_classes": int(truth.max()) + 1, "n": len(truth)}
                | means
                | {"expected_ari": float(np.mean(expected)) if expected else None}
            )
    return rows


def _asked(own: Corrections, truth: Ints, chosen: str, draw: int) -> list[dict[str, Any]]:
    """Return what is known after each number of answers, which are true."""
    generator = np.random.default_rng(draw)
    said: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    rows = []
    for number in range(max(ANSWERS) + 1):
        same, different = (np.array(said[kind], dtype=np.int64).reshape(-1, 2) for kind in (True, False))
        links = Links(same=same, different=different, starts=own.starts)
        found = own.after(links)
        if number in ANSWERS:
            rows.append(scored(truth, found) | {"same": len(same), "expected_ari": own.expected_ari(found)})
        pair = _pair(own, links, found, chosen, generator)
        said[bool(truth[pair[0]] == truth[pair[1]])].append(pair)
    return rows


def _pair(own: Corrections, links: Links, found: Ints, chosen: str, generator: np.random.Generator) -> tuple[int, int]:
    """Return two task classes to ask about: the question that is worth most, any of the questions, or any pair."""
    if chosen == "pair":
        tasks = own.odds.tasks
        while True:
            one, other = generator.integers(len(found), size=2).tolist()
            if tasks[one] != tasks[other]:
                return one, other
    if chosen == "worth":
        question = next(questions(own, links, found))
    else:
        asked = list(questions(own, links, found))
        question = asked[int(generator.integers(len(asked)))]
    return question.one, question.other


def _frozen(run: Path, data: str, seed: int) -> tuple[TaskSamples, Ints]:
    """Return some of the training tasks of a data set, with frozen features, and their true classes."""
    truth, manifest = read_truth(run / paths.TRUTH), read_manifest(run / paths.TRAIN)
    of_image = truth.set_index("image_id")["dataset"]
    own = manifest[manifest["image_id"].map(of_image) == data]
    tasks = own["task_id"].unique()[TASKS * seed : TASKS * (seed + 1)]
    own = own[own["task_id"].isin(tasks)]
    ids = np.unique(own["image_id"].to_numpy(dtype=np.int64))
    features = network_features(trained_network(), store.open_images(run / paths.IMAGES), ids)
    samples = manifest_samples(own, ids, features)
    return samples, true_classes(truth, ids, samples)
