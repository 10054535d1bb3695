"""Summarise the run in tables: what was measured of each embedding, and what is known of its labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from mela.errors import MelaError
from mela.params import LabelerParams
from mela.reporting.outcome import Content, Outcome

# the labels that embeddings learned; `pruned` are those of the paper's Algorithm 2
NAMES = {
    "initial": "none (initial)",
    "merged": "MeLa, merged",
    "merged_soft": "MeLa, merged, soft",
    "pruned": "MeLa, pruned",
    "kmeans": "K-means",
    "oracle": "true labels",
}

TASK_CLASSES = ("task_classes_merged", "task_classes_not_merged", "task_classes_left_out")


@dataclass(frozen=True, kw_only=True)
class Table:
    """Hold a table of words, and its text when it has no rows."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]] = field(default_factory=list)
    empty: str = ""


def accuracies(outcome: Outcome) -> Table:
    """Return each embedding's accuracies by setting, and paired differences to the initial one and to true labels."""
    found, rows = outcome.evaluation, []
    for setting in outcome.settings:
        for name, known in found["accuracy"].items():
            gain, less = (interval(found[key].get(name, {}).get(setting), sign="+") for key in ("gain", "to_oracle"))
            rows.append((setting.replace("_", "-"), NAMES.get(name, name), interval(known[setting]), gain, less))
    columns = ("setting", "labels learned", "accuracy, %", "over initial", "over true labels")
    empty = "few-shot accuracy was not measured: there are fewer than two test tasks"
    return Table(title="Accuracy on test tasks", columns=columns, rows=rows, empty=empty)


def accuracies_by_dataset(outcome: Outcome) -> Table:
    """Return each embedding's accuracies by setting for each of several data sets; no rows if there is one."""
    found, rows = outcome.evaluation.get("datasets", {}), []
    for setting in outcome.settings if found else ():
        for name, known in outcome.evaluation["accuracy"].items():
            of_each = [interval(own["accuracy"].get(name, {}).get(setting)) for own in found.values()]
            rows.append((setting.replace("_", "-"), NAMES.get(name, name), *of_each, interval(known[setting])))
    columns = ("setting", "labels learned", *found, "all tasks")
    return Table(title="Accuracy on test tasks of each data set", columns=columns, rows=rows)


def labels(outcome: Outcome) -> Table:
    """Return what is known of each kind of labels; without truth there is no accuracy and no adjusted Rand index."""
    rows = []
    for name, scores in outcome.scores.items():
        found = outcome.labels.get(name, {})
        true = f" for {scores['true_classes']}" if "true_classes" in scores else ""
        shares = [scores.get("accuracy"), found.get("tasks_clustered")]
        accuracy, clustered = ("" if value is None else f"{value:.1f}" for value in shares)
        ari = f"{scores['ari']:.3f}" if "ari" in scores else ""
        rows.append((NAMES[name], f"{scores['clusters']}{true}", accuracy, ari, clustered))
    columns = ("labels", "clusters for classes", "accuracy, %", "ARI", "tasks clustered, %")
    return Table(title="Labels", columns=columns, rows=rows, empty="no labels were inferred")


def tables(outcome: Outcome) -> list[Table]:
    """Return what is known of a run: accuracies, those of each data set if there are several, and labels."""
    by_dataset = accuracies_by_dataset(outcome)
    return [accuracies(outcome), *([by_dataset] if by_dataset.rows else []), labels(outcome)]


def remarks(outcome: Outcome) -> list[str]:
    """Return what a reader has to know beside the tables, a line each."""
    found = [] if outcome.true_classes else ["the quality of labels is not known: this data has no ground truth"]
    for name, known in outcome.labels.items():
        if known.get("task_classes_merged") is not None:
            counts = f"{known['task_classes_merged']:,} of {sum(known[key] for key in TASK_CLASSES):,} task classes"
            alone, left_out = known["task_classes_not_merged"], known["task_classes_left_out"]
            found.append(f"{NAMES[name]}: {counts} share their class; {alone:,} are alone, {left_out:,} have none")
        if known.get("expected_ari") is not None:
            found.append(f"{NAMES[name]}: the ARI is estimated to be {known['expected_ari']:.2f}, without the truth")
        found += [f"{NAMES[name]}: {known['remark']}"] if "remark" in known else []
    return found


