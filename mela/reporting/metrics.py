"""Define what the metrics files of a run hold."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mela.errors import MelaError
from mela.io.store import read_json


class Metrics(BaseModel):
    """Check the keys that others read; there may be more."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)


class LabelMetrics(Metrics):
    """Hold the metrics of ``label``."""

    clusters: int
    tasks_clustered: float
    expected_ari: float | None = None
    task_classes_merged: int | None = None
    task_classes_not_merged: int | None = None
    task_classes_left_out: int | None = None
    remark: str | None = None


class Scores(Metrics):
    """Hold the scores of one kind of labels: without truth, only the number of clusters."""

    clusters: int


class TrueScores(Scores):
    """Hold the scores of one kind of labels with truth, without what only labels of tasks have."""

    true_classes: int
    purity: float
    ari: float


class KMeansScores(Metrics):
    """Hold the scores of K-means, beside the scores of labels of tasks in the benchmark."""

    ari: float
    purity: float


class TaskScores(TrueScores):
    """Hold the scores of labels of tasks with truth."""

    accuracy: float
    accuracy_all_tasks: float
    kmeans: KMeansScores | None = None


class AllScores(Metrics):
    """Hold the metrics of ``score_labels``, for each kind of labels that is not off, and nothing else."""

    model_config = ConfigDict(extra="forbid")
    merged: dict[str, Any] = Field(default_factory=dict)
    pruned: dict[str, Any] = Field(default_factory=dict)
    kmeans: dict[str, Any] = Field(default_factory=dict)


class Losses(Metrics):
    """Hold the two sides of Proposition 1."""

    task_loss: float
    global_loss: float


class RoundMetrics(Metrics):
    """Hold the metrics of a round of training; the first learns no merged labels, so that nothing is known of them."""

    clusters: int
    loss: float
    match: float | None = None
    pair_precision: float | None = None
    pair_precision_error: float | None = None
    expected_ari: float | None = None


class PretrainMetrics(Metrics):
    """Hold the metrics of ``pretrain``."""

    loss: float
    proposition1: Losses


class IntervalMetrics(Metrics):
    """Hold a mean and the half-width of its interval, in percent."""

    mean: float
    ci95: float = Field(ge=0)


class Calibration(Metrics):
    """Hold what validation tasks have fitted, and what test tasks say of it; see `mela.evaluation.calibration`."""

    temperature: float | None
    ece_before: float | None
    ece: float | None
    threshold: float | None = None
    refused: float | None = None
    found: float | None = None
    auroc: float | None = None


class Evaluation(Metrics):
    """Hold the metrics of ``evaluate`` by model and setting; see `mela.evaluation.accuracy.summarize`.

    With several data sets, `datasets` holds the same for each.
    """

    tasks: dict[str, int]
    accuracy: dict[str, dict[str, IntervalMetrics]]
    gain: dict[str, dict[str, IntervalMetrics]]
    to_oracle: dict[str, dict[str, IntervalMetrics]]
    calibration: dict[str, dict[str, Calibration]] = Field(default_factory=dict)
    datasets: "dict[str, Evaluation]" = Field(default_factory=dict)


def read_metrics(path: Path, kind: type[Metrics], *, may_be_off: bool = False) -> dict[str, Any]:
    """Read the content of a metrics file.

    Parameters
    ----------
    path : Path
    kind : type
        `LabelMetrics`, `Scores`, `AllScores`, `RoundMetrics`, `PretrainMetrics` or `Evaluation`.
    may_be_off : bool, default=False
        Whether the file may be empty, since labels or trainings can be switched off.

    Raises
    ------
    MelaError
        A key is missing, or its value is of another kind; names the key.
    """
    content = read_json(path)
    if may_be_off and not content:
        return content
    _require(path, kind, content)
    if kind is AllScores:
        for name in (name for name in AllScores.model_fields if name in content):
            without_tasks = name == "kmeans" and "true_classes" in content[name]
            _require(path, TrueScores if without_tasks else Scores, content[name], f"{name}.")
    if kind is Evaluation:
        settings = content["tasks"].keys()
        for key in ("accuracy", "gain", "to_oracle"):
            for name, found in content[key].items():
                if found.keys() != settings:
                    raise MelaError(
                        f"{path}: {key}.{name}: expected the settings {', '.join(settings) or 'none'}, got "
                        f"{', '.join(found) or 'none'}; rerun evaluate"
                    )
        measured, gains, differences = (set(content[key]) for key in ("accuracy", "gain", "to_oracle"))
        # without test tasks nothing was measured
        needed = gains | differences | ({"initial"} if settings else set())
        for key, lacking in {"accuracy": needed - measured, "gain": measured - {"initial"} - gains}.items():
            if lacking:
                raise MelaError(f"{path}: {key}: expected that of {', '.join(sorted(lacking))} too; rerun evaluate")
    return content


def _require(path: Path, kind: type[Metrics], content: dict[str, Any], prefix: str = "") -> None:
    if kind is Scores and content.keys() & {"true_classes", "accuracy"}:
        kind = TaskScores
    try:
        kind.model_validate(content, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = prefix + ".".join(map(str, first["loc"]))
        got = "none" if first["type"] == "missing" else repr(first["input"])[:50]
        raise MelaError(
            f"{path}: {key}: {first['msg'][0].lower()}{first['msg'][1:]}, got {got}; rerun the stage that makes it"
        ) from None
