"""Check the names that users give to tasks and labels."""

from typing import Any

import numpy as np
import numpy.typing as npt

from mela.errors import MelaError


def require_names(values: npt.NDArray[Any], name: str) -> None:
    """Raise MelaError unless every sample has a name and all names can be sorted together.

    Parameters
    ----------
    values : (n,)
        Names of any type, such as text or integers.
    name : str
        What the error calls them.
    """
    # packages that take long to import are not needed to import an estimator
    import pandas as pd

    empty = np.asarray(pd.isna(values))
    if empty.any():
        row = int(empty.argmax())
        raise MelaError(
            f"{name}: expected a value for every sample, got {values[row]!s} at position {row} ({empty.sum()} of "
            f"{len(values)} samples have none); fill it in, or leave these samples out"
        )
    if values.dtype != object:
        return
    try:
        np.unique(values)
    except TypeError:
        first = type(values[0])
        row = next((row for row, value in enumerate(values) if type(value) is not first), 0)
        raise MelaError(
            f"{name}: expected values of one type that can be sorted, got {first.__name__} at position 0 and "
            f"{type(values[row]).__name__} at position {row}; convert all of them to text"
        ) from None


def require_one_type(values: Any, name: str) -> None:
    """Raise MelaError for missing names and mixed types in a list, of which NumPy would make text: 'nan', '1'."""
    if isinstance(values, list | tuple) and any(isinstance(value, str) for value in values):
        require_names(np.fromiter(values, dtype=object, count=len(values)), name)
