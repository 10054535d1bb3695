r"""Tell images that belong to none of the classes, by how near they are to the nearest class mean.

The score of an image x is the largest cosine between its feature and the mean of the support features of a class,

.. math:: s(x) = \max_k \cos(\psi(x), \mu_k),

and x counts as unknown below a threshold. Each query of a validation task is known to its own class, and unknown to the
other classes of its task, so that no label of another task is needed. The threshold refuses 5% of the known queries.

On validation tasks of the glyphs this score parts known from unknown queries better than the probabilities and logits
of the logistic head do; see ``docs/guides/using-the-model.md``.
"""

from collections.abc import Sequence

import numpy as np

from mela.data.array_types import Features, Floats, Ints

# logits or cosines (t, K, q) of tasks of one shape, and the labels (t, q) of their queries
Part = tuple[Floats, Ints]

REFUSED = 0.05


def class_cosines(support: Features, labels: Ints, query: Features, ways: int) -> Floats:
    """Return the cosines (t, K, q) between features of queries and the means of classes.

    Parameters
    ----------
    support : float32 (t, n, m)
        Features of length 1.
    labels : int64 (t, n)
    query : float32 (t, q, m)
        Features of length 1.
    ways : int
        K.
    """
    own = (labels[:, None] == np.arange(ways)[:, None]).astype(support.dtype)
    means = own @ support
    lengths = np.linalg.norm(means, axis=2, keepdims=True)
    cosines: Floats = (means / np.maximum(lengths, np.finfo(np.float32).tiny)) @ query.swapaxes(1, 2)
    return cosines


def known_and_unknown(parts: Sequence[Part]) -> tuple[Floats, Floats]:
    """Return the scores of queries among the classes of their task, and without their own class.

    Parameters
    ----------
    parts : sequence of tuple
        Cosines (t, K, q) and labels (t, q).
    """
    known, unknown = [np.empty(0)], [np.empty(0)]
    for cosines, labels in parts:
        known.append(cosines.max(axis=1).reshape(-1))
        own = labels[:, None] == np.arange(cosines.shape[1])[:, None]
        unknown.append(np.where(own, -np.inf, cosines).max(axis=1).reshape(-1))
    return np.concatenate(known), np.concatenate(unknown)


def thresholded(validation: Sequence[Part], test: Sequence[Part]) -> dict[str, float | None]:
    """Fit a threshold on validation tasks, and judge it on test tasks.

    Parameters
    ----------
    validation, test : sequence of tuple
        As in `known_and_unknown`.

    Returns
    -------
    dict
        ``threshold``, a cosine; ``refused`` and ``found``, the share in percent of known and of unknown queries of test
        tasks that are below it; ``auroc`` of these tasks, the probability that a known query has a higher score than an
        unknown one. Each is None where there are no tasks for it.
    """
    chosen, _ = known_and_unknown(validation)
    known, unknown = known_and_unknown(test)
    found: dict[str, float | None] = dict.fromkeys(("threshold", "refused", "found"))
    found["auroc"] = auroc(known, unknown) if len(known) else None
    if len(chosen):
        found["threshold"] = threshold = float(np.quantile(chosen, REFUSED))
        if len(known):
            found |= {"refused": below(known, threshold), "found": below(unknown, threshold)}
    return found


def below(scores: Floats, threshold: float) -> float:
    """Return the share of scores below a threshold, in percent."""
    return 100 * float((scores < threshold).mean())


def auroc(known: Floats, unknown: Floats) -> float:
    """Return the probability that a known query has a higher score than an unknown one; ties count half."""
    # importing it takes long
    from scipy.stats import rankdata

    ranks = rankdata(np.concatenate([known, unknown]))[: len(known)]
    return float((ranks.sum() - len(known) * (len(known) + 1) / 2) / (len(known) * len(unknown)))
