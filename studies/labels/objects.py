"""Run the whole pipeline where each person has one object of each class.

The queries of test tasks show other objects than their support images do.
"""

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from mela.data.array_types import Ints
from mela.io import store
from mela.params import PARAMS, ROUNDS, RoundsParams
from stages.common import paths
from studies.clones import change, run_module
from studies.labels import signs, solids
from studies.labels.people import SEEDS, accuracies_of, link_code, row_of, rows_of_rounds

# yields photographs of one object, from its kind, what its person and what it is drawn from, and their number
Photographs = Callable[[int, np.random.Generator, np.random.Generator, int], Iterator[Image.Image]]
DRAWN: dict[str, tuple[Photographs, int]] = {
    "solids": (solids.photographs, solids.KINDS),
    "signs": (signs.photographs, signs.KINDS),
}
TABLE = "tasks.csv"
WAYS, SHOTS, QUERIES = 5, 5, 15
TRAINING_CLASSES, TEST_CLASSES = 28, 12
TRAINING_TASKS, TEST_PEOPLE, TEST_TASKS = 102, 60, 600
FEWEST, MOST = 12, 20


def measure(*, data: str, surroundings: float, seed: int, folder: Path) -> list[dict[str, Any]]:
    """Return a row for each embedding: the initial one, that of each round, and those of merged and of true labels.

    Parameters
    ----------
    data : str
        What is photographed, one of `DRAWN`.
    surroundings : float
        Share of the training images that get the surroundings of another one.
    seed : int
        Of the photographs, and of all trainings.
    folder : Path
        The run has a folder of its own in this one, which is removed.
    """
    own = folder / f"{data}_{surroundings:g}_{seed}"
    shutil.rmtree(own, ignore_errors=True)
    link_code(own)
    draw_tasks(own / "photographs", data, seed)
    run_module(own, "mela", "data", "check", "photographs", "--write", PARAMS.name)
    change(own / PARAMS, dict.fromkeys(SEEDS, seed) | {"augment.surroundings": surroundings})
    run_module(own, "mela", "run")
    rows = rows_of(own)
    shutil.rmtree(own)
    return rows


def rows_of(run: Path) -> list[dict[str, Any]]:
    """Return the rows of a run that has ended."""
    rounds = RoundsParams.read(run / PARAMS)
    numbers = [number for number in ROUNDS if getattr(rounds, number)]
    labels = {row["labels"]: row for row in rows_of_rounds(run)}
    of_rounds = {number: labels.get(number, {}) | found for number, found in accuracies_of(run, numbers).items()}
    metrics = store.read_json(run / paths.OVERVIEW) | of_rounds
    return [row_of(metrics, name) for name in ("initial", *numbers, "merged", "oracle")]


def draw_tasks(root: Path, data: str, seed: int) -> None:
    """Write photographs, and the table of tasks that name them.

    In training, a person has one task of five objects, of 12 to 20 photographs each. Test tasks have classes of which
    nobody has an object in training. Their support images show one object of each class, and their queries others.
    """
    rng = np.random.default_rng(seed)
    classes = rng.permutation(DRAWN[data][1])
    training, new = classes[:TRAINING_CLASSES], classes[TRAINING_CLASSES:][:TEST_CLASSES]
    rows: list[tuple[str, ...]] = []
    for number, label, one in _objects(training, TRAINING_TASKS, rng):
        names = _photograph(root, data, one, (seed, 0, number, label), int(rng.integers(FEWEST, MOST + 1)))
        rows += [
            (f"train{number:03}", f"thing {label}", name, role, "train", f"{data} {one}")
            for name, role in zip(names, ["support"] * SHOTS + ["query"] * (len(names) - SHOTS), strict=True)
        ]
    of_class: dict[int, list[list[str]]] = defaultdict(list)
    for number, label, one in _objects(new, TEST_PEOPLE, rng):
        of_class[one].append(_photograph(root, data, one, (seed, 1, number, label), MOST))
    several = sorted(one for one, objects in of_class.items() if len(objects) > 1)
    for number, label, one in _objects(several, TEST_TASKS, rng):
        support, *others = (of_class[one][place] for place in rng.permutation(len(of_class[one])).tolist())
        shown = [(name, "support") for name in rng.permutation(support)[:SHOTS].tolist()]
        shown += [(name, "query") for name in rng.permutation(np.concatenate(others))[:QUERIES].tolist()]
        rows += [(f"test task {number}", f"thing {label}", *each, "test", f"{data} {one}") for each in shown]
    columns = ["task_id", "local_label", "path", "role", "split", "class"]
    pd.DataFrame(rows, columns=columns).to_csv(root / TABLE, index=False)


def _objects(classes: Ints | list[int], tasks: int, rng: np.random.Generator) -> Iterator[tuple[int, int, int]]:
    """Yield task, label and class of each label of some tasks."""
    for number in range(tasks):
        for label, one in enumerate(rng.choice(classes, WAYS, replace=False).tolist()):
            yield number, label, one


def _photograph(root: Path, data: str, one: int, who: tuple[int, int, int, int], count: int) -> list[str]:
    """Write photographs of an object, and return their names; who took them are seed, split, person and label."""
    person, thing = (np.random.default_rng([*who[:3], of]) for of in (0, 1 + who[3]))
    folder = f"{('train', 'test')[who[1]]}{who[2]:03}/{who[3]}"
    (root / folder).mkdir(parents=True)
    names = [f"{folder}/{frame:02}.png" for frame in range(count)]
    for path, image in zip(names, DRAWN[data][0](one, person, thing, count), strict=True):
        image.save(root / path)
    return names