def data_name(overview: Mapping[str, Any]) -> str | None:
    """Return a run's data set from the content of ``results/metrics.json``; None if it does not say."""
    name = overview.get("data")
    return name if isinstance(name, str) else None


def headline(outcome: Outcome, used: str, *, new_classes: bool) -> str:
    """Summarise the run in one sentence, by the labels in use; `new_classes` is as `tested_on` takes it."""
    true = outcome.true_classes
    classes = f"{outcome.labels[used]['clusters']} classes" + (f" (there are {true})" if true else "")
    found = f"{classes} were found in tasks that were labelled independently"
    if not outcome.settings:
        return f"{found}; there are too few test tasks to measure accuracy."
    setting, measured = outcome.settings[0], outcome.evaluation
    before, after = (measured["accuracy"][name][setting]["mean"] for name in ("initial", used))
    gain = measured["gain"][used][setting]
    accuracy = f"{setting.replace('_', '-')} accuracy on {tested_on(new_classes=new_classes)}"
    points = f"{gain['mean']:+.1f} ± {gain['ci95']:.1f} points, paired"
    best = measured["accuracy"].get("oracle")
    limit = f"; true labels reach {best[setting]['mean']:.1f}%" if best else ""
    if abs(gain["mean"]) <= gain["ci95"]:
        return (
            f"{found}; pre-training on them makes no clear difference to {accuracy}: {before:.1f}% before, "
            f"{after:.1f}% after ({points}){limit}."
        )
    verb = "takes" if gain["mean"] > 0 else "lowers"
    return f"{found}; pre-training on them {verb} {accuracy} from {before:.1f}% to {after:.1f}% ({points}){limit}."


def tested_on(*, new_classes: bool) -> str:
    """Say what is new about the test tasks.

    Parameters
    ----------
    new_classes : bool
        Whether tasks are drawn from true classes. Then these are split, and test tasks have classes of their own. Data
        that comes as tasks is split by tasks, whatever classes these are of.
    """
    return "new classes" if new_classes else "new tasks (their classes may occur in training)"


def interval(values: Mapping[str, float] | None, sign: str = "") -> str:
    """Format a mean and the half-width of its 95% interval; nothing for None."""
    return "" if values is None else f"{values['mean']:{sign}.2f} ± {values['ci95']:.2f}"


def share(percent: float, error: float | None) -> str | None:
    """Format a share and its standard error; None if its 95% interval is about as wide as the whole range."""
    if error is None:
        return f"{percent:.1f}%"
    return f"{percent:.1f}% ± {error:.1f} (standard error)" if 4 * error < 100 else None


def rounds_table(rounds: Mapping[str, Content]) -> Table:
    """Return what each round of training learned, without truth, in the order of `rounds`; none if all are off.

    Parameters
    ----------
    rounds : mapping of str to mapping
        Metrics of the rounds that are on (`mela.reporting.metrics.RoundMetrics`), by their name.
    """
    rows = []
    for name, found in rounds.items():
        known = "pair_precision" in found
        precise = (known and share(found["pair_precision"], found.get("pair_precision_error"))) or ""
        match = f"{found['match']:.3f}" if found.get("match") is not None else ""
        agreement = f"{found['expected_ari']:.2f}" if found.get("expected_ari") is not None else ""
        rows.append((name, f"{found['clusters']:,}", precise, match, agreement, f"{found['loss']:.4f}"))
    columns = ("round", "classes it learned", "estimated precision", "match", "expected ARI", "loss at the end")
    return Table(title="Rounds of training before merging", columns=columns, rows=rows, empty="no round is on")


