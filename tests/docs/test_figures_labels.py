"""The tables of docs/method/labels.md, and what it says of passes, are computed anew from the results."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from studies.labels.tables import UNEVEN, lines
from studies.labels.weights import BOUNDS
from tests.helpers.figures import on_paper, soft_gains
from tests.helpers.project import ROOT

PAGE = "docs/method/labels.md"
Row = list[str]


def page() -> str:
    return (ROOT / PAGE).read_text(encoding="utf-8")


def shown(header: str, number: int = 0) -> list[Row]:
    """Cells of the rows of a table, found by how it begins and, where several begin like that, its number."""
    text = re.split(rf"^{re.escape(header)}", page(), flags=re.MULTILINE)[number + 1].partition("\n\n")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]]


def results(name: str) -> pd.DataFrame:
    return pd.read_csv(ROOT / "studies/results" / name)


def of_seeds(seeds: list[int]) -> list[Row]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in [*lines(seeds)][2:]]


def test_the_tables_of_merging_beside_pruning() -> None:
    header = "| data | tasks | embedding, val. accuracy |"
    assert shown(header) == of_seeds([0, 1, 2])
    assert shown(header, 1) == [row[:-1] for row in of_seeds([3, 4, 5])]


def test_the_table_of_unequal_frequencies() -> None:
    expected = [[cell.strip() for cell in line.split("|")[1:-1]] for line in [*lines([0], UNEVEN)][2:]]
    assert shown("| data | tasks | embedding, val. accuracy |", 2) == expected
    table = results("label_grid.csv").query(f"tasks in {[*UNEVEN]}")
    merged = table[table["labeler"] == "merged"]
    assert len(merged) == 6
    assert (merged["ari"] == 1).all()
    for tasks in UNEVEN:
        own = table[table["tasks"] == tasks]
        ((rarest, most),) = own[["rarest", "most_frequent"]].drop_duplicates().to_numpy().astype(int).tolist()
        assert f"{rarest} to {most:,}" in page()


def test_merging_is_ahead_of_pruning_by_as_much_as_said() -> None:
    table = results("label_grid.csv").query(f"tasks not in {[*UNEVEN]}")
    table = table[~table["labeler"].str.contains("no guard|assigned")]
    cell = ["data", "seed", "tasks", "embedding"]
    merged = table[table["labeler"] == "merged"].set_index(cell)
    pruned = table[table["labeler"].str.startswith("pruned")].groupby(cell)["ari"].max()
    ahead = (merged["ari"] - pruned.reindex(merged.index)).groupby(merged.index.get_level_values("seed") < 3)
    assert list(ahead.size()) == [48, 48]
    later, first = (f"{least:.3f}".lstrip("0") for least in ahead.min())
    assert (
        f"In each of these 48 cells merging has a higher ARI than pruning at any of these q, by {first} or more"
        in page()
    )
    assert f"In all 48, merging has a higher\nARI than pruning at any q, by {later} or more." in page()
    again = merged[merged.index.get_level_values("tasks") == "repl"]
    assert len(again) == 48
    assert ((again["clusters"] / again["true"] - 1).abs() <= 0.02).all()
    assert (again["accuracy"] >= 98).all()
    assert (again["tasks_clustered"] >= 99).all()


def test_the_table_of_few_samples() -> None:
    few, whole = results("label_samples.csv"), results("label_grid.csv").query("tasks == 'once' and seed < 3")
    rows = pd.concat([few, whole.assign(samples=20)])
    mean = rows.groupby(["data", "embedding", "labeler", "samples"])[["ari", "clusters"]].mean()
    names = {"cifar_fs": "CIFAR-FS (64)", "glyphs": "glyphs (80)"}
    expected = []
    for data, title in names.items():
        for strength in ("weak", "strong"):
            for first, short, labeler in (
                (f"{title}, {strength}", "merged", "merged"),
                ("", "pruned", "pruned q=4.5"),
            ):
                cells = [mean.loc[data, strength, labeler, count] for count in (2, 3, 5, 10, 20)]
                expected.append([first, short, *(f"{cell['ari']:.2f}, {cell['clusters']:.0f}" for cell in cells)])
    assert shown("| data, embedding | | 2 |") == expected


def worth(row: Any, setting: str, mark: str) -> Row:
    """Accuracy and what it is less than with true labels, each with its interval."""
    less = row[f"{setting}_less_oracle"]
    apart = "" if np.isnan(less) else f"{on_paper(less, 1, '+')} ± {on_paper(row[f'{setting}_less_oracle_ci95'], 1)}"
    return [f"{on_paper(row[setting], 1)} ± {on_paper(row[f'{setting}_ci95'], 1)}{mark}", apart]


def test_the_table_of_what_labels_are_worth() -> None:
    """Of photographs and Omniglot; the glyphs' rows are of runs of the pipeline."""
    words = {"initial": "initial embedding", "oracle": "true"}
    expected = set()
    for row in results("label_worth.csv").to_dict("records"):
        name, _, soft = str(row["labels"]).partition(", ")
        q = "" if row["q"] == "-" else f", q = {row['q']}"
        label = words.get(name, name) + q + (f", {soft}" if soft else "")
        other, mark = ("2_shot", " *") if row["data"] == "omniglot" else ("5_shot", "")
        classes = str(row["classes"]) if row["classes"] else ""
        cells = [label, classes, *worth(row, "1_shot", ""), *worth(row, other, mark)]
        expected.add((str(row["data"]), str(row["tasks"]), *cells))
    keys = {"CIFAR-FS, conv4, seed 0": "cifar_fs", "Omniglot, conv4, 10 epochs, seed 0": "omniglot"}
    regimes = {"replacement": "repl", "no replacement": "once"}
    found, data, regime = set(), "", ""
    for first, second, *cells in shown("| data | tasks | labels |"):
        data, regime = (first, second.partition(",")[0]) if first else (data, regime)
        if data in keys:
            found.add((keys[data], regimes[regime], *cells))
    assert found == expected


