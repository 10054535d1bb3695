"""Define ``mela summary``: print the last run, and compare it with another."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from mela.errors import MelaError, one_line

if TYPE_CHECKING:
    from mela.reporting.comparison import Measured

PAGE = "report.html"


def summary(
    results: Annotated[Path, typer.Option(help="Where the stages left their metrics.")] = Path("results"),
    against: Annotated[
        str | None, typer.Option(help="Another run: a revision or an experiment of DVC, or the folder of a project.")
    ] = None,
    latex: Annotated[bool, typer.Option("--latex", help="Print the tables in LaTeX (booktabs).")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the tables in Markdown.")] = False,
) -> None:
    """Print the last run: accuracies of all embeddings with 95% intervals, and the labels that they learned.

    `results/report.html` shows the same run on a page, with pictures. With --against the differences from another run
    are added. Their intervals are paired if both were tested on the same tasks.

    Example: `mela summary --against main`
    """
    if latex and markdown:
        raise MelaError("--latex, --markdown: expected one of them, got both; leave one out")
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from mela.io.store import read_json
    from mela.reporting import summary
    from mela.reporting.comparison import Measured, accuracies_of_two, different_parameters
    from mela.reporting.latex import latex as in_latex
    from mela.reporting.outcome import read_outcome

    overview = results / "metrics.json"
    kept = read_json(overview) if overview.is_file() else None
    outcome = read_outcome(
        {name: results / f"label/{name}.json" for name in ("merged", "pruned")},
        results / "score_labels/metrics.json",
        results / "evaluate/metrics.json",
        None if kept is None else summary.data_name(kept),
    )
    if kept is not None:
        summary.require_report(kept, outcome, where=str(overview))
    contents, lines = summary.tables(outcome), summary.remarks(outcome)
    if against is not None:
        here, there = Measured.read(results.parent, results), _other_run(against)
        contents.append(accuracies_of_two(here, there, against))
        lines += [f"{name}: {mine}, and {theirs} there" for name, mine, theirs in different_parameters(here, there)]
    if latex or markdown:
        typer.echo("\n".join(map(in_latex if latex else summary.markdown, contents)), nl=False)
        return
    console = Console()
    if outcome.data:
        console.print(Text(f"MeLa on {outcome.data}"), soft_wrap=True)
    for content in contents:
        if not content.rows:
            console.print(content.empty)
            continue
        table = Table(*content.columns, title=content.title)
        for row in content.rows:
            table.add_row(*row)
        console.print(table)
    for line in lines:
        console.print(Text(line), soft_wrap=True)
    if (results / PAGE).is_file():
        console.print(
            f"the run on a page, with pictures: {results / PAGE}", soft_wrap=True, highlight=False, markup=False
        )


def _other_run(name: str) -> "Measured":
    """Read what another run has measured: that in a folder, or else that of a revision, as DVC keeps it."""
    from mela.reporting.comparison import FILES, Measured

    if Path(name).is_dir():
        return Measured.read(Path(name))
    try:
        from dvc.api import DVCFileSystem
        from dvc.exceptions import DvcException
        from scmrepo.exceptions import SCMError
    except ModuleNotFoundError:
        raise MelaError(f"--against: expected the folder of a project, got {name!r}; revisions need DVC") from None
    with TemporaryDirectory() as folder:
        try:
            revision = DVCFileSystem(rev=name)
            for file in FILES:
                place = Path(folder, file)
                place.parent.mkdir(parents=True, exist_ok=True)
                revision.get_file(file, str(place))
        except (DvcException, SCMError, OSError) as error:
            raise MelaError(
                f"--against: expected a folder, or a revision whose results DVC has, got {name!r} ({one_line(error)}); "
                "correct it, or run `dvc fetch --all-commits`"
            ) from None
        return Measured.read(Path(folder))