def markdown(table: Table) -> str:
    """Return a table in markdown, or its text when it has no rows."""
    if not table.rows:
        return f"{table.empty}\n"
    lines = [table.columns, ("---",) * len(table.columns), *table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def overview(outcome: Outcome) -> dict[str, Any]:
    """Return the number and quality of the labels, and what they are worth in accuracy.

    Returns
    -------
    dict
        ``data``, ``true_classes`` where they are known, and for every embedding, by the labels that it learned, what is
        known of these (``clusters``, ``tasks_clustered``, ``accuracy``, ``ari``) and what is measured on test tasks in
        every setting, such as ``5_shot``: ``mean``, ``ci95``, the paired ``gain`` over the initial embedding, the
        paired difference ``to_oracle``, ``ece``, the expected calibration error of its probabilities, and with several
        data sets ``datasets``, the mean of each; all shares are in percent.
    """
    measured = outcome.evaluation
    found: dict[str, Any] = {"data": outcome.data}
    if outcome.true_classes is not None:
        found["true_classes"] = outcome.true_classes
    for name in {**measured["accuracy"], **outcome.scores}:
        # scores tell the same of the labels, unless they are of another run
        about = {**outcome.scores.get(name, {}), **outcome.labels.get(name, {})}
        known = ("clusters", "tasks_clustered", "accuracy", "ari")
        found[name] = {key: about[key] for key in known if about.get(key) is not None}
        for setting, accuracy in measured["accuracy"].get(name, {}).items():
            found[name][setting] = {key: accuracy[key] for key in ("mean", "ci95")}
            for key in ("gain", "to_oracle"):
                if name in measured[key]:
                    found[name][setting][key] = measured[key][name][setting]["mean"]
            calibrated = measured.get("calibration", {}).get(name, {}).get(setting)
            if calibrated and calibrated["temperature"] is not None and calibrated["ece"] is not None:
                found[name][setting]["ece"] = calibrated["ece"]
            for dataset, own in measured.get("datasets", {}).items():
                if setting in own["accuracy"].get(name, {}):
                    of_each = found[name][setting].setdefault("datasets", {})
                    of_each[dataset] = own["accuracy"][name][setting]["mean"]
    return found


def require_report(kept: Content, outcome: Outcome, *, where: str) -> None:
    """Raise MelaError if stages have run since the report, so that results of several runs are mixed.

    Parameters
    ----------
    kept : mapping
        What `overview` returned when the report was made.
    outcome : Outcome
        Present outcome.
    where : str
        What the error calls the file with `kept`.
    """
    now = overview(outcome)
    changed = sorted(key for key in (kept.keys() | now.keys()) - {"data"} if kept.get(key) != now.get(key))
    if changed:
        raise MelaError(
            f"{where}: the report is of another run than the metrics of {', '.join(changed)}, so one table would mix "
            "them; finish the run, with `dvc repro` or `mela run`"
        )


def accuracy_table(evaluation: Content) -> pd.DataFrame:
    """Return accuracies on test tasks as a table: ``name``, ``mean``, and ``low`` and ``high``, the 95% interval."""
    rows = []
    for setting in evaluation["tasks"]:
        for name, known in evaluation["accuracy"].items():
            mean, half = known[setting]["mean"], known[setting]["ci95"]
            rows.append([f"{setting.replace('_', '-')}: {NAMES.get(name, name)}", mean, mean - half, mean + half])
    return pd.DataFrame(rows, columns=["name", "mean", "low", "high"])


def sweep_row(settings: LabelerParams, outcome: Outcome) -> pd.DataFrame:
    """Return one row, a point of a sweep: the parameters of Algorithm 2 beside their results.

    What is not known (labels that are off, no truth, no test tasks) is empty.
    """
    found, scores = (content.get("pruned", {}) for content in (outcome.labels, outcome.scores))
    row: dict[str, Any] = {"q": settings.q, "n_clusters": settings.n_clusters}
    row |= {key: found.get(key) for key in ("clusters", "tasks_clustered", "pair_precision")} | {
        "ari": scores.get("ari")
    }
    measured = outcome.evaluation["accuracy"].get("pruned", {})
    row |= {"accuracy": next((known["mean"] for known in measured.values()), None)}
    return pd.DataFrame([row])
