"""Find the classes of people who differ by what one would use otherwise, on the features that merging has.

Rivals cluster the means of task classes. Most do not know which of them met in a task. Those that are told the true
number of classes know what merging has to find out.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans
from sklearn.metrics import silhouette_score
from sklearn.preprocessing import normalize

from mela.data.array_types import Floats, Ints
from mela.labeling.merge_labeler import MergeLabeler
from mela.labeling.space import noise_of, space_of
from mela.labeling.task_classes import TaskSamples, class_means
from mela.params import ROUNDS
from studies.labels.constrained import best_links, cop_kmeans, vbx
from studies.labels.expected import kept_samples, scored

NUMBERS = 20


def ward(points: Floats, k: int) -> Ints:
    """Return k clusters (n,) of points (n, d) by Ward's criterion."""
    return np.asarray(AgglomerativeClustering(k, linkage="ward").fit_predict(points))


def average(points: Floats, k: int) -> Ints:
    """Return k clusters (n,) of points (n, d) by the average angle."""
    return np.asarray(AgglomerativeClustering(k, metric="cosine", linkage="average").fit_predict(points))


def kmeans(points: Floats, k: int) -> Ints:
    """Return k clusters (n,) of the directions of points (n, d)."""
    return np.asarray(KMeans(k, n_init=10, random_state=0).fit_predict(normalize(points)))


def by_silhouette(points: Floats, cluster: Callable[[Floats, int], Ints], metric: str) -> Ints:
    """Return those of up to 20 numbers of clusters, from 2 to half of the points, whose silhouette is largest."""
    numbers = np.unique(np.geomspace(2, len(points) / 2, NUMBERS).astype(int))
    found = [cluster(points, int(k)) for k in numbers]
    return max(found, key=lambda labels: silhouette_score(points, labels, metric=metric))


def hdbscan(points: Floats) -> Ints:
    """Return the clusters (n,) that HDBSCAN finds by its defaults; what it calls noise has -1."""
    return np.asarray(HDBSCAN(copy=True).fit_predict(points))


class Given(NamedTuple):
    """Hold what a rival may use.

    Attributes
    ----------
    points : float64 (n, d)
        Task classes.
    starts : int64 (n_tasks + 1,)
        Bounds of the tasks.
    k : int
        The true number of classes.
    """

    points: Floats
    starts: Ints
    k: int


RIVALS: dict[str, Callable[[Given], Ints]] = {
    "Ward, told the number": lambda given: ward(given.points, given.k),
    "average linkage, told the number": lambda given: average(given.points, given.k),
    "spherical k-means, told the number": lambda given: kmeans(given.points, given.k),
    "COP-k-means, told the number": lambda given: cop_kmeans(given.points, given.starts, given.k),
    "best links between tasks, told the number": lambda given: best_links(given.points, given.starts, given.k),
    "Ward by silhouette": lambda given: by_silhouette(given.points, ward, "euclidean"),
    "average linkage by silhouette": lambda given: by_silhouette(given.points, average, "cosine"),
    "HDBSCAN": lambda given: hdbscan(given.points),
}


def measure(*, data: str, share: float | None, seed: int, features: str, folder: Path) -> list[dict[str, Any]]:
    """Return a row for each rival in each space, and one for merging.

    Parameters
    ----------
    data, share, seed
        As in `studies.labels.people.measure`.
    features : str
        initial, or last: those of the last round.
    folder : Path
        Where ``labels.people --keep`` has left its runs.
    """
    # rounds that are off pass on what the one before has made
    return rows(*kept_samples(folder, data, share, seed, features if features == "initial" else ROUNDS[-1]))


def rows(samples: TaskSamples, truth: Ints) -> list[dict[str, Any]]:
    """Return how well merging and its rivals find the true classes (n,) of task classes.

    Rivals get the features as they are (plain), and in units of the noise inside task classes (whitened).
    """
    classes, found = class_means(samples), []
    space, k = space_of(classes.means, *noise_of(samples, classes)), len(np.unique(truth))
    points = {"plain": classes.means, "whitened": space.transform(classes.means)}

    def add(method: str, name: str, find: Callable[[], Ints]) -> None:
        start = time.perf_counter()
        labels = find()
        row = {"method": method, "space": name, "seconds": round(time.perf_counter() - start, 2), "true_classes": k}
        found.append(row | scored(truth, labels))

    for name, own in points.items():
        for method, rival in RIVALS.items():
            add(method, name, partial(rival, Given(own, classes.starts, k)))
    # needs the noise
    add("VBx", "whitened", partial(vbx, points["whitened"], space.between))
    add("merged", "", lambda: MergeLabeler().fit_tasks(samples).class_labels_)
    return found
