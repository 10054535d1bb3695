"""What the metrics files of a run hold."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mela.errors import MelaError
from mela.io.store import read_json


class Metrics(BaseModel):
    """Keys that are read by others; there may be more."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)


class LabelMetrics(Metrics):
    """Of ``label``."""

    clusters: int
    tasks_clustered: float
    task_classes_merged: int | None = None
    task_classes_not_merged: int | None = None
    task_classes_left_out: int | None = None
    remark: str | None = None


class KMeansScores(Metrics):
    """Of K-means, in ``score_labels``."""

    ari: float
    purity: float


class Scores(Metrics):
    """Of ``score_labels``: where there is no truth, the number of clusters alone."""

    clusters: int


class TrueScores(Scores):
    """Of ``score_labels`` where there is truth."""

    true_classes: int
    accuracy: float
    accuracy_all_tasks: float
    purity: float
    ari: float
    kmeans: KMeansScores


class Losses(Metrics):
    """The two sides of Proposition 1."""

    task_loss: float
    global_loss: float


class PretrainMetrics(Metrics):
    """Of ``pretrain``."""

    labels: str
    proposition1: Losses


class Interval(Metrics):
    """A mean and the half width of its interval, in percent."""

    mean: float
    ci95: float = Field(ge=0)


class Calibration(Metrics):
    """Of probabilities: the temperature, and the expected calibration error in percent before and with it."""

    temperature: float | None
    ece_before: float | None
    ece: float | None


class Evaluation(Metrics):
    """Of ``evaluate``: by setting, such as ``5_shot``."""

    initial: dict[str, Interval]
    mela: dict[str, Interval]
    gain: dict[str, Interval]
    tasks: dict[str, int]
    calibration: dict[str, dict[str, Calibration]] = Field(default_factory=dict)


def read_metrics(path: Path, kind: type[Metrics]) -> dict[str, Any]:
    """The content of a metrics file.

    Parameters
    ----------
    path : Path
    kind : type
        `LabelMetrics`, `Scores`, `PretrainMetrics` or `Evaluation`.

    Raises
    ------
    MelaError
        A key is missing, or its value is of another kind; names the key.
    """
    content = read_json(path)
    if kind is Scores and content.keys() & {"true_classes", "accuracy"}:
        kind = TrueScores
    try:
        kind.model_validate(content, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        got = "none" if first["type"] == "missing" else repr(first["input"])[:50]
        raise MelaError(
            f"{path}: {key}: {first['msg'][0].lower()}{first['msg'][1:]}, got {got}; rerun the stage that makes it"
        ) from None
    if kind is Evaluation:
        for name in ("initial", "gain", "tasks"):
            if content[name].keys() != content["mela"].keys():
                raise MelaError(
                    f"{path}: {name}: expected the settings {', '.join(content['mela']) or 'none'}, got "
                    f"{', '.join(content[name]) or 'none'}; rerun evaluate"
                )
    return content
