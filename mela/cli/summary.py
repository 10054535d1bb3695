"""``mela summary``: print the last run in one table."""

from pathlib import Path
from typing import Annotated

import typer

PAGE = "report.html"


def summary(
    results: Annotated[Path, typer.Option(help="Where the stages left their metrics.")] = Path("results"),
) -> None:
    """Print the last run in one table: labels found, their quality, accuracies with 95% intervals.

    `results/report.html` shows the same run on a page, with pictures.
    """
    from rich.console import Console
    from rich.table import Table

    from mela.io.store import read_json
    from mela.reporting.metrics import Evaluation, LabelMetrics, Metrics, PretrainMetrics, Scores, read_metrics
    from mela.reporting.summary import data_name, require_report, summary_rows

    table = Table(show_header=False, title="MeLa")
    stages: dict[str, type[Metrics]] = {"label": LabelMetrics, "score_labels": Scores}
    stages |= {"pretrain": PretrainMetrics, "evaluate": Evaluation}
    label, scores, pretrain, evaluation = (
        read_metrics(results / stage / "metrics.json", kind) for stage, kind in stages.items()
    )
    data, overview = None, results / "metrics.json"
    if overview.is_file():
        kept = read_json(overview)
        require_report(kept, label, scores, evaluation, where=str(overview))
        data = data_name(kept)
    for row in summary_rows(label, scores, pretrain, evaluation, data=data):
        table.add_row(*row)
    console = Console()
    console.print(table)
    if (results / PAGE).is_file():
        console.print(
            f"the run on a page, with pictures: {results / PAGE}", soft_wrap=True, highlight=False, markup=False
        )