def mixed_levels() -> Iterator[Row]:
    table = results("mixed_levels.csv").set_index(["labels", "seed", "test"])
    settings = [(test, shot) for test in ("fine", "mixed") for shot in ("1_shot", "5_shot")]
    hard, soft = table.loc["inferred"], table.loc["inferred, soft"]
    for seed in range(4):
        pairs = [f"{hard.loc[(seed, test), shot]:.1f}, {soft.loc[(seed, test), shot]:.1f}" for test, shot in settings]
        yield [str(seed), f"{hard.loc[(seed, 'fine'), 'classes']:.0f}", *pairs]
    gains = [gain for test in ("fine", "mixed") for gain in soft_gains()[test]]
    yield ["**soft less hard, over seeds**", "", *(f"**{gain.mean:+.1f} ± {gain.ci95:.1f}**" for gain in gains)]


def test_the_table_of_mixed_levels() -> None:
    assert shown("| seed | clusters | fine, 1-shot") == [*mixed_levels()]


def test_the_table_of_what_there_was_to_gain() -> None:
    table = results("mixed_levels.csv").query("seed == 0").set_index(["labels", "test"])
    expected = []
    for labels in ("initial embedding", "true fine classes", "true concepts, soft"):
        fine, mixed = table.loc[(labels, "fine")], table.loc[(labels, "mixed")]
        settings = [(row, shot) for row in (fine, mixed) for shot in ("1_shot", "5_shot")]
        own = [f"{row[shot]:.1f} ± {row[f'{shot}_ci95']:.1f}" for row, shot in settings]
        less = [
            f"{row[f'{shot}_less_inferred']:+.1f} ± {row[f'{shot}_less_inferred_ci95']:.1f}" for row, shot in settings
        ]
        classes = f"{fine['classes']:.0f}" if fine["classes"] else ""
        expected.append([labels, classes, *own, ", ".join(less)])
    assert shown("| labels | classes | fine, 1-shot |") == expected


def test_the_table_of_weights() -> None:
    table = results("label_weights.csv").query("tasks == 'repl' and data in ['cifar_fs', 'fc100']")
    counts, weights, right = ["task classes"], ["their mean weight"], ["share that is right"]
    for low, high in pairwise(BOUNDS):
        inside = table[table["low"] == low]
        if high > 0.3:
            counts.append(f"{inside['n'].sum():,}")
            weights.append(f"{np.average(inside['weight'], weights=inside['n']):.3f}")
            right.append(f"{np.average(inside['right'], weights=inside['n']):.3f}")
    assert shown("| weight of the task class in its cluster |") == [counts, weights, right]
    assert f"\n{table.loc[table['low'] < 0.3, 'n'].sum()} more weigh less than .3." in page()


def passes() -> Iterator[str]:
    table = results("pass_quality.csv")
    runs = table.groupby(["data", "seed", "embedding", "q"])
    best = table.loc[runs["true_index"].idxmax(), "true_index"].to_numpy()
    by_match = best - table.loc[runs["match"].idxmax(), "true_index"].to_numpy()
    by_last = best - table.loc[runs["pass"].idxmax(), "true_index"].to_numpy()
    error = (table["precision"] - table["true_precision"]).abs()
    yield f"Over all {len(table)} passes of {runs.ngroups} runs of pruning"
    yield f"the estimated precision is off by {error.mean():.3f} on average and {error.max():.3f} at most."
    yield (
        f"The pass with the best `match` is the one with the best true index in {(by_match == 0).sum()} runs,"
        f" and loses {by_match.mean():.3f} on average and {by_match.max():.3f} at most;"
        f" the last pass, which the algorithm returns, loses {by_last.mean():.3f} on average"
    )


@pytest.mark.parametrize("sentence", [*passes()])
def test_passes(sentence: str) -> None:
    assert sentence.replace(" 0.", " .") in " ".join(page().split())
