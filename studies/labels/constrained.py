"""Cluster task classes by published methods that know which of them differ, or that allow for people who differ."""

import numpy as np
from scipy.special import softmax
from sklearn.cluster import AgglomerativeClustering, kmeans_plusplus
from sklearn.preprocessing import normalize

from mela.data.array_types import Floats, Ints
from mela.labeling.clusters import cluster_means

STARTS, STEPS = 10, 100
# of the published recipe for telephone speech, beside the clusters to begin with
EVIDENCE, PRIOR, SMOOTHING = 0.4, 17.0, 7.0


def cop_kmeans(points: Floats, starts: Ints, k: int) -> Ints:
    """Return k clusters (n,) of directions such that the classes of a task differ.

    Each task class in turn goes to the nearest center that none of its task has taken (Wagstaff et al., "Constrained
    k-means clustering with background knowledge", 2001). The order is drawn again in each step. Of ten starts, that
    with the smallest squared distances is kept.

    Parameters
    ----------
    points : float64 (n, d)
        Task classes.
    starts : int64 (n_tasks + 1,)
        Bounds of the tasks.
    k : int
        At least as many as a task has classes.
    """
    directions = normalize(points)
    found = [_cop_kmeans(directions, starts, k, np.random.default_rng(seed)) for seed in range(STARTS)]
    return min(found, key=lambda one: one[1])[0]


def _cop_kmeans(points: Floats, starts: Ints, k: int, rng: np.random.Generator) -> tuple[Ints, float]:
    centers = kmeans_plusplus(points, k, random_state=int(rng.integers(2**31)))[0]
    tasks = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    clusters = np.full(len(points), -1)
    for _ in range(STEPS):
        distances = ((points[:, None] - centers) ** 2).sum(axis=2)
        before, clusters = clusters, np.full(len(points), -1)
        taken = np.zeros((len(starts) - 1, k), dtype=np.bool_)
        for own in rng.permutation(len(points)):
            clusters[own] = np.where(taken[tasks[own]], np.inf, distances[own]).argmin()
            taken[tasks[own], clusters[own]] = True
        if (clusters == before).all():
            break
        counts, means = cluster_means(clusters, points, k)
        centers = np.where(counts[:, None] > 0, means, centers)
    return clusters, float(((points - centers[clusters]) ** 2).sum())


def best_links(points: Floats, starts: Ints, k: int) -> Ints:
    """Return k clusters (n,) by the closest links between tasks, none of which joins two classes of a task.

    Splink, a library for records of several sources, links those free of duplicates by this rule, down to a
    probability. Here links count from the smallest angle on, until k clusters are left or none can be joined.

    Parameters
    ----------
    points, starts
        As in `cop_kmeans`.
    k : int
    """
    directions = normalize(points)
    tasks = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    one, other = np.triu_indices(len(points), 1)
    order = np.argsort(-(directions @ directions.T)[one, other], kind="stable")
    clusters, members = np.arange(len(points)), [{int(task)} for task in tasks]
    left = len(points)
    for link in order:
        a, b = clusters[one[link]], clusters[other[link]]
        if left == k:
            break
        if a != b and not members[a] & members[b]:
            clusters[clusters == b] = a
            members[a] |= members[b]
            left -= 1
    return np.unique(clusters, return_inverse=True)[1].astype(np.int64)


def vbx(points: Floats, between: Floats) -> Ints:
    r"""Return the clusters (n,) of a mixture whose centers are random, as speaker diarization finds its speakers.

    A task class is :math:`x = y_s + e`, with a center :math:`y_s \sim N(0, \Phi)` and noise :math:`e \sim N(0, I)`.
    Centers and responsibilities :math:`\gamma` are found in turns by variational Bayes. The first clusters are one for
    every five task classes, by average linkage (Landini et al., "Bayesian HMM clustering of x-vector sequences (VBx) in
    speaker diarization", 2022, of which this leaves out that speech goes on with the same speaker):

    .. math:: L_s = I + \frac{F_A}{F_B} \sum_t \gamma_{ts} \Phi, \qquad
        \alpha_s = \frac{F_A}{F_B} L_s^{-1} \sum_t \gamma_{ts} \Phi^{1/2} x_t .

    Parameters
    ----------
    points : float64 (n, d)
        Task classes in coordinates with unit noise, about their mean.
    between : float64 (d,)
        :math:`\Phi`, the variances of the centers.
    """
    first = AgglomerativeClustering(max(2, len(points) // 5), metric="cosine", linkage="average").fit_predict(points)
    shares = softmax(SMOOTHING * np.eye(first.max() + 1)[first], axis=1)
    weights, scaled = np.full(shares.shape[1], 1 / shares.shape[1]), points * np.sqrt(between)
    for _ in range(STEPS):
        precision = 1 + EVIDENCE / PRIOR * shares.sum(axis=0)[:, None] * between
        centers = EVIDENCE / PRIOR * (shares.T @ scaled) / precision
        odds = EVIDENCE * (scaled @ centers.T - 0.5 * ((1 / precision + centers**2) @ between))
        before, shares = shares, softmax(odds + np.log(np.maximum(weights, 1e-300)), axis=1)
        weights = shares.mean(axis=0)
        if np.abs(shares - before).max() < 1e-4:
            break
    return np.unique(shares.argmax(axis=1), return_inverse=True)[1].astype(np.int64)
