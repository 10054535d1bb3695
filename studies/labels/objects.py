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

from mela.io import store
from mela.params import PARAMS, ROUNDS, RoundsParams
from stages.common import paths
from studies.clones import change, run_module
from studies.labels import signs, solids
from studies.labels.people import SEEDS, accuracies_of, link_code, row_of, rows_of_rounds

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


def measure(*, data: str, seed: int, folder: Path) -> list[dict[str, Any]]:
    """Return a row for each embedding: the initial one, that of each round, and those of merged and of true labels.

    Parameters
    ----------
    data : str
        What is photographed, one of `DRAWN`.
    seed : int
        Of the photographs, and of both trainings.
    folder : Path
        The run has a folder of its own in this one, which is removed.
    """
    own = folder / f"{data}_{seed}"
    shutil.rmtree(own, ignore_errors=True)
    link_code(own)
    draw_tasks(own / "photographs", data, seed)
    run_module(own, "mela", "data", "check", "photographs", "--write", PARAMS.name)
    change(own / PARAMS, dict.fromkeys(SEEDS, seed))
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
    rows: list[tuple[str, str, str, str, str, str]] = []
    of_class: dict[int, list[list[str]]] = defaultdict(list)
    for split, known, people in (
        ("train", classes[:TRAINING_CLASSES], TRAINING_TASKS),
        ("test", classes[TRAINING_CLASSES:][:TEST_CLASSES], TEST_PEOPLE),
    ):
        for number in range(people):
            task = f"{split}{number:03}"
            for label, one in enumerate(rng.choice(known, WAYS, replace=False).tolist()):
                count = int(rng.integers(FEWEST, MOST + 1)) if split == "train" else MOST
                names = _photograph(root, data, one, (seed, split == "test", number, label), f"{task}/{label}", count)
                if split == "train":
                    roles = ["support"] * SHOTS + ["query"] * (count - SHOTS)
                    rows += [
                        (task, f"thing {label}", name, role, split, f"{data} {one}")
                        for name, role in zip(names, roles, strict=True)
                    ]
                else:
                    of_class[one].append(names)
    usable = sorted(one for one, objects in of_class.items() if len(objects) > 1)
    for number in range(TEST_TASKS):
        for label, one in enumerate(rng.choice(usable, WAYS, replace=False).tolist()):
            support, *others = (of_class[one][place] for place in rng.permutation(len(of_class[one])).tolist())
            shown = [(name, "support") for name in rng.permutation(support)[:SHOTS].tolist()]
            shown += [(name, "query") for name in rng.permutation(np.concatenate(others))[:QUERIES].tolist()]
            rows += [
                (f"test task {number}", f"thing {label}", name, role, "test", f"{data} {one}") for name, role in shown
            ]
    columns = ["task_id", "local_label", "path", "role", "split", "class"]
    pd.DataFrame(rows, columns=columns).to_csv(root / TABLE, index=False)


def _photograph(root: Path, data: str, one: int, who: tuple[int, bool, int, int], name: str, count: int) -> list[str]:
    """Write photographs of an object, and return their names."""
    seed, is_test, number, label = who
    person, thing = (np.random.default_rng([seed, is_test, number, of]) for of in (0, 1 + label))
    (root / name).mkdir(parents=True)
    names = [f"{name}/{frame:02}.png" for frame in range(count)]
    for path, image in zip(names, DRAWN[data][0](one, person, thing, count), strict=True):
        image.save(root / path)
    return names
