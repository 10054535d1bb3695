"""Keep what people say of task classes: two of them are one class, or two are not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from mela.data.array_types import Ints
from mela.errors import MelaError
from mela.labeling.task_classes import TaskSamples

# a task and one of its local labels
Name = tuple[Any, Any]


# labels of a task that a message names
SHOWN = 5


class Said(NamedTuple):
    """Hold that two task classes are one class, or are not, and where somebody says so, as messages tell it."""

    one: Name
    other: Name
    same: bool
    place: str


@dataclass(frozen=True, kw_only=True)
class Links:
    """Hold which task classes are one class, and which are not, without a contradiction.

    Attributes
    ----------
    same, different : int64 (n_same, 2), (n_different, 2)
        Task classes.
    starts : int64 (n_tasks + 1,)
        Bounds of the tasks.
    """

    same: Ints
    different: Ints
    starts: Ints

    @classmethod
    def of(cls, said: Sequence[Said], names: Sequence[Name], starts: Ints) -> "Links":
        """Return the links between task classes of these names.

        Parameters
        ----------
        said : sequence of Said
        names : sequence (n_classes,) of (task, label)
        starts : int64 (n_tasks + 1,)
            Bounds of the tasks.

        Raises
        ------
        MelaError
            A task class is named that is not there, or somebody contradicts what was said.
        """
        known = {name: row for row, name in enumerate(names)}
        rows = np.array([[find_name(name, one.place, known) for name in one[:2]] for one in said], dtype=np.int64)
        rows, same = rows.reshape(-1, 2), np.array([one.same for one in said], dtype=np.bool_)
        links = cls(same=rows[same], different=rows[~same], starts=starts)
        places = [one.place for one in said]
        for pair, is_same, place in zip(rows.tolist(), same.tolist(), places, strict=True):
            if not is_same and links.components[pair[0]] == links.components[pair[1]]:
                given = f"{place}: {_shown(names[pair[0]])} and {_shown(names[pair[1]])} are said to differ"
                raise MelaError(f"{given}, but {_chain(links, rows, same, places, names, *pair)}; correct one of these")
        inside = links.apart[len(links.different) :]
        together = inside[links.components[inside[:, 0]] == links.components[inside[:, 1]]]
        if len(together):
            one, other = together[0].tolist()
            given = f"{_shown(names[one])} and {_shown(names[other])} differ, since they are labels of one task"
            raise MelaError(f"{given}, but {_chain(links, rows, same, places, names, one, other)}; correct it")
        return links

    @classmethod
    def nothing(cls, starts: Ints) -> "Links":
        """Return the links of tasks of which nobody has said anything."""
        none = np.empty((0, 2), dtype=np.int64)
        return cls(same=none, different=none, starts=starts)

    def require_ways(self, clusters: Ints) -> Ints:
        """Return clusters (n_classes,) from 0; raise MelaError if they are fewer than a task has labels."""
        number, ways = int(clusters.max()) + 1, np.diff(self.starts)
        if number < ways.max():
            raise MelaError(
                f"links: they leave {number} classes, fewer than the {ways.max()} labels of one task; take one of "
                f"{len(self.same)} pairs back that are said to be one class"
            )
        return clusters

    def tell_apart(self, one: Ints, other: Ints) -> bool:
        """Return whether task classes of two groups (n,), (m,) differ, or others that are one class with them."""
        first, second = (np.isin(self._kinds_apart, self.components[group]) for group in (one, other))
        return bool((first & second[:, ::-1]).any())

    @property
    def n_classes(self) -> int:
        """Number of task classes."""
        return int(self.starts[-1])

    @cached_property
    def named(self) -> npt.NDArray[np.bool_]:
        """Whether a task class is named (n_classes,)."""
        found = np.zeros(self.n_classes, dtype=np.bool_)
        found[self.same.ravel()] = True
        found[self.different.ravel()] = True
        return found

    @cached_property
    def asked(self) -> npt.NDArray[np.bool_]:
        """Whether a task class is of a task of which some is named (n_classes,)."""
        return np.repeat(np.add.reduceat(self.named, self.starts[:-1], dtype=np.int64) > 0, np.diff(self.starts))

    @cached_property
    def apart(self) -> Ints:
        """Pairs of task classes (n, 2) that are not one class, with all pairs of the tasks of which some is named."""
        tasks = np.flatnonzero(self.asked[self.starts[:-1]])
        rows = [range(self.starts[task], self.starts[task + 1]) for task in tasks]
        inside = [pair for own in rows for pair in combinations(own, 2)]
        return np.concatenate([self.different, np.array(inside, dtype=np.int64).reshape(-1, 2)])

    @cached_property
    def _kinds_apart(self) -> Ints:
        """The components of the pairs `apart`, which every question asks for."""
        return self.components[self.apart]

    @cached_property
    def components(self) -> Ints:
        """Number of the task classes (n_classes,) that are said to be one class."""
        found: Ints = connected_components(_graph(self.same, self.n_classes), directed=False)[1].astype(np.int64)
        return found


def find_name(name: Name, place: str, known: Mapping[Name, int]) -> int:
    """Return the row of a label among known ones; raise MelaError that names a place if it is none of them."""
    if name in known:
        return known[name]
    task, label = name
    labels = sorted({repr(own) for other, own in known if other == task})
    if not labels:
        raise MelaError(f"{place}: expected a task with labels to be inferred, got {task!r}; correct its name")
    more = ", ..." if len(labels) > SHOWN else ""
    got = f"{label!r}, while task {task!r} has {', '.join(labels[:SHOWN])}{more}"
    raise MelaError(f"{place}: expected a label of its task, got {got}; correct its name")


def _graph(pairs: Ints, n: int) -> csr_array:
    return csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))


def _shown(name: Name) -> str:
    return f"{str(name[1])!r} of task {str(name[0])!r}"


def _chain(
    links: Links,
    rows: Ints,
    same: npt.NDArray[np.bool_],
    places: Sequence[str],
    names: Sequence[Name],
    one: int,
    other: int,
) -> str:
    """Tell through which pairs two task classes are one class."""
    if one == other:
        return "they are the same label"
    before = breadth_first_order(_graph(links.same, links.n_classes), one, directed=False)[1]
    path = [other]
    while path[-1] != one:
        path.append(int(before[path[-1]]))
    steps = []
    for pair in pairwise(path[::-1]):
        at = np.flatnonzero(same & (np.sort(rows, axis=1) == np.sort(pair)).all(axis=1))[0]
        steps.append(f"{_shown(names[pair[0]])} is {_shown(names[pair[1]])} ({places[at]})")
    return " and ".join(steps)


def given_links(samples: TaskSamples, must_link: Any, cannot_link: Any) -> Links | None:
    """Return the links of pairs ((task, label), (task, label)), or None where none are given.

    Raises
    ------
    MelaError
        As `Links.of`; a link is not such a pair.
    """
    said = []
    for what, same, pairs in (("must_link", True, must_link), ("cannot_link", False, cannot_link)):
        try:
            listed = [] if pairs is None else list(pairs)
        except TypeError:
            raise MelaError(
                f"{what}: expected pairs ((task, label), (task, label)), got {pairs!r}; give a list"
            ) from None
        for number, pair in enumerate(listed):
            try:
                (task, label), (other_task, other_label) = pair
                one, other = (task, label), (other_task, other_label)
                hash((one, other))
            except (TypeError, ValueError):
                raise MelaError(
                    f"{what}[{number}]: expected ((task, label), (task, label)), got {pair!r}; give such pairs"
                ) from None
            said.append(Said(one, other, same, f"{what}[{number}]"))
    if not said:
        return None
    return Links.of(said, samples.names, samples.starts)
