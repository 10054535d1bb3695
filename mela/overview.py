"""The few figures of a run by which DVC compares runs."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from mela.errors import MelaError
from mela.params import LabelerParams
from mela.summary import final_name

Content = Mapping[str, Any]

# whose figures these are; all others are of evaluate
STAGES = {"clusters": "label", "tasks_clustered": "label", "true_classes": "score_labels", "ari": "score_labels"}


def overview(label: Content, scores: Content, evaluation: Content, *, data: str) -> dict[str, Any]:
    """Number and quality of the labels, and accuracy with the gain over the initial embedding.

    Parameters
    ----------
    label, scores, evaluation : mapping
        Contents of the metrics files of ``label``, ``score_labels`` and ``evaluate``.
    data : str
        What the figures are about.

    Returns
    -------
    dict
        ``data``; ``clusters``; ``true_classes`` and ``ari`` where there is truth; ``tasks_clustered`` in percent; and
        for every setting, such as ``5_shot``, what is measured on test tasks, in percent: ``initial``, ``final``, their
        paired difference ``gain``, the half width ``gain_ci95`` of its 95% interval, and ``ece``, the expected
        calibration error of the final embedding's probabilities, where they were calibrated.
    """
    found = {"data": data, "clusters": label["clusters"], "tasks_clustered": label["tasks_clustered"]}
    found |= {name: scores[name] for name in ("true_classes", "ari") if name in scores}
    for setting, final in evaluation["mela"].items():
        gain = evaluation["gain"][setting]
        found[setting] = {
            "initial": evaluation["initial"][setting]["mean"],
            "final": final["mean"],
            "gain": gain["mean"],
            "gain_ci95": gain["ci95"],
        }
        calibrated = evaluation.get("calibration", {}).get("mela", {}).get(setting)
        if calibrated and calibrated["temperature"] is not None and calibrated["ece"] is not None:
            found[setting]["ece"] = calibrated["ece"]
    return found


def require_report(kept: Content, label: Content, scores: Content, evaluation: Content, *, where: str) -> None:
    """Raise MelaError if stages have run again since the report, which leaves results of several runs side by side.

    Parameters
    ----------
    kept : mapping
        What `overview` returned when the report was made. Keys that a former version did not have are passed over.
    label, scores, evaluation : mapping
        As in `overview`, as they are now.
    where : str
        What the error calls the file with `kept`.
    """
    now = overview(label, scores, evaluation, data="")
    changed = set()
    for key in (kept.keys() | now.keys()) - {"data"}:
        old, new = kept.get(key), now.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            same = all(old[name] == new[name] for name in old.keys() & new.keys())
        else:
            same = old == new
        if not same:
            changed.add(STAGES.get(key, "evaluate"))
    if changed:
        names = ", ".join(name for name in ("label", "score_labels", "evaluate") if name in changed)
        raise MelaError(
            f"{where}: the report is of another run than the metrics of {names}, so one table would mix them; finish "
            "the run, with `dvc repro` or `mela run`"
        )


def accuracy_table(evaluation: Content, pretrain: Content) -> pd.DataFrame:
    """Accuracies on test tasks as a table: ``name``, ``mean``, and the ends ``low`` and ``high`` of the 95% interval.

    Parameters
    ----------
    evaluation, pretrain : mapping
        Contents of the metrics files of ``evaluate`` and ``pretrain``.
    """
    columns = ["name", "mean", "low", "high"]
    rows = []
    for setting in evaluation["mela"]:
        for key, name in {"initial": "initial embedding", "mela": final_name(pretrain)}.items():
            mean, half = evaluation[key][setting]["mean"], evaluation[key][setting]["ci95"]
            rows.append([f"{setting.replace('_', '-')}: {name}", mean, mean - half, mean + half])
    return pd.DataFrame(rows, columns=columns)


def sweep_row(settings: LabelerParams, label: Content, scores: Content, evaluation: Content) -> pd.DataFrame:
    """One row, which makes a point of a sweep: the labeler's parameters beside what they lead to.

    Parameters
    ----------
    settings : LabelerParams
    label, scores, evaluation : mapping
        As in `overview`; what is not known (without truth, without test tasks) is empty.
    """
    row: dict[str, Any] = {
        "q": settings.q,
        "n_clusters": settings.n_clusters,
        "method": "merge" if settings.merge else "prune",
    }
    row |= {"clusters": label["clusters"], "tasks_clustered": label["tasks_clustered"]}
    row |= {"pair_precision": label.get("pair_precision"), "ari": scores.get("ari")}
    row |= {"accuracy": next((final["mean"] for final in evaluation["mela"].values()), None)}
    return pd.DataFrame([row])
