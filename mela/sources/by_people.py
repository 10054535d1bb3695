"""Make tasks by people: each task is one person's, whose images look alike; a person may have several.

Where all tasks come from one pool, a task class is a fair sample of its class. People differ: each has one pen, one
camera, one garden. A training task has images of one person alone. A validation or test task asks what was learned is
worth to others: its support images are by one person, and its query images are by other people.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from PIL import Image

from mela.data.array_types import Ints
from mela.data.sampling import task_table
from mela.errors import MelaError
from mela.io.schemas import SPLITS, Split
from mela.params import PeopleParams
from mela.sources.person_traits import GRID, PersonTraits
from mela.sources.source import ImageSource

# images of a class that can be drawn again and again
ENDLESS = 2**40


class Kind(NamedTuple):
    """Describe a class that people have images of.

    Attributes
    ----------
    name : str
        The true class.
    key : int
        A number that its images are seeded by.
    sizes : sequence of int
        Images of each of its subclasses; a person has images of one of these. Most classes are their own subclass.
    """

    name: str
    key: int
    sizes: Sequence[int] = (ENDLESS,)


class Shown(NamedTuple):
    """Describe one image that a person has.

    Attributes
    ----------
    split : {"train", "val", "test"}
    person : int
        From 0 in each split.
    kind, part : int
        The class, by its place among those of the split, and its subclass.
    number : int
        Counts the person's images of the class.
    place : int
        Which of the images of the subclass it is. These are given out in order, and anew when all are used up.
    """

    split: Split
    person: int
    kind: int
    part: int
    number: int
    place: int


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Hold what people have images of.

    Attributes
    ----------
    kinds : mapping from split to sequence of Kind
    traits : int
        Traits that each person has.
    name : callable (Shown) -> str
        Names an image, unlike the others of its person.
    load : callable (Shown, numpy.random.Generator, PersonTraits or None) -> PIL.Image.Image
        Makes an image; there are no traits where ``people.share`` is None.
    """

    kinds: Mapping[Split, Sequence[Kind]]
    traits: int
    name: Callable[[Shown], str]
    load: Callable[[Shown, np.random.Generator, PersonTraits | None], Image.Image]


def tasks_by_people(people: PeopleParams, pool: Pool, *, images_per_class: int, shots: int, seed: int) -> ImageSource:
    """Make tasks of people, whose true classes are known.

    Parameters
    ----------
    people : PeopleParams
        How many persons have tasks of each split, how many training tasks each has, of how many classes, and how much
        of the traits of an image is the person's (see `mela.sources.person_traits`). What a person has of a class is of
        the same subclass, or the same object, in all of their tasks.
    pool : Pool
    images_per_class : int, above `shots`
        Images of each class of a task; those after the first `shots` are queries. In validation and test tasks, the
        queries are drawn at random from the images of all other persons; if the class has subclasses, from those whose
        subclass is another one. No query shows what a support image of the task shows.
    shots : int, at least 1
        Support images of each class.
    seed : int, at least 0
        Another seed gives other persons. Person k of a split has the same images whatever their number is.

    Returns
    -------
    ImageSource
        Sources like ``"train/0003/..."`` are images of person 3 of training tasks. If persons have several of these,
        the tasks are called ``"train/0003/0"``, and so on, and have the column ``source``.

    Raises
    ------
    MelaError
        A number is too small, there are fewer classes than ways, or a class has too few images.
    """
    if images_per_class <= shots:
        raise MelaError(
            f"data.images_per_class: expected more than tasks.shots = {shots}, since the others are queries, got "
            f"{images_per_class}"
        )
    shown: list[Shown] = []
    persons: dict[tuple[Split, int], PersonTraits] = {}
    tasks: list[pd.DataFrame] = []
    n_tasks = 0
    for split in SPLITS:
        kinds, count = pool.kinds[split], {"train": people.train, "val": people.val, "test": people.test}[split]
        if count:
            # of an object there are as many images as one likes, but each query shows another one
            again = 0 if not people.objects else shots - 1 if split != "train" else images_per_class
            _require_enough(kinds, people.ways, images_per_class, again, split)
        several = people.tasks if split == "train" else 1
        owner = np.arange(count).repeat(several)
        classes, parts = (np.empty((len(owner), people.ways), dtype=np.int64) for _ in range(2))
        for person in range(count):
            generator = np.random.default_rng([seed, SPLITS.index(split), person])
            traits = generator.integers(GRID + 1, size=pool.traits)
            if people.share is not None:
                persons[split, person] = PersonTraits(traits=traits, share=people.share)
            had: dict[int, int] = {}
            for task in range(person * several, (person + 1) * several):
                classes[task] = generator.choice(len(kinds), size=people.ways, replace=False)
                drawn = generator.integers([len(kinds[kind].sizes) for kind in classes[task]])
                parts[task] = [had.setdefault(*own) for own in zip(classes[task].tolist(), drawn.tolist(), strict=True)]
        n_own = images_per_class if split == "train" else shots
        given = _give_out(split, kinds, owner, classes, parts, n_own, objects=people.objects)
        own = len(shown) + np.arange(len(given)).reshape(*classes.shape, n_own)
        shown += given
        if split != "train":
            shows = pd.factorize(pd.Series([(one.kind, one.part, one.place) for one in given], dtype=object))[0]
            divided = np.array([len(kind.sizes) > 1 for kind in kinds])[classes]
            origins = np.where(divided, parts, np.arange(count)[:, None])
            queries = images_per_class - shots
            others = _by_others(own, shows.reshape(own.shape), classes, origins, queries, split, seed)
            own = np.concatenate([own, others], axis=2)
        table = task_table(own, shots)
        numbers = table["task_id"].to_numpy(copy=True)
        whose = np.array([f"{split}/{person:04d}" for person in owner])
        called = [f"{name}/{place % several}" if several > 1 else name for place, name in enumerate(whose)]
        table["task_id"] += n_tasks
        own_names = {"task": np.array(called)[numbers], "label": table["local_label"].astype(str)}
        if people.tasks > 1:
            own_names["source"] = whose[numbers]
        tasks.append(table.assign(split=split, **own_names))
        n_tasks += len(owner)

    def load(image: int) -> Image.Image:
        one = shown[image]
        entropy = [seed, SPLITS.index(one.split), one.person, pool.kinds[one.split][one.kind].key, one.number]
        return pool.load(one, np.random.default_rng(entropy), persons.get((one.split, one.person)))

    return ImageSource(
        splits=[one.split for one in shown],
        sources=[f"{one.split}/{one.person:04d}/{pool.name(one)}" for one in shown],
        classes=[pool.kinds[one.split][one.kind].name for one in shown],
        tasks=pd.concat(tasks, ignore_index=True),
        load=load,
    )


