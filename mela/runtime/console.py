"""Control what programs say while they work, and how much: the logger ``mela``, on standard output."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from mela.errors import MelaError, line_of, print_anything

VARIABLE = "MELA_OUTPUT"
LEVELS = {"quiet": logging.WARNING, "normal": logging.INFO, "verbose": logging.DEBUG}

log = logging.getLogger("mela")


class _Lines(logging.Handler):
    """Print lines, wherever standard output goes at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print at once; fail, as `print` does, if the output takes nothing."""
        print(self.format(record), flush=True)


def speak(output: str | None = None) -> None:
    """Log progress from now on.

    Parameters
    ----------
    output : str, optional
        ``quiet`` (errors alone), ``normal`` or ``verbose``; by default what the variable MELA_OUTPUT of the environment
        says, or else normal.

    Raises
    ------
    MelaError
        It is none of these.
    """
    chosen = output or os.environ.get(VARIABLE) or "normal"
    if chosen not in LEVELS:
        raise MelaError(f"{VARIABLE}: expected {', '.join(LEVELS)}, got {chosen!r}; correct it or unset it")
    log.setLevel(LEVELS[chosen])
    log.propagate = False
    if not any(isinstance(handler, _Lines) for handler in log.handlers):
        log.addHandler(_Lines())


@contextmanager
def ending_in_one_line() -> Iterator[None]:
    """Log the progress of the block; end with one line and status 1 on errors that the user can put right."""
    print_anything()
    try:
        speak()
        yield
    except Exception as error:
        line = line_of(error)
        if line is None:
            raise
        log.debug("where this comes from:", exc_info=True)
        print_error(line)
        sys.exit(1)


def duration(seconds: float) -> str:
    """Return a duration in words: 0.84 s, 12.3 s, 2 min 05 s, 3 h 20 min."""
    if round(seconds, 2) < 10:
        return f"{seconds:.2f} s"
    if round(seconds, 1) < 100:
        return f"{seconds:.1f} s"
    minutes = round(seconds) // 60
    if minutes < 60:
        return f"{minutes} min {round(seconds) % 60:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def is_terminal(stream: TextIO) -> bool:
    """Tell whether somebody watches a stream on a terminal that can do more than print lines."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def print_error(line: str) -> None:
    """Print the line with which a program ends, its first word in red on a terminal (see no-color.org for NO_COLOR)."""
    word, colon, rest = line.partition(":")
    if is_terminal(sys.stderr) and not os.environ.get("NO_COLOR"):
        word, colon = f"\x1b[1;31m{word}{colon}\x1b[0m", ""
    print(f"{word}{colon}{rest}", file=sys.stderr, flush=True)
