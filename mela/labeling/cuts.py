"""Judge all cuts through a tree of task classes by the pairs inside tasks, which are known to be different classes."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import fcluster

from mela.data.array_types import Floats, Ints
from mela.labeling.pair_quality import pairs_inside

SPLITS = 5


@dataclass(frozen=True, kw_only=True)
class Cuts:
    """Hold what each cut through a tree joins; the first joins no leaves.

    Classes of a task differ, so no cut leaves fewer clusters than the widest task has classes. If the tree has fewer
    leaves, only the first cut remains.

    Attributes
    ----------
    tree : float64 (n_items - 1, 4)
        Steps in their order, as ``scipy.cluster.hierarchy.linkage`` returns them.
    items : int64 (n,)
        Leaf of each task class; -1 is left out.
    shared : float64 (n_cuts,)
        Share of all pairs of task classes that are in one cluster.
    steps, tasks, pairs : int64 (n_entries,)
        From which cut on how many pairs of a task share a cluster; one entry for each task that a step joins.
    known : int64 (n_tasks,)
        Pairs inside each task.
    sources : int64 (n_tasks,), optional
        Source of each task, from 0; without it each has one of its own. Tasks of one source judge alike, so that they
        are in the same half.
    """

    tree: Floats
    items: Ints
    shared: Floats
    steps: Ints
    tasks: Ints
    pairs: Ints
    known: Ints
    sources: Ints | None

    @classmethod
    def of(cls, tree: Floats, items: Ints, starts: Ints, sources: Ints | None = None) -> "Cuts":
        """Return those of a tree and items, as above, for tasks with the bounds ``starts``, int64 (n_tasks + 1,)."""
        ways, n = np.diff(starts), len(items)
        tasks = np.repeat(np.arange(len(ways)), ways)
        used = items >= 0
        # how often each cluster has each task
        members = [Counter[int]() for _ in range(len(tree) + 1)]
        for item, task in zip(items[used].tolist(), tasks[used].tolist(), strict=True):
            members[item][task] += 1
        sizes = np.bincount(items[used]).tolist()
        shared = [sum(size * (size - 1) // 2 for size in sizes)]
        joins = [(0, task, count * (count - 1) // 2) for own in members for task, count in own.items() if count > 1]
        for step, (one, other) in enumerate(tree[:, :2].astype(np.int64).tolist(), start=1):
            large, small = sorted((members[one], members[other]), key=len, reverse=True)
            shared.append(sizes[one] * sizes[other])
            joins += [(step, task, count * large[task]) for task, count in small.items() if task in large]
            large.update(small)
            members.append(large)
            sizes.append(sizes[one] + sizes[other])
        steps, of_tasks, pairs = np.array(joins, dtype=np.int64).reshape(-1, 3).T
        n_cuts = max(1, len(tree) + 2 - int(ways.max()))
        asked = steps < n_cuts
        return cls(
            tree=tree,
            items=items,
            shared=np.cumsum(shared)[:n_cuts] / (n * (n - 1) / 2),
            steps=steps[asked],
            tasks=of_tasks[asked],
            pairs=pairs[asked],
            known=pairs_inside(starts),
            sources=sources,
        )

    def inside(self, asked: npt.NDArray[np.bool_]) -> Floats:
        """Return which share of the pairs inside some of the tasks (n_tasks,) each cut (n_cuts,) joins."""
        own = asked[self.tasks]
        joined = np.bincount(self.steps[own], weights=self.pairs[own], minlength=len(self.shared))
        return np.cumsum(joined) / self.known[asked].sum()

    def matches(self, asked: npt.NDArray[np.bool_] | None = None) -> Floats:
        """Return `match` of each cut (n_cuts,) as some of the tasks (n_tasks,) or all judge it."""
        gained = self.shared - self.inside(np.ones(len(self.known), dtype=np.bool_) if asked is None else asked)
        return np.where(self.shared > 0, gained / np.sqrt(np.maximum(self.shared, 1e-300)), 0.0)

    def best(self, asked: npt.NDArray[np.bool_] | None = None) -> int:
        """Return the cut whose `match` is largest, as some of the tasks (n_tasks,) or all judge it."""
        return int(self.matches(asked).argmax())

    def finest(self, error: float) -> int:
        """Return the cut that joins least of those whose `match` is at most an error below the largest."""
        found = self.matches()
        return int((found >= found.max() - error).argmax())

    def clusters(self, cut: int) -> Ints:
        """Return the cluster of each task class (n,) after a cut, from 0; -1 as in items."""
        steps = self.tree.copy()
        # the height of a step is then its number
        steps[:, 2] = np.arange(1, len(steps) + 1)
        found = fcluster(steps, cut + 0.5, "distance").astype(np.int64) - 1
        return np.where(self.items >= 0, found[self.items], -1)

    def held_out(self) -> float:
        """Return `match` as tasks judge it that have not chosen the cut; -inf where a half has no pairs inside tasks.

        Half of the tasks choose a cut, and the others judge it, in turns, as for `error`.
        """
        found = [self.matches(others)[cut] for cut, others in self._chosen()]
        return float(np.mean(found)) if found else -np.inf

    def error(self) -> float | None:
        """Return a / b of such a cut, as tasks judge it that have not chosen it.

        a is the share of pairs inside tasks that the cut joins, and b that of all pairs. Those tasks that choose a cut
        judge it too well. So half of them choose, and the others judge, in turns. All tasks may have chosen the tree.

        Returns
        -------
        float or None
            None where a half has no pairs inside tasks.
        """
        found = []
        for cut, others in self._chosen():
            found.append(self.inside(others)[cut] / self.shared[cut] if self.shared[cut] else 0.0)
        return float(np.mean(found)) if found else None

    def _chosen(self) -> Iterator[tuple[int, npt.NDArray[np.bool_]]]:
        """Yield the cut that a half of the tasks chooses, and the tasks (n_tasks,) of the other half, in turns."""
        for half in halves(self.known, self.sources):
            yield self.best(half), ~half


def halves(known: Ints, sources: Ints | None) -> Iterator[npt.NDArray[np.bool_]]:
    """Yield halves of the sources' tasks, and the other halves, of five divisions at random.

    Parameters
    ----------
    known : int64 (n_tasks,)
        Pairs inside each task. Where a half has none, no more halves are drawn.
    sources : int64 (n_tasks,), optional
        Source of each task, from 0; without it each has one of its own.
    """
    sources = np.arange(len(known)) if sources is None else sources
    generator = np.random.default_rng(0)
    for _ in range(SPLITS):
        half = (generator.permutation(int(sources.max()) + 1) % 2 == 0)[sources]
        if not known[half].any() or not known[~half].any():
            return
        yield half
        yield ~half