def _require_enough(kinds: Sequence[Kind], ways: int, images_per_class: int, again: int, split: Split) -> None:
    """Raise MelaError unless there are as many classes as ways, and each has as many images as a task needs.

    A task needs `again` fewer than it has, since so many show what another one of its images shows.
    """
    if ways > len(kinds):
        raise MelaError(f"data.people.ways: expected at most {len(kinds)}, the number of {split} classes, got {ways}")
    fewest = min(kinds, key=lambda kind: min(kind.sizes))
    own = min(fewest.sizes)
    if own + again < images_per_class:
        beside = f" and {again} more of one object" if again else ""
        raise MelaError(
            f"data.images_per_class: expected at most {own + again}, the images of {split} class {fewest.name!r}"
            f"{beside}, got {images_per_class}"
        )


def _give_out(
    split: Split, kinds: Sequence[Kind], owner: Ints, classes: Ints, parts: Ints, n_own: int, *, objects: bool
) -> list[Shown]:
    """Return the images of all tasks, `n_own` of each class (tasks, ways), whose subclass `parts` (...) says.

    The person of each task is `owner` (tasks,). With objects, all that a person has of a class are the same one.
    """
    shown: list[Shown] = []
    taken: Counter[tuple[int, int]] = Counter()
    had: Counter[tuple[int, int]] = Counter()
    same: dict[tuple[int, int], int] = {}
    for task, way in np.ndindex(*classes.shape):
        person, kind, part = int(owner[task]), int(classes[task, way]), int(parts[task, way])
        size, first = kinds[kind].sizes[part], had[person, kind]
        for number in range(first, first + n_own):
            place = same.setdefault((person, kind), taken[kind, part]) if objects else taken[kind, part]
            shown.append(Shown(split, person, kind, part, number, place % size))
            taken[kind, part] += 0 if objects and number else 1
        had[person, kind] += n_own
    return shown


def _by_others(own: Ints, shows: Ints, classes: Ints, origins: Ints, queries: int, split: Split, seed: int) -> Ints:
    """Return query images (persons, ways, queries) of the same classes, and of other origins.

    Parameters
    ----------
    own : int64 (persons, ways, shots)
        Images that each person has.
    shows : int64 (persons, ways, shots)
        What these show: two images of one photograph have the same number.
    classes, origins : int64 (persons, ways)
        Classes of each person, and where the images come from: the person, or the subclass if there are several.
    queries : int
    split : {"val", "test"}
    seed : int
    """
    found = np.empty((*classes.shape, queries), dtype=np.int64)
    for person, way in np.ndindex(*classes.shape):
        others = (classes == classes[person, way]) & (origins != origins[person, way])
        pool, shown = own[others].ravel(), shows[others].ravel()
        fresh = ~np.isin(shown, shows[person, way])
        # each photograph once
        pool = pool[fresh][np.sort(np.unique(shown[fresh], return_index=True)[1])]
        if len(pool) < queries:
            raise MelaError(
                f"data.people.{split}: expected {queries} images by other persons of every class, got {len(pool)} of "
                f"one; raise it or data.people.ways"
            )
        generator = np.random.default_rng([seed, SPLITS.index(split), person, way])
        found[person, way] = generator.choice(pool, size=queries, replace=False)
    return found
