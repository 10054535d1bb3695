r"""Fit the meta-test head (Eq. 8) of many tasks at once: logistic regression in the span of the support set.

For one task with support features :math:`x_i \in \mathbb R^m`, :math:`i = 1 \ldots n`, labels :math:`y_i` among K and
sample weights :math:`s_i`, the head minimises

.. math:: F(W, b) = \sum_i s_i \, \mathrm{CE}(W x_i + b, y_i) + \frac{1}{2 C} |W|^2

over W (K, m) and b (K). Moving the features to their weighted mean changes b alone, so let the rows of
:math:`X` (n, m) be :math:`\sqrt{s_i} (x_i - \bar x)`. The minimiser is :math:`W = A X` for some A (K, n), and the Gram
matrix :math:`G = X X^\top` is all that is needed of the features (the representer theorem; Schoelkopf, Herbrich and
Smola, 2001):

.. math:: W X^\top = A G, \qquad |W|^2 = \langle A, A G \rangle, \qquad \nabla_W F = (R + A / C) X, \qquad
    \nabla_b F = R \sqrt s

where R (K, n) is the predicted less the true probabilities, times :math:`\sqrt{s_i}`. So an iteration is over n numbers
per class rather than m, and costs one product with G. F is convex, strictly but for a number added to all b; Newton's
method with conjugate gradients and a line search minimises it (Nocedal and Wright, "Numerical Optimization", 2006,
algorithm 7.1), all tasks in step, each at rest once it is solved.

scikit-learn's LogisticRegression finds the same minimum one task at a time, which takes 2 to 4 s for each model that is
tested, against less than 0.1 s here (docs/results/benchmarks.md).
"""

from dataclasses import dataclass

import numpy as np

from mela.data.array_types import AnyFeatures, Flags, Floats, Ints

TOLERANCE = 1e-8
ARMIJO = 1e-4
FORCING = (1e-6, 1e-2)
ROUNDING = 1e-13
EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, kw_only=True)
class Heads:
    """Hold the logistic heads of t tasks.

    Attributes
    ----------
    weights : float64 (t, K, m)
    intercepts : float64 (t, K, 1)
    iterations : int
        Newton steps of the task that needed most.
    converged : bool (t,)
    """

    weights: Floats
    intercepts: Floats
    iterations: int
    converged: Flags

    def logits(self, queries: AnyFeatures) -> Floats:
        """Return the logits (t, K, q) of features (t, q, m)."""
        logits: Floats = self.weights @ queries.astype(np.float64).swapaxes(1, 2) + self.intercepts
        return logits


def fit_heads(support: AnyFeatures, labels: Ints, n_classes: int, *, C: float, max_iter: int) -> Heads:
    """Fit one head per task, in float64.

    Classes weigh the same whatever their shots, as in `mela.evaluation.heads.fit_head`.

    Parameters
    ----------
    support : float (t, n, m)
        Features as they shall be used (of length 1, say).
    labels : int64 (t, n)
        0 to n_classes - 1, each at least once in every task.
    n_classes : int
        K, at least 2.
    C : float
        Inverse regularisation.
    max_iter : int
        Newton steps at most.

    Returns
    -------
    Heads
        Where `converged`, the gradient is shorter than 1e-8, times the root mean square of the centred features if
        that is above 1.

    Raises
    ------
    ValueError
        A class is missing in a task.
    """
    targets = (labels[:, None] == np.arange(n_classes)[:, None]).astype(np.float64)
    shots = targets.sum(axis=2, keepdims=True)
    if (shots == 0).any():
        raise ValueError(
            f"support: a task lacks samples of some of its {n_classes} classes; give at least one sample of each"
        )
    n = labels.shape[1]
    root = np.sqrt((targets / shots).sum(axis=1, keepdims=True) * (n / n_classes))
    x = support.astype(np.float64)
    mean = root**2 @ x / n
    x -= mean
    x *= root.swapaxes(1, 2)
    gram = x @ x.swapaxes(1, 2)
    spread = np.trace(gram, axis1=1, axis2=2)[:, None, None]
    # rounding must not make a direction without any spread one of negative curvature
    gram += 8 * EPSILON * spread * np.eye(n)

    problem = _Problem(gram=gram, root=root, targets=targets, n=n, C=C)
    here, iterations = problem.at(problem.zero()), 0
    while True:
        gradient = problem.gradient(here)
        squared = problem.squared(gradient, 1.0, 1.0)
        converged = squared <= TOLERANCE**2 * np.maximum(spread / n, 1)
        running = ~converged & np.isfinite(squared)
        if iterations == max_iter or not running.any():
            break
        iterations += 1
        here = problem.search(here, gradient, problem.newton_step(here, gradient, running), running)
    weights = here.vector.a @ x
    return Heads(
        weights=weights,
        intercepts=here.vector.bias - weights @ mean.swapaxes(1, 2),
        iterations=iterations,
        converged=converged[:, 0, 0],
    )


