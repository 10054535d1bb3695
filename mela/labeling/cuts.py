"""Judge all cuts through a tree of task classes by the pairs inside tasks, which are known to be different classes."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mela.data.array_types import Floats, Ints

SPLITS = 5


@dataclass(frozen=True, kw_only=True)
class Cuts:
    """Hold what each cut through a tree joins; the first joins nothing and the last joins all.

    Attributes
    ----------
    shared : float64 (n_cuts,)
        Share of all pairs of task classes that are in one cluster.
    steps, tasks, pairs : int64 (n_joins,)
        Cut from which on a number of pairs of one task share a cluster.
    known : int64 (n_tasks,)
        Pairs inside each task.
    """

    shared: Floats
    steps: Ints
    tasks: Ints
    pairs: Ints
    known: Ints

    @classmethod
    def of(cls, tree: Floats, items: Ints, starts: Ints) -> "Cuts":
        """Return those of a tree.

        Parameters
        ----------
        tree : float64 (n_items - 1, 4)
            Steps in their order, as ``scipy.cluster.hierarchy.linkage`` returns them.
        items : int64 (n,)
            Leaf of each task class; -1 is left out.
        starts : int64 (n_tasks + 1,)
            Bounds of the tasks.
        """
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
        everywhere = np.cumsum(shared) / (n * (n - 1) / 2)
        return cls(shared=everywhere, steps=steps, tasks=of_tasks, pairs=pairs, known=ways * (ways - 1) // 2)

    def inside(self, asked: npt.NDArray[np.bool_]) -> Floats:
        """Return which share of the pairs inside some of the tasks (n_tasks,) each cut (n_cuts,) joins."""
        own = asked[self.tasks]
        joined = np.bincount(self.steps[own], weights=self.pairs[own], minlength=len(self.shared))
        return np.cumsum(joined) / self.known[asked].sum()

    def matches(self, asked: npt.NDArray[np.bool_]) -> Floats:
        """Return `match` of each cut (n_cuts,) as some of the tasks (n_tasks,) judge it."""
        gained = self.shared - self.inside(asked)
        return np.where(self.shared > 0, gained / np.sqrt(np.maximum(self.shared, 1e-300)), 0.0)

    def best(self) -> int:
        """Return the cut whose `match` is largest."""
        return int(self.matches(np.ones(len(self.known), dtype=np.bool_)).argmax())

    def error(self) -> float | None:
        """Return a / b of such a cut, as tasks judge it that have not chosen it.

        a is the share of pairs inside tasks that the cut joins, and b that of all pairs. Those tasks that choose a cut
        judge it too well. So half of them choose, and the others judge, in turns, for five divisions at random.

        Returns
        -------
        float or None
            None where a half has no pairs inside tasks.
        """
        generator, found = np.random.default_rng(0), []
        for _ in range(SPLITS):
            chooses = generator.permutation(len(self.known)) % 2 == 0
            for half in (chooses, ~chooses):
                if not self.known[half].any() or not self.known[~half].any():
                    return None
                cut = int(self.matches(half).argmax())
                found.append(self.inside(~half)[cut] / self.shared[cut] if self.shared[cut] else 0.0)
        return float(np.mean(found))
