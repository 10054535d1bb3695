"""Samples of people who have several tasks each."""

import numpy as np

WAYS, SAMPLES = 5, 12
Given = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def people(seed: int, *, persons: int = 5, tasks: int = 30, shift: float = 2.0, own: float = 0.3) -> Given:
    """X, y, groups, sources and the true class of each task class, of persons with several tasks."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(40, 24))
    shifts = rng.normal(size=(persons, 24)) * shift * (np.arange(24) < 6)
    versions = rng.normal(size=(persons, 40, 24)) * own
    truth = np.concatenate([rng.permutation(40)[:WAYS] for _ in range(persons * tasks)])
    person = np.arange(persons).repeat(tasks * WAYS)
    means = centers[truth] + shifts[person] + versions[person, truth]
    X = means.repeat(SAMPLES, axis=0) + rng.normal(size=(len(truth) * SAMPLES, 24)) * 0.7
    y = np.tile(np.arange(WAYS).repeat(SAMPLES), persons * tasks)
    return X, y, np.arange(persons * tasks).repeat(WAYS * SAMPLES), person.repeat(SAMPLES), truth
