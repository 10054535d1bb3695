"""The page on the paper: its rows are put together from the results, and published figures are those of the package."""

import re
from collections.abc import Iterator

import pandas as pd
import pytest

from benchmark.comparison import read_results
from benchmark.report.pairs import row as of_pair
from mela.reporting.published import SYSTEMS
from studies.labels.tables import NAMES, span
from tests.helpers.figures import RESULTS, found, mean, scores, systems
from tests.helpers.project import ROOT

PAGE = (ROOT / "docs/method/paper.md").read_text(encoding="utf-8")
LABELERS = {"merged": "merged", "pruned_unguarded": "Algorithm 2", "pruned": "Algorithm 2, guarded"}


def rows(heading: str) -> list[str]:
    """Rows of the table below a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [line for line in section.splitlines() if line.startswith("| ")]


def interval(system: str, data: str, shot: int) -> str:
    one = found(system, data, shot).interval
    return f"{one.mean:.1f} ± {one.ci95:.1f}"


def is_whole(system: str, data: str) -> bool:
    """Whether a system is measured with all three seeds."""
    return systems(data).get(system) == {0, 1, 2}


def table_7() -> Iterator[str]:
    data = ("cifar_fs", "fc100")
    for labels, name in LABELERS.items():
        system = f"{labels}-rfs"
        cells = [
            " / ".join(interval(system, one, shot) for shot in (1, 5)) if system in systems(one) else "not measured"
            for one in data
        ]
        yield f"| ours, conv4, {name}: MeLa | {' | '.join(cells)} |"
        differences = [
            re.sub(r"\*\*|\N{NO-BREAK SPACE}", lambda match: "" if match[0] == "**" else " ", text)
            for text in (
                of_pair({one: read_results(RESULTS, one)}, system, "oracle-rfs", (1, 5))[0]
                if system in systems(one)
                else ""
                for one in data
            )
        ]
        yield re.sub(r"\s+\|", " |", f"| ours, conv4, {name}: less true labels, paired | {' | '.join(differences)} |")
        if labels == "merged":
            cells = [" / ".join(interval("oracle-rfs", one, shot) for shot in (1, 5)) for one in data]
            yield f"| ours, conv4: true labels | {' | '.join(cells)} |"


def table_2() -> Iterator[str]:
    table = pd.read_csv(ROOT / "studies/results/label_grid.csv")
    table = table.query("data == 'cifar_fs' and seed < 3 and embedding == 'strong'")
    for name, labeler in {
        "merged": "merged",
        "Algorithm 2, q = 4.5": "pruned q=4.5, no guard",
        "Algorithm 2, guarded, q = 4.5": "pruned q=4.5",
    }.items():
        cells = []
        for tasks in ("repl", "once"):
            own = table.query("tasks == @tasks and labeler == @labeler")
            assert len(own) == 3, (tasks, labeler)
            clusters = set(own["clusters"].astype(int))
            text = " / ".join(span(own[column], 1) for column in ("tasks_clustered", "accuracy"))
            cells.append(text.replace("100.0", "100") + (" (300 clusters)" if clusters == {300} else ""))
        yield f"| ours: CIFAR-FS, conv4, {name} | {' | '.join(cells)} |"


def table_3() -> Iterator[str]:
    for data, name in NAMES.items():
        for labels, labeler in LABELERS.items():
            if not is_whole(f"{labels}-rfs", data):
                continue
            seeds = scores(data, labels)
            purity = min(one["purity"] for one in seeds)
            ours = "100" if purity == 100 else f"{int(purity * 100) / 100:.2f}"
            counts = sorted(one["clusters"] for one in seeds)
            true = {one["true_classes"] for one in seeds}
            many = (
                ""
                if set(counts) == true
                else f" ({', '.join(map(str, counts[:-1]))} and {counts[-1]} labels for {true.pop()} classes)"
            )
            others = span(pd.Series([one["kmeans"]["purity"] for one in seeds]), 0)
            cells = [
                ", ".join(f"{mean(system, data, shot)}" for system in (f"{labels}-rfs", "kmeans-rfs"))
                for shot in (1, 5)
            ]
            yield f"| ours: {name}, conv4, {labeler}{many} | {ours}, {others} | {' | '.join(cells)} |"


TABLES = {
    "Table 7: CIFAR-FS and FC100": table_7,
    "Table 2: tasks with and without replacement": table_2,
    "Table 3: K-means": table_3,
}


@pytest.mark.parametrize("heading", TABLES)
def test_our_rows_are_those_of_the_results(heading: str) -> None:
    ours = [line for line in rows(heading) if line.startswith("| ours") and "ResNet-12" not in line]
    assert sorted(ours) == sorted(TABLES[heading]())


@pytest.mark.parametrize(
    ("heading", "data"),
    [
        ("Table 7: CIFAR-FS and FC100", ("cifar_fs", "fc100")),
        ("Table 1: miniImageNet and tieredImageNet", ("mini", "tiered")),
    ],
)
def test_published_rows_are_those_of_the_package(heading: str, data: tuple[str, str]) -> None:
    systems_of = {"MeLa": "pruned_unguarded-rfs", "true labels (RFS)": "oracle-rfs", "initial embedding": "initial"}
    published = [line for line in rows(heading) if line.startswith("| published: ")]
    assert len(published) > 1
    for line in published:
        name, *cells = (cell.strip() for cell in line.removeprefix("| published: ").strip("| ").split("|"))
        figures = [tuple(float(part.split(" ± ")[0]) for part in cell.split(" / ")) for cell in cells]
        assert figures == [SYSTEMS[systems_of[name]][one] for one in data], line


def test_where_pruning_runs_away() -> None:
    left, guarded = (next(one for one in scores("cifar_fs", labels)) for labels in ("pruned_unguarded", "pruned"))
    sentence = (
        "From the initial embedding of seed 0, Algorithm 2 to the letter runs away on CIFAR-FS and leaves "
        f"{left['clusters']} clusters for {left['true_classes']} classes. The guard leaves {guarded['clusters']}."
    )
    assert sentence in " ".join(PAGE.split())
