"""Glyphs that people draw: each person has one typeface, one weight of strokes, one slant and one ink."""

import numpy as np
from PIL import Image

from mela.io.schemas import SPLITS
from mela.params import PeopleParams
from mela.sources.by_people import Kind, Pool, Shown, tasks_by_people
from mela.sources.glyphs import CHARACTERS, draw_glyph, require_size
from mela.sources.person_traits import PersonTraits
from mela.sources.source import ImageSource

TRAITS = 4


def glyphs_by_people(people: PeopleParams, *, images_per_class: int, shots: int, size: int, seed: int) -> ImageSource:
    """Draw one task for each person, whose true classes are known.

    Parameters are those of `mela.sources.by_people.tasks_by_people`, and so are errors.

    Parameters
    ----------
    people : PeopleParams
    images_per_class, shots, seed : int
    size : int, at least 12
        Height and width of the images, in pixels.

    Returns
    -------
    ImageSource
        Grey-scale images; sources like ``"train/0003/U+0416/07"``, which is drawing 7 of person 3 of training tasks.
    """
    require_size(size)
    characters = {split: "".join(CHARACTERS[split].values()) for split in SPLITS}

    def name(shown: Shown) -> str:
        return f"U+{ord(characters[shown.split][shown.kind]):04X}/{shown.number:02d}"

    def load(shown: Shown, generator: np.random.Generator, person: PersonTraits | None) -> Image.Image:
        return draw_glyph(characters[shown.split][shown.kind], size, generator, person)

    kinds = {split: [Kind(f"U+{ord(one):04X}", ord(one)) for one in characters[split]] for split in SPLITS}
    pool = Pool(kinds=kinds, traits=TRAITS, name=name, load=load)
    return tasks_by_people(people, pool, images_per_class=images_per_class, shots=shots, seed=seed)
