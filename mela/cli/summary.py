"""Define ``mela summary``: print the last run."""

from pathlib import Path
from typing import Annotated

import typer

PAGE = "report.html"


def summary(
    results: Annotated[Path, typer.Option(help="Where the stages left their metrics.")] = Path("results"),
) -> None:
    """Print the last run: accuracies of all embeddings with 95% intervals, and the labels that they learned.

    `results/report.html` shows the same run on a page, with pictures.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from mela.io.store import read_json
    from mela.reporting.outcome import read_outcome
    from mela.reporting.summary import data_name, remarks, require_report, tables

    overview = results / "metrics.json"
    kept = read_json(overview) if overview.is_file() else None
    outcome = read_outcome(
        {name: results / f"label/{name}.json" for name in ("merged", "pruned")},
        results / "score_labels/metrics.json",
        results / "evaluate/metrics.json",
        None if kept is None else data_name(kept),
    )
    if kept is not None:
        require_report(kept, outcome, where=str(overview))
    console = Console()
    if outcome.data:
        console.print(Text(f"MeLa on {outcome.data}"), soft_wrap=True)
    for content in tables(outcome):
        if not content.rows:
            console.print(content.empty)
            continue
        table = Table(*content.columns, title=content.title)
        for row in content.rows:
            table.add_row(*row)
        console.print(table)
    for line in remarks(outcome):
        console.print(Text(line), soft_wrap=True)
    if (results / PAGE).is_file():
        console.print(
            f"the run on a page, with pictures: {results / PAGE}", soft_wrap=True, highlight=False, markup=False
        )
