"""Compute the confidence interval of a mean accuracy."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit


@dataclass(frozen=True)
class Interval:
    """Hold a mean with the half-width of its 95% confidence interval (Student's t)."""

    mean: float
    ci95: float

    def __str__(self) -> str:
        return f"{self:.2f}"

    def __format__(self, form: str) -> str:
        """Format both numbers, such as by ``.1f``; the sign that ``+z.1f`` asks for is that of the mean."""
        return f"{self.mean:{form}} ± {self.ci95:{form.lstrip('+z')}}" if form else str(self)

    @classmethod
    def of(cls, values: npt.NDArray[np.float64]) -> "Interval":
        """Return the interval of independent values (n,), n at least 2."""
        if len(values) < 2:
            raise ValueError(f"an interval needs at least 2 values, got {len(values)}")
        error = float(np.std(values, ddof=1)) / np.sqrt(len(values))
        return cls(float(np.mean(values)), float(stdtrit(len(values) - 1, 0.975) * error))
