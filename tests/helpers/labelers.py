"""Tasks that labelers are fitted to."""

import numpy as np

Data = tuple[np.ndarray, np.ndarray, np.ndarray]


def tasks(
    seed: int, *, n_classes: int = 6, ways: int = 3, n_tasks: int = 40, shots: int = 5, m: int = 4, distance: float = 4
) -> Data:
    """Tasks with some of the classes each, whose centers are always the same."""
    centers = np.random.default_rng(1).normal(size=(n_classes, m)) * distance
    rng = np.random.default_rng(seed)
    truth = np.concatenate([rng.permutation(n_classes)[:ways] for _ in range(n_tasks)])
    X = centers[truth].repeat(shots, axis=0) + rng.normal(size=(ways * shots * n_tasks, m))
    return X, np.tile(np.arange(ways), n_tasks).repeat(shots), np.arange(n_tasks).repeat(ways * shots)
