"""Define what a reader does about a problem: it stops, or notes the problem and goes on.

A reader tells each problem to its argument `report`. By default that is `refuse`, so that the first one ends the
reading; given the ``append`` of a list, the reader leaves out what is wrong and goes on to the next.
"""

from collections.abc import Callable
from typing import NoReturn

from mela.errors import MelaError

Report = Callable[[str], object]


class AboutFile(str):
    """Report a problem of a single file, which can be solved by taking the file away.

    Attributes
    ----------
    path : str
        Below the folder of the data, with ``/``.
    """

    path: str

    def __new__(cls, problem: str, path: str) -> "AboutFile":
        """Keep the path beside the text."""
        about = super().__new__(cls, problem)
        about.path = path
        return about


def refuse(problem: str) -> NoReturn:
    """Raise MelaError."""
    raise MelaError(problem)
