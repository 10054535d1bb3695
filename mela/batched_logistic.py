r"""The meta-test head (Eq. 8) for many tasks at once: multinomial logistic regression in the span of the support set.

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
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Features = npt.NDArray[np.floating]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

TOLERANCE = 1e-8
ARMIJO = 1e-4
FORCING = (1e-6, 1e-2)
ROUNDING = 1e-13
EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, kw_only=True)
class Heads:
    """Logistic heads of t tasks.

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

    def logits(self, queries: Features) -> Floats:
        """Logits (t, K, q) of features (t, q, m)."""
        logits: Floats = self.weights @ queries.astype(np.float64).swapaxes(1, 2) + self.intercepts
        return logits


def fit_heads(support: Features, labels: Ints, n_classes: int, *, C: float, max_iter: int) -> Heads:
    """Fit one head per task, in float64.

    Classes weigh the same whatever their shots, as in `mela.logistic.fit_head`.

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
        raise ValueError(f"support: expected each of {n_classes} classes in every task, found a class without a sample")
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
    """W and b of all tasks, a direction or a gradient: A and AG (t, K, n), b (t, K, 1)."""

    a: Floats
    a_gram: Floats
    bias: Floats

    def plus(self, factor: Floats, other: "_Vector") -> "_Vector":
        """The sum with `factor` (t, 1, 1) times another."""
        return _Vector(
            a=self.a + factor * other.a,
            a_gram=self.a_gram + factor * other.a_gram,
            bias=self.bias + factor * other.bias,
        )

    def scaled(self, weights: float, bias: float) -> "_Vector":
        """W and b times a number each."""
        return _Vector(a=weights * self.a, a_gram=weights * self.a_gram, bias=bias * self.bias)

    def dot(self, other: "_Vector") -> Floats:
        """Inner products (t, 1, 1) of W and b."""
        return _dot(self.a_gram, other.a) + _dot(self.bias, other.bias)


@dataclass(frozen=True, kw_only=True)
class _Point:
    """A vector, its loss (t, 1, 1) and its probabilities (t, K, n)."""

    vector: _Vector
    loss: Floats
    probabilities: Floats


@dataclass(frozen=True, kw_only=True)
class _Problem:
    """F of all tasks; `root` (t, 1, n) are the roots of the sample weights."""

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
        return self._pulled_back(self.root * (point.probabilities - self.targets), point.vector.a)

    def squared(self, vector: _Vector, weights: float, bias: float) -> Floats:
        """Squared length (t, 1, 1), W and b weighted."""
        return weights * _dot(vector.a, vector.a_gram) + bias * _dot(vector.bias, vector.bias)

    def newton_step(self, point: _Point, gradient: _Vector, running: Flags) -> _Vector:
        """Minimise the quadratic model by conjugate gradients, the better the closer the solution is.

        They are preconditioned by the curvature of the penalty for W, and of equal probabilities for b. Wherever they
        are stopped, the step is one of descent.
        """
        shares = point.probabilities
        preconditioner = self.C, shares.shape[1] / self.n
        step, rest = self.zero(), gradient.scaled(-1, -1)
        direction, size = rest.scaled(*preconditioner), self.squared(rest, *preconditioner)
        goal, active = size * np.clip(size, *FORCING), running
        for _ in range(self.targets[0].size):
            change = direction.a_gram / self.root + direction.bias
            change -= (shares * change).sum(axis=1, keepdims=True)
            curved = self._pulled_back(self.root * shares * change, direction.a)
            curvature = direction.dot(curved)
            active = active & (curvature > 0)
            length = np.where(active, size / np.where(active, curvature, 1), 0)
            step, rest = step.plus(length, direction), rest.plus(-length, curved)
            before, size = size, self.squared(rest, *preconditioner)
            active = active & (size > goal)
            if not active.any():
                break
            turn = np.where(active, size / np.where(active, before, 1), 0)
            direction = rest.scaled(*preconditioner).plus(turn, direction)
        return step

    def search(self, point: _Point, gradient: _Vector, step: _Vector, running: Flags) -> _Point:
        """Go along the step, in each task half as far until the loss falls enough."""
        slope, slack = step.dot(gradient), ROUNDING * np.abs(point.loss)
        length = running.astype(np.float64)
        while True:
            moved = self.at(point.vector.plus(length, step))
            bad = moved.loss > point.loss + ARMIJO * length * slope + slack
            if not bad.any():
                return moved
            length = np.where(bad, length / 2, length)

    def _pulled_back(self, samples: Floats, a: Floats) -> _Vector:
        """A gradient from what there is per sample (t, K, n) and A of the penalty."""
        bias = (samples * self.root).sum(axis=2, keepdims=True)
        # what is parallel to the roots is nothing in W, since the features are centred
        a = samples - bias / self.n * self.root + a / self.C
        return _Vector(a=a, a_gram=a @ self.gram, bias=bias)


def _dot(left: Floats, right: Floats) -> Floats:
    return (left * right).sum(axis=(1, 2), keepdims=True)
