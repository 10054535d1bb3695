"""Photographs that people take: each person has one camera, and of a superclass perhaps one subclass."""

from collections.abc import Mapping
from typing import cast

import numpy as np
from PIL import Image

from mela.errors import MelaError
from mela.io.schemas import SPLITS, Split
from mela.params import PeopleParams
from mela.sources.by_people import Kind, Pool, Shown, tasks_by_people
from mela.sources.ink_on_paper import TRAITS as OF_PAPER
from mela.sources.ink_on_paper import inked
from mela.sources.person_traits import PersonTraits
from mela.sources.photograph_style import TRAITS, styled
from mela.sources.snapshots import snapshot
from mela.sources.source import ImageSource
from mela.sources.splits_by_name import keyed_rank

# images by class and subclass
_Classes = dict[str, dict[str, list[int]]]


def photographs_by_people(
    people: PeopleParams,
    photographs: ImageSource,
    *,
    superclasses: Mapping[str, str] | None = None,
    images_per_class: int,
    shots: int,
    size: int,
    seed: int,
) -> ImageSource:
    """Give photographs to people, each of whom has one task, and render them in their styles.

    People get the photographs of a class in an order that follows from the seed and the names of the files. None is
    given out again before all are.

    Parameters are those of `mela.sources.by_people.tasks_by_people`, and so are errors.

    Parameters
    ----------
    people : PeopleParams
        Its share is that of the styles (see `mela.sources.photograph_style`); without one, photographs stay as they
        are. With `objects`, a person has one photograph of a class, and all images of the class are pictures of it
        (see `mela.sources.snapshots`). With `paper`, they are drawings, which get the person's ink and paper first (see
        `mela.sources.ink_on_paper`).
    photographs : ImageSource
        Photographs of known classes.
    superclasses : mapping from str to str, optional
        From class to superclass. The true class is then the superclass, and a person has photographs of one of its
        classes.
    images_per_class, shots, seed : int
    size : int
        Height and width of styled images, in pixels.

    Returns
    -------
    ImageSource
        Sources like ``"train/0003/test/apple/012.png"``: the photograph test/apple/012.png of person 3 of training
        tasks; with objects, like ``"train/0003/test/apple/012.png@07"``, which is picture 7 of it.
    """
    assert photographs.classes is not None
    found: dict[Split, _Classes] = {split: {} for split in SPLITS}
    for image, (split, label) in enumerate(zip(photographs.splits, photographs.classes, strict=True)):
        whole = superclasses[label] if superclasses else label
        found[cast(Split, split)].setdefault(whole, {}).setdefault(label, []).append(image)
    if people.classes:
        count, used = people.classes, {"train": people.train, "val": people.val, "test": people.test}
        found |= {split: _some(classes, count, split, seed) for split, classes in found.items() if used[split]}

    def in_order(images: list[int]) -> list[int]:
        return sorted(images, key=lambda image: keyed_rank("people", photographs.sources[image], seed=seed))

    kinds: dict[Split, list[Kind]] = {}
    images: dict[Split, list[list[list[int]]]] = {}
    for split, classes in found.items():
        images[split] = [[in_order(part) for part in parts.values()] for parts in classes.values()]
        sizes = [[len(part) for part in parts] for parts in images[split]]
        kinds[split] = [Kind(label, key, own) for key, (label, own) in enumerate(zip(classes, sizes, strict=True))]

    def photograph(shown: Shown) -> int:
        return images[shown.split][shown.kind][shown.part][shown.place]

    def name(shown: Shown) -> str:
        picture = f"@{shown.number:02d}" if people.objects else ""
        return photographs.sources[photograph(shown)] + picture

    def load(shown: Shown, generator: np.random.Generator, person: PersonTraits | None) -> Image.Image:
        image = photographs.load(photograph(shown))
        traits = None if person is None else person.draw(generator)
        if people.paper and traits is not None:
            image = inked(image, traits[len(TRAITS) :])
        seen = snapshot(image, generator) if people.objects else image
        return seen if traits is None else styled(seen, size, traits[: len(TRAITS)])

    traits = len(TRAITS) + (len(OF_PAPER) if people.paper else 0)
    pool = Pool(kinds=kinds, traits=traits, name=name, load=load)
    return tasks_by_people(people, pool, images_per_class=images_per_class, shots=shots, seed=seed)


def _some(classes: _Classes, count: int, split: Split, seed: int) -> _Classes:
    """Return some of the classes of a split, which follow from their names and the seed."""
    if count > len(classes):
        raise MelaError(
            f"data.people.classes: expected at most {len(classes)}, the {split} classes, got {count}; lower it"
        )
    chosen = sorted(classes, key=lambda name: keyed_rank("classes", name, seed=seed))[:count]
    return {name: value for name, value in classes.items() if name in chosen}
