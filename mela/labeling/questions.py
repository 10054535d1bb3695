r"""Choose what to ask somebody who can see the images: whether two task classes are one class.

Each stands for a group. There are three kinds of questions: two clusters may be one class; the two parts into which
average linkage would divide a cluster may be two; and a task class may belong to another cluster than its own. The
answer changes pairs of task classes only if it contradicts the clusters. So a question is worth as many pairs as it is
expected to change, by the probability that both are one class (`mela.labeling.groups`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from mela.data.array_types import Floats, Ints
from mela.labeling.corrections import Corrections
from mela.labeling.groups import Groups, members, near_clusters, parts
from mela.labeling.links import Links

# task classes that may stand for a group
TYPICAL = 5


@dataclass(frozen=True, kw_only=True)
class Question:
    """Hold two task classes of different tasks that may be one class, each with the group that it stands for.

    Attributes
    ----------
    one, other : int
        Task classes.
    groups : Groups
        Task classes that are thought to be one class with each.
    same : float
        Probability that they are one class.
    worth : float
        Pairs of task classes that the answer is expected to change.
    """

    one: int
    other: int
    groups: Groups
    same: float
    worth: float


def questions(corrections: Corrections, links: Links, clusters: Ints) -> Iterator[Question]:
    """Yield what may be asked, the question that is worth most first.

    Parameters
    ----------
    corrections : Corrections
    links : Links
        What has been said so far, which is not asked again.
    clusters : int64 (n,)
        What `Corrections.after` returns for these links.
    """
    whole = [
        *near_clusters(clusters, corrections.points),
        *parts(clusters, corrections.points, links, corrections.divisions),
    ]
    same = expit(corrections.odds.same(whole))
    sizes = np.array([len(groups.one) * len(groups.other) for groups in whole])
    joined = np.array([groups.joined for groups in whole], dtype=np.bool_)
    single, same_alone, worth_alone = _single(corrections, links, clusters)
    p = np.concatenate([same, same_alone])
    worth = np.concatenate([sizes * np.where(joined, 1 - same, same), worth_alone])
    asked, seen = whole + single, set()
    for at in np.argsort(-worth, kind="stable").tolist():
        pair = _pair(corrections, links, asked[at])
        # a part of a single task class is asked about by itself, too
        if pair is not None and frozenset(pair) not in seen:
            seen.add(frozenset(pair))
            yield Question(one=pair[0], other=pair[1], groups=asked[at], same=float(p[at]), worth=float(worth[at]))


def _single(corrections: Corrections, links: Links, clusters: Ints) -> tuple[list[Groups], Floats, Floats]:
    """Return single task classes, with the rest of their cluster, and with the other one that it may belong to."""
    rows, sizes = members(clusters), np.bincount(clusters[clusters >= 0])
    homes = corrections.odds.homes(clusters, links)
    groups, same, worth = [], [], []
    for row in np.flatnonzero((clusters >= 0) & (sizes[clusters] > 1)).tolist():
        own, away = clusters[row], homes[row] * sizes
        one, rest = np.array([row]), rows[own][rows[own] != row]
        groups.append(Groups(one=one, other=rest, joined=True))
        same.append(homes[row, own])
        worth.append(len(rest) * (1 - homes[row, own]))
        away[own] = 0
        if away.any():
            other = int(away.argmax())
            groups.append(Groups(one=one, other=rows[other], joined=False))
            same.append(homes[row, other])
            worth.append((len(rest) + sizes[other]) * homes[row, other])
    return groups, np.array(same), np.array(worth)


def _pair(corrections: Corrections, links: Links, groups: Groups) -> tuple[int, int] | None:
    """Return the task classes that stand for two groups, or None where the answer is known."""
    if links.tell_apart(groups.one, groups.other):
        return None
    tasks, components = corrections.odds.tasks, links.components
    first, second = (rows[_order(corrections.points[rows])][:TYPICAL] for rows in (groups.one, groups.other))
    for a in first.tolist():
        for b in second.tolist():
            if tasks[a] != tasks[b] and components[a] != components[b]:
                return a, b
    return None


def _order(points: Floats) -> Ints:
    """Return the rows of points in the order of their distance from the mean."""
    return np.argsort(((points - points.mean(axis=0)) ** 2).sum(axis=1), kind="stable")
