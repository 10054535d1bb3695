"""Show how far a piece of work is: a bar on a terminal, a line now and then elsewhere."""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mela.runtime.console import duration, is_terminal, log

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

BETWEEN = 30.0


class Watch:
    """Receive how far a piece of work is; this one shows nothing."""

    def begin(self, total: int, done: int = 0, *, of: str = "") -> None:
        """Begin a piece of work in parts.

        Parameters
        ----------
        total : int
        done : int
            Parts done before, by an interrupted process.
        of : str
            What they belong to.
        """

    def advance(self, count: int = 1) -> None:
        """Count some more parts as done."""


SILENT = Watch()


class _Bar(Watch):
    """Show a bar with the rate and the time that is left."""

    def __init__(self, progress: "Progress", things: str) -> None:
        self._progress = progress
        self._things = things
        self._task: TaskID | None = None

    def begin(self, total: int, done: int = 0, *, of: str = "") -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(of, total=total, completed=done, things=self._things)

    def advance(self, count: int = 1) -> None:
        assert self._task is not None, "begin comes first"
        self._progress.advance(self._task, count)


class _Lines(Watch):
    """Print a line when the last one is long ago."""

    def __init__(self, stage: str, things: str) -> None:
        self._stage = stage
        self._things = things
        self._said = time.monotonic()

    def begin(self, total: int, done: int = 0, *, of: str = "") -> None:
        self._total, self._before, self._done = total, done, done
        self._of = f"{of}: " if of else ""
        self._began = time.monotonic()

    def advance(self, count: int = 1) -> None:
        self._done += count
        now = time.monotonic()
        if now - self._said < BETWEEN or self._done >= self._total:
            return
        self._said = now
        rate = (self._done - self._before) / (now - self._began)
        log.info(
            f"{self._stage}: {self._of}{self._done:,} of {self._total:,} {self._things}, {rate:.3g} a second, "
            f"{duration((self._total - self._done) / rate)} left"
        )


@contextmanager
def watched(stage: str, things: str, *, shown: bool = True) -> Iterator[Watch]:
    """Show the progress of the block: a bar on a terminal's standard error, elsewhere lines of the log.

    Parameters
    ----------
    stage : str
        What works.
    things : str
        What it counts: steps, images, tasks.
    shown : bool
        Whether this process shows it; of several, one does.
    """
    if not shown or not log.isEnabledFor(logging.INFO):
        yield SILENT
    elif is_terminal(sys.stderr):
        with _bars(stage) as progress:
            yield _Bar(progress, things)
    else:
        yield _Lines(stage, things)


def _bars(stage: str) -> "Progress":
    from rich import progress as bars
    from rich.console import Console
    from rich.text import Text

    class Steady(Console):
        """Leave the cursor visible: a process that is killed could not bring it back."""

        def show_cursor(self, show: bool = True) -> bool:
            return False

    class Rate(bars.ProgressColumn):
        """Show things per second."""

        def render(self, task: bars.Task) -> Text:
            return Text(f"{task.speed:,.3g} a second" if task.speed else "")

    return bars.Progress(
        bars.TextColumn(f"{stage}: {{task.description}}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn("{task.fields[things]}"),
        Rate(),
        bars.TimeRemainingColumn(elapsed_when_finished=True),
        bars.TextColumn("left"),
        console=Steady(stderr=True),
        transient=True,
        redirect_stdout=sys.stdout.isatty(),
    )