@dataclass(frozen=True, kw_only=True)
class _Vector:
    """Hold W and b of all tasks, a direction or a gradient: A and AG (t, K, n), b (t, K, 1)."""

    a: Floats
    a_gram: Floats
    bias: Floats

    def plus(self, factor: Floats, other: "_Vector") -> "_Vector":
        """Return the sum with `factor` (t, 1, 1) times another."""
        return _Vector(
            a=self.a + factor * other.a,
            a_gram=self.a_gram + factor * other.a_gram,
            bias=self.bias + factor * other.bias,
        )

    def dot(self, other: "_Vector") -> Floats:
        """Return the inner products (t, 1, 1) of W and b."""
        return _dot(self.a_gram, other.a) + _dot(self.bias, other.bias)


@dataclass(frozen=True, kw_only=True)
class _Point:
    """Hold a vector, its loss (t, 1, 1) and its probabilities (t, K, n)."""

    vector: _Vector
    loss: Floats
    probabilities: Floats


@dataclass(frozen=True, kw_only=True)
class _Problem:
    """Define F of all tasks; `root` (t, 1, n) are the roots of the sample weights."""

    gram: Floats
    root: Floats
    targets: Floats
    n: int
    C: float

    def zero(self) -> _Vector:
        zero = np.zeros_like(self.targets)
        return _Vector(a=zero, a_gram=zero, bias=zero[:, :, :1])

    def at(self, vector: _Vector) -> _Point:
        logits = vector.a_gram / self.root + vector.bias
        logits -= logits.max(axis=1, keepdims=True)
        exponentials = np.exp(logits)
        sums = exponentials.sum(axis=1, keepdims=True)
        entropy = _dot(self.root**2 * self.targets, np.log(sums) - logits)
        loss = entropy + _dot(vector.a, vector.a_gram) / (2 * self.C)
        return _Point(vector=vector, loss=loss, probabilities=exponentials / sums)

    def gradient(self, point: _Point) -> _Vector:
        a, bias = self._pulled_back(self.root * (point.probabilities - self.targets), point.vector.a)
        return _Vector(a=a, a_gram=a @ self.gram, bias=bias)

    def squared(self, vector: _Vector, weights: float, bias: float) -> Floats:
        """Return the squared length (t, 1, 1), W and b weighted."""
        return weights * _dot(vector.a, vector.a_gram) + bias * _dot(vector.bias, vector.bias)

    def newton_step(self, point: _Point, gradient: _Vector, running: Flags) -> _Vector:
        """Minimise the quadratic model by conjugate gradients, more exactly near the solution.

        They are preconditioned by the curvature of the penalty for W, and of equal probabilities for b. Wherever they
        are stopped, the step is one of descent. This is where the time goes, so arrays are changed in place.
        """
        shares, inverse_root = point.probabilities, 1 / self.root
        weighted = self.root * shares
        for_weights, for_bias = self.C, shares.shape[1] / self.n
        rest, rest_bias = -gradient.a, -gradient.bias
        a, a_gram, bias = for_weights * rest, -for_weights * gradient.a_gram, for_bias * rest_bias
        step, step_bias = np.zeros_like(a), np.zeros_like(bias)
        size = self.squared(gradient, for_weights, for_bias)
        goal, active = size * np.clip(size, *FORCING), running
        # as many steps as unknowns would do in exact arithmetic; rounding asks for more where C is large
        for _ in range(4 * self.targets[0].size):
            change = a_gram * inverse_root
            change += bias
            change -= np.einsum("tkn,tkn->tn", shares, change)[:, None]
            change *= weighted
            curved, curved_bias = self._pulled_back(change, a)
            curvature = _dot(a_gram, curved) + _dot(bias, curved_bias)
            active = active & (curvature > 0)
            length = np.where(active, size / np.where(active, curvature, 1), 0)
            step += length * a
            step_bias += length * bias
            rest -= length * curved
            rest_bias -= length * curved_bias
            rest_gram = rest @ self.gram
            before, size = size, for_weights * _dot(rest, rest_gram) + for_bias * _dot(rest_bias, rest_bias)
            active = active & (size > goal)
            if not active.any():
                break
            turn = np.where(active, size / np.where(active, before, 1), 0)
            for vector, scale, new in [
                (a, for_weights, rest),
                (a_gram, for_weights, rest_gram),
                (bias, for_bias, rest_bias),
            ]:
                vector *= turn
                vector += scale * new
        return _Vector(a=step, a_gram=step @ self.gram, bias=step_bias)

    def search(self, point: _Point, gradient: _Vector, step: _Vector, running: Flags) -> _Point:
        """Halve each task's step until its loss falls enough."""
        slope, slack = step.dot(gradient), ROUNDING * np.abs(point.loss)
        length = running.astype(np.float64)
        while True:
            moved = self.at(point.vector.plus(length, step))
            bad = moved.loss > point.loss + ARMIJO * length * slope + slack
            if not bad.any():
                return moved
            length = np.where(bad, length / 2, length)

    def _pulled_back(self, samples: Floats, a: Floats) -> tuple[Floats, Floats]:
        """Return A and b of a gradient from values per sample (t, K, n), which are changed, and A of the penalty."""
        bias = np.vecdot(samples, self.root)[:, :, None]
        # what is parallel to the roots is nothing in W, since the features are centred
        samples -= bias / self.n * self.root
        samples += a / self.C
        return samples, bias


def _dot(left: Floats, right: Floats) -> Floats:
    """Return inner products (t, 1, 1)."""
    t = len(left)
    return np.vecdot(left.reshape(t, -1), right.reshape(t, -1))[:, None, None]
