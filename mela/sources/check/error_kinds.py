"""Join many errors of one kind into one line: the first, their number, and what the next are about."""

import re
from collections.abc import Iterable, Iterator

from mela.errors import plain
from mela.io.reading_errors import AboutFile

# what is quoted, as repr quotes it, and numbers: all in which errors of one kind differ
QUOTED = r"""(?<!\w)'(?:[^'\\]|\\.)*'(?!\w)|(?<!\w)"(?:[^"\\]|\\.)*"(?!\w)"""
VARYING = re.compile(rf"{QUOTED}|\d+(?: x \d+)?")
OTHERS = 2


def kind_of(error: str) -> str:
    """Return what errors of one kind have in common."""
    text = str(error)
    if isinstance(error, AboutFile):
        quoted, plainly = plain(repr(error.path)), plain(error.path)
        place, colon, rest = text.replace(quoted, "#").partition(": ")
        text = (f"{place.removesuffix(plainly)}#" if plainly and place.endswith(plainly) else place) + colon + rest
    return VARYING.sub("#", text)


def in_kinds(errors: Iterable[str]) -> list[list[str]]:
    """Group the errors by kind, in the order of each kind's first error."""
    found: dict[str, list[str]] = {}
    for error in errors:
        found.setdefault(kind_of(error), []).append(error)
    return list(found.values())


def lines(errors: Iterable[str]) -> Iterator[str]:
    """Yield one line for each kind of error."""
    for first, *others in in_kinds(errors):
        if not others:
            yield first
            continue
        more = ", ..." if len(others) > OTHERS else ""
        about = ", ".join(_about(other, first) for other in others[:OTHERS])
        yield f"{first} ({len(others) + 1} times, also for {about}{more})"


def _about(error: str, first: str) -> str:
    """Return the part in which an error differs from others of its kind: its place, or what it quotes."""
    if isinstance(error, AboutFile) and error.path:
        return repr(error.path)
    place, other = (text.partition(": ")[0] for text in (error, first))
    if place != other:
        return place
    return next((a for a, b in zip(VARYING.findall(error), VARYING.findall(first), strict=False) if a != b), place)
