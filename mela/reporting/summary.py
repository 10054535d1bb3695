"""The run in one table."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from mela.errors import MelaError
from mela.params import LabelerParams

Content = Mapping[str, Any]

NAMES = {
    "mela": "MeLa (inferred labels)",
    "mela_soft": "MeLa (inferred soft labels)",
    "kmeans": "pre-trained on K-means labels (ablation)",
    "oracle": "pre-trained on the true labels (oracle)",
}


def final_name(pretrain: Mapping[str, Any]) -> str:
    """What to call the final embedding, from the metrics of ``pretrain``."""
    return NAMES.get(pretrain["labels"], f"pre-trained on {pretrain['labels']} labels")


def summary_rows(
    label: Content, scores: Content, pretrain: Content, evaluation: Content, *, data: str | None = None
) -> list[tuple[str, str]]:
    """Names and values of the lines that a run ends with, from the stages' metrics.

    Parameters
    ----------
    label, scores, pretrain, evaluation : mapping
        Metrics of ``label``, ``score_labels``, ``pretrain`` and ``evaluate``, which
        `mela.reporting.metrics.read_metrics` has read and checked.
    data : str, optional
        What the figures are about.
    """
    rows = [("data", data)] if data else []
    rows += [("clusters found", _clusters(label, scores)), ("tasks clustered", f"{label['tasks_clustered']:.1f}%")]
    rows += _task_classes(label)
    if "accuracy" in scores:
        rows.append(
            ("clustering accuracy", f"{scores['accuracy']:.1f}% (all tasks: {scores['accuracy_all_tasks']:.1f}%)")
        )
        rows.append(("adjusted Rand index", f"{scores['ari']:.3f} (K-means: {scores['kmeans']['ari']:.3f})"))
    else:
        rows.append(("clustering accuracy", "not known: this data has no ground truth"))
    losses = pretrain["proposition1"]
    rows.append(("Proposition 1", f"{losses['task_loss']:.4f} <= {losses['global_loss']:.4f}"))
    if not evaluation["mela"]:
        rows.append(("few-shot accuracy", "not measured: there are fewer than two test tasks"))
    for setting in evaluation["mela"]:
        name = setting.replace("_", "-")
        rows.append((f"{name}: initial embedding", interval(evaluation["initial"][setting])))
        rows.append((f"{name}: {final_name(pretrain)}", interval(evaluation["mela"][setting])))
        rows.append((f"{name}: gain, paired", interval(evaluation["gain"][setting], sign="+")))
    return [*rows, ("remark", label["remark"])] if label.get("remark") else rows


def _task_classes(label: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the row about merged task classes, or none for metrics of a former version."""
    if label.get("task_classes_merged") is None:
        return []
    counts = f"{label['task_classes_merged']:,} merged, {label['task_classes_not_merged']:,} not merged with any other"
    left_out = label["task_classes_left_out"]
    return [("task classes", f"{counts}, {left_out:,} without a cluster" if left_out else counts)]


def data_name(overview: Mapping[str, Any]) -> str | None:
    """Return which data a run was about, from the content of ``results/metrics.json``; None where it does not say."""
    name = overview.get("data")
    return name if isinstance(name, str) else None


def headline(label: Content, scores: Content, pretrain: Content, evaluation: Content) -> str:
    """The run in one sentence, from the same metrics."""
    true = f" (there are {scores['true_classes']})" if "true_classes" in scores else ""
    found = f"{label['clusters']} classes{true} were found in tasks that were labelled independently"
    if not evaluation["mela"]:
        return f"{found}; there are too few test tasks to measure accuracy."
    setting = next(iter(evaluation["mela"]))
    before, after, gain = (evaluation[name][setting] for name in ("initial", "mela", "gain"))
    chosen = {"mela": "them", "mela_soft": "them"}.get(pretrain["labels"], f"{pretrain['labels']} labels")
    accuracy = f"{setting.replace('_', '-')} accuracy on {tested_on(known='true_classes' in scores)}"
    points = f"{gain['mean']:+.1f} ± {gain['ci95']:.1f} points, paired"
    if abs(gain["mean"]) <= gain["ci95"]:
        return (
            f"{found}; pre-training on {chosen} makes no clear difference to {accuracy}: {before['mean']:.1f}% before, "
            f"{after['mean']:.1f}% after ({points})."
        )
    verb = "takes" if gain["mean"] > 0 else "lowers"
    change = f"from {before['mean']:.1f}% to {after['mean']:.1f}% ({points})"
    return f"{found}; pre-training on {chosen} {verb} {accuracy} {change}."


def tested_on(*, known: bool) -> str:
    """Say what is new about the test tasks.

    Parameters
    ----------
    known : bool
        Whether the true classes are known. Then they are split, and test tasks have classes of their own. Data that
        comes as tasks is split by tasks, and nobody knows which classes these are of.
    """
    return "new classes" if known else "new tasks (their classes may occur in training)"


def _clusters(label: Mapping[str, Any], scores: Mapping[str, Any]) -> str:
    """Say what over- and under-clustering mean beside the number, since more clusters than classes is no failure."""
    found = label["clusters"]
    if "true_classes" not in scores:
        return f"{found} (true classes not known)"
    true = scores["true_classes"]
    if found > true:
        return f"{found} for {true} true classes (over-clustered: some classes are split)"
    if found < true:
        return f"{found} for {true} true classes (under-clustered: some classes share a cluster)"
    return f"{found} for {true} true classes"


def interval(values: Mapping[str, float], sign: str = "") -> str:
    """Mean and half width of its 95% interval."""
    return f"{values['mean']:{sign}.2f} ± {values['ci95']:.2f}"


def share(percent: float, error: float | None) -> str | None:
    """Return a share and its standard error; None where the 95% interval is about as wide as all that it could be."""
    if error is None:
        return f"{percent:.1f}%"
    return f"{percent:.1f}% ± {error:.1f} (standard error)" if 4 * error < 100 else None


def markdown(rows: list[tuple[str, str]]) -> str:
    """The rows as a markdown table."""
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]) + "\n"


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
    rows = []
    for setting in evaluation["mela"]:
        for key, name in {"initial": "initial embedding", "mela": final_name(pretrain)}.items():
            mean, half = evaluation[key][setting]["mean"], evaluation[key][setting]["ci95"]
            rows.append([f"{setting.replace('_', '-')}: {name}", mean, mean - half, mean + half])
    return pd.DataFrame(rows, columns=["name", "mean", "low", "high"])


def sweep_row(settings: LabelerParams, label: Content, scores: Content, evaluation: Content) -> pd.DataFrame:
    """One row, which makes a point of a sweep: the labeler's parameters beside what they lead to.

    Parameters
    ----------
    settings : LabelerParams
    label, scores, evaluation : mapping
        As in `overview`; what is not known (without truth, without test tasks) is empty.
    """
    row: dict[str, Any] = {"q": settings.q, "n_clusters": settings.n_clusters}
    row |= {"method": "merge" if settings.merge else "prune"}
    row |= {"clusters": label["clusters"], "tasks_clustered": label["tasks_clustered"]}
    row |= {"pair_precision": label.get("pair_precision"), "ari": scores.get("ari")}
    row |= {"accuracy": next((final["mean"] for final in evaluation["mela"].values()), None)}
    return pd.DataFrame([row])
