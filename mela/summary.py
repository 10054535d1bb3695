"""The run in one table."""

from collections.abc import Mapping
from typing import Any

from mela.errors import MelaError

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
    label: Mapping[str, Any],
    scores: Mapping[str, Any],
    pretrain: Mapping[str, Any],
    evaluation: Mapping[str, Any],
    *,
    data: str | None = None,
) -> list[tuple[str, str]]:
    """Names and values of the lines that a run ends with, from the stages' metrics.

    Parameters
    ----------
    label, scores, pretrain, evaluation : mapping
        Contents of the metrics files of ``label``, ``score_labels``, ``pretrain`` and ``evaluate``.
    data : str, optional
        What the figures are about.
    """
    for name, metrics, key in [
        ("label", label, "tasks_clustered"),
        ("score_labels", scores, "clusters"),
        ("pretrain", pretrain, "proposition1"),
        ("evaluate", evaluation, "mela"),
    ]:
        if key not in metrics:
            raise MelaError(f"metrics of {name}: expected the key {key!r}, found {sorted(metrics)}; rerun {name}")
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


def headline(
    label: Mapping[str, Any], scores: Mapping[str, Any], pretrain: Mapping[str, Any], evaluation: Mapping[str, Any]
) -> str:
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
