"""What a run has found, as its stages write it, without running them."""

from collections.abc import Mapping
from typing import Any

from mela.reporting.outcome import Outcome

Found = dict[str, dict[str, dict[str, float]]]

LABELS: dict[str, dict[str, Any]] = {
    "merged": {"clusters": 82, "tasks_clustered": 98.64, "pair_precision": 99.0},
    "pruned": {"clusters": 64, "tasks_clustered": 97.5, "pair_precision": 91.0},
}
SCORES: dict[str, dict[str, Any]] = {
    "merged": {
        "clusters": 82,
        "true_classes": 80,
        "accuracy": 99.46,
        "accuracy_all_tasks": 99.4,
        "purity": 99.0,
        "ari": 0.98765,
    },
    "pruned": {
        "clusters": 64,
        "true_classes": 80,
        "accuracy": 92.0,
        "accuracy_all_tasks": 91.5,
        "purity": 91.0,
        "ari": 0.91,
    },
    "kmeans": {"clusters": 80, "true_classes": 80, "purity": 60.0, "ari": 0.4321},
}
UNKNOWN = {name: {"clusters": scores["clusters"]} for name, scores in SCORES.items()}


def interval(mean: float, ci95: float) -> dict[str, float]:
    return {"mean": mean, "ci95": ci95}


def settings(one: tuple[float, float], five: tuple[float, float]) -> dict[str, dict[str, float]]:
    return {"1_shot": interval(*one), "5_shot": interval(*five)}


ACCURACY: Found = {
    "initial": settings((60.204, 0.806), (75.6, 0.5)),
    "merged": settings((66.0, 1.5), (75.5, 0.25)),
    "pruned": settings((62.0, 0.8), (74.0, 0.5)),
    "oracle": settings((67.5, 0.5), (80.0, 0.5)),
}
GAIN: Found = {
    "merged": settings((5.796, 0.3), (-0.1, 0.25)),
    "pruned": settings((1.796, 0.3), (-1.6, 0.25)),
    "oracle": settings((7.296, 0.4), (4.4, 0.3)),
}
TO_ORACLE: Found = {
    "merged": settings((-1.5, 0.125), (-4.5, 0.2)),
    "pruned": settings((-5.5, 0.7), (-6.0, 0.3)),
}


def evaluation(*models: str, shots: tuple[str, ...] = ("1_shot", "5_shot"), **changes: Any) -> dict[str, Any]:
    """Return metrics of ``evaluate`` about some models, by default all, in some settings."""
    chosen = models or tuple(ACCURACY)

    def of(table: Mapping[str, Any]) -> Found:
        return {name: {key: table[name][key] for key in shots} for name in chosen if name in table}

    differences = TO_ORACLE if "oracle" in chosen else {}
    found = {"accuracy": of(ACCURACY), "gain": of(GAIN), "to_oracle": of(differences)}
    return {"tasks": dict.fromkeys(shots, 600)} | found | changes


def outcome(**changes: Any) -> Outcome:
    return Outcome(**{"labels": LABELS, "scores": SCORES, "evaluation": evaluation()} | changes)
