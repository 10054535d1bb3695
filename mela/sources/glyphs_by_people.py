"""Glyphs that people draw: each task is one person's, whose drawings look alike.

Where all tasks come from one pool, a task class is a fair sample of its class. People differ: each has one pen and one
hand. A training task shows drawings of one person alone. A validation or test task asks what was learned is worth to
others: its support images are by one person, and its query images are by other people.
"""

import numpy as np
import pandas as pd
from PIL import Image

from mela.data.array_types import Ints
from mela.data.sampling import task_table
from mela.errors import MelaError
from mela.io.schemas import SPLITS, Split
from mela.params import PeopleParams
from mela.sources.glyphs import CHARACTERS, GRID, Look, draw_glyph, require_size
from mela.sources.source import ImageSource

TRAITS = 4


def glyphs_by_people(people: PeopleParams, *, images_per_class: int, shots: int, size: int, seed: int) -> ImageSource:
    """Draw one task for each person, whose true classes are known.

    Parameters
    ----------
    people : PeopleParams
        How many persons draw tasks of each split, how many classes each of them draws, and how much of the look of a
        drawing is the person's (see `mela.sources.glyphs.Look`).
    images_per_class : int, above `shots`
        Images of each class of a task; those after the first `shots` are queries. In validation and test tasks, the
        queries are drawn at random from the drawings of all other persons.
    shots : int, at least 1
        Support images of each class.
    size : int, at least 12
        Height and width of the images, in pixels.
    seed : int, at least 0
        Another seed gives other persons. Person k of a split draws the same whatever their number is.

    Returns
    -------
    ImageSource
        Grey-scale images; sources like ``"train/0003/U+0416/07"``, which is drawing 7 of person 3 of training tasks.

    Raises
    ------
    MelaError
        A number is too small, there are fewer classes than ways, or a class has fewer other drawings than queries.
    """
    if images_per_class <= shots:
        raise MelaError(
            f"data.images_per_class: expected more than tasks.shots = {shots}, since the others are queries, got "
            f"{images_per_class}"
        )
    require_size(size)
    drawings: list[tuple[Split, int, str, int]] = []
    looks: dict[tuple[Split, int], Look] = {}
    tasks: list[pd.DataFrame] = []
    n_tasks = 0
    for key, split in enumerate(SPLITS):
        count = {"train": people.train, "val": people.val, "test": people.test}[split]
        characters = "".join(CHARACTERS[split].values())
        if count and people.ways > len(characters):
            most = f"{len(characters)}, the number of {split} classes"
            raise MelaError(f"data.people.ways: expected at most {most}, got {people.ways}")
        n_drawn, first = images_per_class if split == "train" else shots, len(drawings)
        classes = np.empty((count, people.ways), dtype=np.int64)
        for person in range(count):
            generator = np.random.default_rng([seed, key, person])
            looks[split, person] = Look(traits=generator.integers(GRID + 1, size=TRAITS), share=people.share)
            classes[person] = generator.choice(len(characters), size=people.ways, replace=False)
            drawings += [(split, person, characters[c], n) for c in classes[person] for n in range(n_drawn)]
        own = first + np.arange(classes.size * n_drawn).reshape(count, people.ways, n_drawn)
        if split != "train":
            own = np.concatenate([own, _by_others(own, classes, images_per_class - shots, split, seed)], axis=2)
        table = task_table(own, shots)
        names = [f"{split}/{number:04d}" for number in table["task_id"]]
        table["task_id"] += n_tasks
        tasks.append(table.assign(split=split, task=names, label=table["local_label"].astype(str)))
        n_tasks += count

    def load(image: int) -> Image.Image:
        split, person, character, number = drawings[image]
        entropy = [seed, SPLITS.index(split), person, ord(character), number]
        return draw_glyph(character, size, np.random.default_rng(entropy), looks[split, person])

    return ImageSource(
        splits=[split for split, _, _, _ in drawings],
        sources=[f"{split}/{person:04d}/U+{ord(c):04X}/{number:02d}" for split, person, c, number in drawings],
        classes=[f"U+{ord(character):04X}" for _, _, character, _ in drawings],
        tasks=pd.concat(tasks, ignore_index=True),
        load=load,
    )


def _by_others(own: Ints, classes: Ints, queries: int, split: Split, seed: int) -> Ints:
    """Return query images (persons, ways, queries) of the same classes that other persons drew.

    Parameters
    ----------
    own : int64 (persons, ways, shots)
        Images that each person drew.
    classes : int64 (persons, ways)
    queries : int
    split : {"val", "test"}
    seed : int
    """
    found = np.empty((*classes.shape, queries), dtype=np.int64)
    for person, way in np.ndindex(*classes.shape):
        others = classes == classes[person, way]
        others[person] = False
        pool = own[others].ravel()
        if len(pool) < queries:
            raise MelaError(
                f"data.people.{split}: expected {queries} drawings by other persons of every class, got {len(pool)} of "
                f"one; raise it or data.people.ways"
            )
        generator = np.random.default_rng([seed, SPLITS.index(split), person, way])
        found[person, way] = generator.choice(pool, size=queries, replace=False)
    return found
