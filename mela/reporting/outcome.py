"""Collect what a run has found: the metrics of its stages."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mela.errors import MelaError
from mela.reporting.metrics import AllScores, Evaluation, LabelMetrics, read_metrics

Content = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Hold what a run has found, as `mela.reporting.metrics.read_metrics` reads it.

    Attributes
    ----------
    labels : mapping of str to mapping
        Metrics of the stages that infer labels, by the name of the labels; without those that are off.
    scores : mapping
        Metrics of ``score_labels``, by the name of the labels.
    evaluation : mapping
        Metrics of ``evaluate``.
    data : str or None
        What the figures are about.
    """

    labels: Mapping[str, Content]
    scores: Content
    evaluation: Content
    data: str | None = None

    @property
    def true_classes(self) -> int | None:
        """Number of true classes, if it is known."""
        return next((found["true_classes"] for found in self.scores.values() if "true_classes" in found), None)

    @property
    def settings(self) -> list[str]:
        """Settings that were measured on two test tasks or more, such as ``5_shot``."""
        return list(self.evaluation["tasks"])


def require_used(outcome: Outcome, used: str) -> None:
    """Raise MelaError unless the labels in use were inferred, and trained on if that was measured."""
    if used not in outcome.labels or (outcome.settings and used not in outcome.evaluation["accuracy"]):
        known = outcome.labels.keys() & outcome.evaluation["accuracy"].keys()
        raise MelaError(
            f"use: expected labels that this run inferred and trained on ({', '.join(sorted(known)) or 'none'}), got "
            f"{used}; rerun the stages that make them, or use others"
        )


def read_outcome(labels: Mapping[str, Path], scores: Path, evaluation: Path, data: str | None = None) -> Outcome:
    """Read metrics files.

    Parameters
    ----------
    labels : mapping of str to Path
        Metrics of the stages that infer labels, by the name of the labels; empty files are of labels that are off.
    scores, evaluation : Path
        Metrics of ``score_labels`` and ``evaluate``.
    data : str, optional
        What the figures are about.

    Raises
    ------
    MelaError
        See `mela.reporting.metrics.read_metrics`.
    """
    inferred = {name: read_metrics(path, LabelMetrics, may_be_off=True) for name, path in labels.items()}
    return Outcome(
        labels={name: found for name, found in inferred.items() if found},
        scores=read_metrics(scores, AllScores),
        evaluation=read_metrics(evaluation, Evaluation),
        data=data,
    )
