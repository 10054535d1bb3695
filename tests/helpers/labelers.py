"""Tasks that labelers are fitted to."""

import numpy as np

Data = tuple[np.ndarray, np.ndarray, np.ndarray]


def tasks(seed: int, *, n_tasks: int = 40, shots: int = 5) -> Data:
    """Tasks with three of six classes each, whose centers are always the same."""
    centers = np.random.default_rng(1).normal(size=(6, 4)) * 4
    rng = np.random.default_rng(seed)
    truth = np.concatenate([rng.permutation(6)[:3] for _ in range(n_tasks)])
    X = centers[truth].repeat(shots, axis=0) + rng.normal(size=(3 * shots * n_tasks, 4))
    return X, np.tile([0, 1, 2], n_tasks).repeat(shots), np.arange(n_tasks).repeat(3 * shots)
