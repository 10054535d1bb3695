r"""Calibrate probabilities by one temperature for the logits of the head, fitted on validation tasks.

Logistic regression on few support images, with features of length 1, gives too small probabilities: C = 1 keeps its
logits small. Guo et al. ("On Calibration of Modern Neural Networks", 2017) divide all logits by one number T, the
temperature, that minimises

.. math:: - \sum_i \log \mathrm{softmax}(z_i / T)_{y_i}

over the queries i of tasks that nothing was fitted on. The most probable class stays the same, and so does accuracy.
One more query, for which all classes are equally right, keeps T above 0 where no prediction is wrong.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import log_softmax

from mela.data.array_types import Floats, Ints
from mela.data.episodes import TaskGroup
from mela.evaluation.unknown import Part, thresholded

BINS = 15
BOUNDS = (1e-3, 1e3)


class QueryOutputs:
    """Hold logits, and cosines with class means, of all queries of some tasks, by setting such as ``5_shot``."""

    def __init__(self) -> None:
        self._parts: dict[str, list[tuple[TaskGroup, Floats, Floats]]] = defaultdict(list)

    def keep(self, setting: str, group: TaskGroup, logits: Floats, cosines: Floats) -> None:
        """Keep what is known of the queries of some tasks, (t, K, q) each; several threads may call this at once."""
        self._parts[setting].append((group, logits, cosines))

    def logits(self, setting: str) -> list[Part]:
        """Return the logits of a setting, in the order of the tasks."""
        return [(logits, group.query_labels) for group, logits, _ in self._of(setting)]

    def cosines(self, setting: str) -> list[Part]:
        """Return the cosines of a setting, in the order of the tasks."""
        return [(cosines, group.query_labels) for group, _, cosines in self._of(setting)]

    def predicted(self, setting: str) -> list[tuple[TaskGroup, Ints]]:
        """Return the tasks of a setting, in their order, and the labels (t, q) that their queries were given."""
        return [(group, logits.argmax(axis=1)) for group, logits, _ in self._of(setting)]

    def _of(self, setting: str) -> list[tuple[TaskGroup, Floats, Floats]]:
        return sorted(self._parts.get(setting, []), key=lambda part: int(part[0].positions[0]))


def negative_log_likelihood(parts: list[Part], temperature: float) -> float:
    """Return the sum of the queries' negative log-probabilities of their true class, with one query more."""
    total, anything, count = 0.0, 0.0, 0
    for logits, labels in parts:
        logs = log_softmax(logits / temperature, axis=1)
        total -= float(np.take_along_axis(logs, labels[:, None], axis=1).sum())
        anything -= float(logs.mean(axis=1).sum())
        count += labels.size
    return total + anything / count


def fit_temperature(parts: list[Part]) -> float | None:
    """Return the temperature that minimises the negative log-likelihood, or None without any query."""
    if not parts:
        return None
    # importing it takes long
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda log: negative_log_likelihood(parts, float(np.exp(log))),
        bounds=tuple(np.log(BOUNDS)),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(np.exp(found.x))


def calibration_error(parts: list[Part], temperature: float = 1.0, *, bins: int = BINS) -> float | None:
    """Return the expected calibration error in percent, or None without any query.

    Queries are put into bins of equal width by the probability of their most probable class. The error is the mean over
    queries of how far accuracy and mean probability of their bin lie apart.
    """
    if not parts:
        return None
    chosen, right = [], []
    for logits, labels in parts:
        logs = log_softmax(logits / temperature, axis=1)
        chosen.append(np.exp(logs.max(axis=1)).reshape(-1))
        right.append((logs.argmax(axis=1) == labels).reshape(-1))
    confidence, correct = np.concatenate(chosen), np.concatenate(right)
    place = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    sums = np.bincount(place, weights=correct - confidence, minlength=bins)
    return 100 * float(np.abs(sums).sum()) / len(confidence)


def calibrations(validation: QueryOutputs, test: QueryOutputs, shots: Sequence[int]) -> dict[str, dict[str, Any]]:
    """Fit a temperature and a threshold for each number of shots on validation tasks, and judge them on test tasks.

    Returns
    -------
    dict
        By setting: ``temperature``, ``ece_before`` and ``ece`` in percent, each None where there are no tasks for it,
        and what `mela.evaluation.unknown.thresholded` finds. Without a temperature, probabilities stay as they are, and
        `ece` is `ece_before`.
    """
    found = {}
    for setting in (f"{number}_shot" for number in shots):
        temperature, parts = fit_temperature(validation.logits(setting)), test.logits(setting)
        found[setting] = {
            "temperature": temperature,
            "ece_before": calibration_error(parts),
            "ece": calibration_error(parts, temperature or 1.0),
        } | thresholded(validation.cosines(setting), test.cosines(setting))
    return found
