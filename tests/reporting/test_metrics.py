"""Metrics files of a run: what they have to hold, and what is said where they do not."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mela.errors import MelaError
from mela.reporting.metrics import (
    AllScores,
    Evaluation,
    LabelMetrics,
    Metrics,
    PretrainMetrics,
    RoundMetrics,
    read_metrics,
)
from mela.reporting.outcome import read_outcome
from tests.helpers.outcomes import LABELS, SCORES, UNKNOWN, evaluation

PRETRAIN = {"loss": 0.5, "precision": "float32", "proposition1": {"task_loss": 0.1, "global_loss": 1.5}}
RERUN = "rerun the stage that makes it"


def written(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def without(content: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Return a copy that lacks what a path of keys leads to."""
    first, *others = keys
    if others:
        return content | {first: without(content[first], *others)}
    return {name: value for name, value in content.items() if name != first}


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (LabelMetrics, LABELS["merged"]),
        (PretrainMetrics, PRETRAIN),
        (RoundMetrics, {"clusters": 600, "loss": 0.2, "precision": "float32"}),
        (AllScores, SCORES),
        (AllScores, UNKNOWN),
        (AllScores, {}),
        (Evaluation, evaluation()),
        (Evaluation, evaluation("initial", "pruned")),
        (Evaluation, evaluation("initial")),
        (Evaluation, evaluation(shots=())),
    ],
)
def test_what_stages_write_is_read_as_it_is(tmp_path: Path, kind: type[Metrics], content: dict[str, Any]) -> None:
    assert read_metrics(written(tmp_path / "metrics.json", content), kind) == content


EVALUATION = evaluation()


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        (AllScores, {"clusters": 64}, f"clusters: extra inputs are not permitted, got 64; {RERUN}"),
        (AllScores, {"merged": None}, f"merged: input should be a valid dictionary, got None; {RERUN}"),
        (AllScores, without(SCORES, "pruned", "clusters"), f"pruned.clusters: field required, got none; {RERUN}"),
        (AllScores, without(SCORES, "kmeans", "ari"), f"kmeans.ari: field required, got none; {RERUN}"),
        (AllScores, without(SCORES, "merged", "accuracy"), f"merged.accuracy: field required, got none; {RERUN}"),
        (PretrainMetrics, {}, f"loss: field required, got none; {RERUN}"),
        (
            Evaluation,
            without(EVALUATION, "accuracy", "pruned", "5_shot"),
            "accuracy.pruned: expected the settings 1_shot, 5_shot, got 1_shot; rerun evaluate",
        ),
        (
            Evaluation,
            without(EVALUATION, "gain", "merged", "1_shot"),
            "gain.merged: expected the settings 1_shot, 5_shot, got 5_shot; rerun evaluate",
        ),
        (
            Evaluation,
            EVALUATION | {"to_oracle": {"merged": {}}},
            "to_oracle.merged: expected the settings 1_shot, 5_shot, got none; rerun evaluate",
        ),
        (
            Evaluation,
            EVALUATION | {"tasks": {}},
            "accuracy.initial: expected the settings none, got 1_shot, 5_shot; rerun evaluate",
        ),
        (
            Evaluation,
            without(EVALUATION, "accuracy", "initial"),
            "accuracy: expected that of initial too; rerun evaluate",
        ),
        (
            Evaluation,
            without(without(EVALUATION, "accuracy", "merged"), "accuracy", "oracle"),
            "accuracy: expected that of merged, oracle too; rerun evaluate",
        ),
        (Evaluation, without(EVALUATION, "gain", "pruned"), "gain: expected that of pruned too; rerun evaluate"),
        (Evaluation, without(EVALUATION, "to_oracle"), f"to_oracle: field required, got none; {RERUN}"),
        (
            Evaluation,
            EVALUATION | {"gain": {"merged": {"1_shot": {"mean": 1.0, "ci95": -1.0}}}},
            f"gain.merged.1_shot.ci95: input should be greater than or equal to 0, got -1.0; {RERUN}",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, kind: type[Metrics], content: dict[str, Any], message: str) -> None:
    path = written(tmp_path / "metrics.json", content)
    with pytest.raises(MelaError, match=f"^{re.escape(f'{path}: {message}')}$"):
        read_metrics(path, kind)


@pytest.mark.parametrize(
    ("kind", "key"), [(LabelMetrics, "clusters"), (PretrainMetrics, "loss"), (RoundMetrics, "clusters")]
)
def test_only_labels_and_trainings_that_may_be_off_may_be_empty(tmp_path: Path, kind: type[Metrics], key: str) -> None:
    path = written(tmp_path / "metrics.json", {})
    assert read_metrics(path, kind, may_be_off=True) == {}
    with pytest.raises(MelaError, match=f"{key}: field required, got none"):
        read_metrics(path, kind)
    # and what is not empty has to be whole all the same
    written(path, {"precision": "float32"})
    with pytest.raises(MelaError, match=f"{key}: field required, got none"):
        read_metrics(path, kind, may_be_off=True)


@pytest.fixture
def files(tmp_path: Path) -> Callable[..., Any]:
    """Write the files of a run, and read them."""

    def read(labels: dict[str, Any], scores: dict[str, Any]) -> Any:
        inferred = {name: written(tmp_path / f"{name}.json", content) for name, content in labels.items()}
        found = written(tmp_path / "scores.json", scores), written(tmp_path / "evaluate.json", evaluation())
        return read_outcome(inferred, *found, "glyphs")

    return read


def test_a_run_has_what_its_files_hold_but_for_labels_that_are_off(files: Callable[..., Any]) -> None:
    both = files(LABELS, SCORES)
    assert (both.labels, both.scores, both.data) == (LABELS, SCORES, "glyphs")
    assert (both.true_classes, both.settings) == (80, ["1_shot", "5_shot"])
    one = files(LABELS | {"merged": {}}, without(SCORES, "merged"))
    assert (list(one.labels), one.true_classes) == (["pruned"], 80)
    assert files(LABELS, UNKNOWN).true_classes is None
    assert files({"merged": {}, "pruned": {}}, {}).true_classes is None
