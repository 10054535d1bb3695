"""Hold what the images of one person have in common."""

from dataclasses import dataclass

import numpy as np

from mela.data.array_types import Ints

GRID = 4096


@dataclass(frozen=True, kw_only=True)
class PersonTraits:
    """Hold what a person's images have in common: traits, each on the grid from 0 to 4,096.

    Attributes
    ----------
    traits : int64 (n_traits,)
        Of glyphs: typeface, weight of strokes, slant and brightness of ink. Of photographs: those of
        `mela.sources.photograph_style`, and of drawings on paper also those of `mela.sources.ink_on_paper`.
    share : float
        Probability that an image has a trait of its person, each for itself; else the trait is drawn as without
        persons. All images together thus look the same whatever the share is.
    """

    traits: Ints
    share: float

    def draw(self, generator: np.random.Generator) -> list[int]:
        """Return the traits of one image."""
        of_person = generator.integers(GRID, size=len(self.traits)) < round(self.share * GRID)
        return np.where(of_person, self.traits, generator.integers(GRID + 1, size=len(self.traits))).tolist()
