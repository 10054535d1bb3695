r"""Find samples that probably have the label of another class of their task.

Whoever sorts images into folders puts one into the wrong folder now and then. Let x be a sample in a
`mela.labeling.space.Space`, c a task class and v its cluster. In each direction

.. math:: x \sim \mathcal N(\mu_c, \sigma^2), \quad \mu_c \sim \mathcal N(\nu_v, \tau), \quad
    \nu_v \sim \mathcal N(0, \beta),

where :math:`\sigma^2` is the noise of one sample, :math:`\tau` is by how much people differ, and :math:`\beta` by how
much classes do. What all other samples say of :math:`\mu_c` gives the density of x under each class of its task, the
one that its label names (which x has no part in then) and the others.

Features are not normal, so that these densities are too sure of themselves. With a power s of them, at most 1, a task
of K classes of :math:`n_c` samples and a share :math:`\epsilon` of wrong labels, x has the label a with probability

.. math:: (1 - \epsilon) p_a + \frac{\epsilon}{K - 1} (1 - p_a), \quad
    p_a = \frac{n_a f_a(x)^s}{\sum_c n_c f_c(x)^s}.

All samples together say how probable s and :math:`\epsilon` are, without any truth; a maximum is searched from s = 1.
The second term over the sum is the probability that the label of x is wrong. Copies of an image count as others.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, softmax

from mela.data.array_types import Floats, Ints
from mela.errors import MelaError
from mela.labeling.clusters import by_themselves, cluster_means
from mela.labeling.space import Space, sample_space
from mela.labeling.task_classes import ClassMeans, TaskSamples, class_means

# where the search for the share starts, and how small it and the power may get, as a logarithm
FIRST, BOUND = 0.05, 12.0
# numbers that one part of the computation holds
NUMBERS = 2**22


@dataclass(frozen=True, kw_only=True)
class WrongLabels:
    """Hold how probable it is that samples, in the order of `mela.labeling.task_classes.TaskSamples`, are wrong.

    Attributes
    ----------
    share : float
        Estimated share of samples whose label is wrong, at most one half.
    probabilities : float64 (n_samples,)
        That the label of each sample is wrong; 0 in tasks of one class, and where samples of a class never differ.
    others : int64 (n_samples,)
        The task class of the same task that each sample belongs to if its label is wrong; its own in tasks of one.
    """

    share: float
    probabilities: Floats
    others: Ints


def find_wrong_labels(samples: TaskSamples, clusters: Ints) -> WrongLabels:
    """Tell how probable it is that each sample belongs to another class of its task.

    Parameters
    ----------
    samples : TaskSamples
    clusters : int64 (n_classes,)
        Cluster of each task class; -1 for none.
    """
    classes, space = class_means(samples), None
    # else nothing tells how much samples of a class differ, or there is no other class
    if classes.sizes.max() > 1 and classes.ways.max() > 1:
        with suppress(MelaError):
            space = sample_space(samples, classes)
    if space is None:
        return WrongLabels(share=0.0, probabilities=np.zeros(len(samples.classes)), others=samples.classes)
    densities, first = _log_densities(samples, classes, space, clusters)
    ways = np.repeat(classes.ways, classes.ways)[samples.classes]
    rows, own, asked = np.arange(len(densities)), samples.classes - first, ways > 1
    columns = np.minimum(first[:, None] + np.arange(densities.shape[1]), len(classes.sizes) - 1)
    prior = np.log(classes.sizes[columns])
    share, power = _fitted(densities[asked], prior[asked], own[asked], ways[asked])
    right = softmax(power * densities + prior, axis=1)[rows, own]
    wrong = share * (1 - right) / np.maximum(ways - 1, 1)
    probabilities = np.where(asked, wrong / ((1 - share) * right + wrong), 0.0)
    densities[rows, own] = -np.inf
    others = np.where(asked, first + densities.argmax(axis=1), samples.classes)
    return WrongLabels(share=float(probabilities.mean()), probabilities=probabilities, others=others)


def _fitted(densities: Floats, prior: Floats, own: Ints, ways: Ints) -> tuple[float, float]:
    """Return a probable share of wrong labels and power of the densities."""
    rows = np.arange(len(own))

    def cost(parameters: Floats) -> float:
        share, power = float(expit(parameters[0])), float(np.exp(parameters[1]))
        right = softmax(power * densities + prior, axis=1)[rows, own]
        likelihood = (1 - share) * right + share * (1 - right) / (ways - 1)
        # as if one more label were known to be right, so that where nothing tells the share is 0
        return -float(np.log(np.maximum(likelihood, np.finfo(np.float64).tiny)).sum() + np.log1p(-share))

    if not len(own):
        return 0.0, 1.0
    start = np.array([np.log(FIRST / (1 - FIRST)), 0.0])
    found = minimize(cost, start, method="L-BFGS-B", bounds=[(-BOUND, 0.0), (-BOUND, 0.0)]).x
    return float(expit(found[0])), float(np.exp(found[1]))


def _log_densities(samples: TaskSamples, classes: ClassMeans, space: Space, clusters: Ints) -> tuple[Floats, Ints]:
    """Return log densities of each sample under the classes of its task (n_samples, most ways), and the first of these.

    What is missing because a task has fewer classes is -inf.
    """
    noise, points = float(classes.sizes.mean()), space.transform(classes.means)
    centers, spread = _expected(points, classes.sizes / noise, clusters, space.between)
    known = classes.sizes[:, None] / noise
    precision = 1 / spread + known
    bounds = np.concatenate([[0], np.cumsum(classes.sizes)])
    found = np.full((len(samples.classes), int(classes.ways.max())), -np.inf)
    first = np.empty(len(samples.classes), dtype=np.int64)
    for task, rows in _parts(classes.starts, bounds, points.shape[1]):
        x = space.transform(samples.features[samples.index[rows]].astype(np.float64))
        means = (centers[task] / spread[task] + points[task] * known[task]) / precision[task]
        odds = _normal(x[:, None], means[None], noise + 1 / precision[task][None])
        own = samples.classes[rows]
        # without the sample itself
        rest = 1 / spread[own] + (classes.sizes[own, None] - 1) / noise
        others = (centers[own] / spread[own] + points[own] * known[own] - x / noise) / rest
        odds[np.arange(len(own)), own - task.start] = _normal(x, others, noise + 1 / rest)
        found[rows, : task.stop - task.start] = odds
        first[rows] = task.start
    return found, first


def _parts(starts: Ints, bounds: Ints, dimensions: int) -> Iterator[tuple[slice, slice]]:
    """Yield the classes of a task and some of its samples, for every task and sample."""
    for start, stop in pairwise(starts.tolist()):
        step = max(1, NUMBERS // (dimensions * (stop - start)))
        for row in range(int(bounds[start]), int(bounds[stop]), step):
            yield slice(start, stop), slice(row, min(row + step, int(bounds[stop])))


def _normal(x: Floats, mean: Floats, variance: Floats) -> Floats:
    """Return the log density of x under independent normal distributions, up to a constant."""
    density: Floats = -0.5 * ((x - mean) ** 2 / variance + np.log(variance)).sum(axis=-1)
    return density


def _expected(points: Floats, weights: Floats, clusters: Ints, between: Floats) -> tuple[Floats, Floats]:
    """Return where each task class (n, d) is expected by the others of its cluster, and with which variance."""
    own = by_themselves(clusters)
    tau = _effects(points, weights, own)
    precision = 1 / (tau + 1 / weights[:, None])
    k = int(own.max()) + 1
    totals, sums = np.zeros((k, points.shape[1])), np.zeros((k, points.shape[1]))
    np.add.at(totals, own, precision)
    np.add.at(sums, own, precision * points)
    rest = totals[own] - precision + 1 / between
    return (sums[own] - precision * points) / rest, tau + 1 / rest


def _effects(points: Floats, weights: Floats, clusters: Ints) -> Floats:
    """Return the variance (d,) of task classes about their cluster beyond what noise explains."""
    counts, means = cluster_means(clusters, points)
    freedom = len(points) - int((counts > 0).sum())
    if not freedom:
        return np.zeros(points.shape[1])
    squares = ((points - means[clusters]) ** 2).sum(axis=0) / freedom
    shares = 1 - 1 / counts[clusters]
    return np.maximum(squares - (shares / weights).sum() / freedom, 0.0)
