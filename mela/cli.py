"""The command line beside the pipeline."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from mela.commands import data, label
from mela.commands.export import export
from mela.commands.predict import predict
from mela.errors import MelaError, line_of, print_anything
from mela.params import PARAMS, check_document
from mela.run_metrics import Evaluation, LabelMetrics, Metrics, PretrainMetrics, Scores, read_metrics
from mela.store import write_text
from mela.summary import summary_rows

app = typer.Typer(help=__doc__, no_args_is_help=True, pretty_exceptions_enable=False)
app.add_typer(data.app, name="data")
app.command()(label.label)


@app.callback()
def _group() -> None:
    """Meta label learning: `dvc repro` runs the pipeline, `mela` does what is around it."""


@app.command()
def preset(
    name: Annotated[str, typer.Argument(help="A file of presets/, without .yaml.")],
    folder: Annotated[Path, typer.Option(help="Where the presets are.")] = Path("presets"),
    params: Annotated[Path, typer.Option(help="The file to write.")] = PARAMS,
) -> None:
    """Make a preset the active experiment: write it to params.yaml. Values changed there by hand are overwritten."""
    source = folder / f"{name}.yaml"
    if not source.is_file():
        names = (
            ", ".join(sorted(path.stem for path in folder.glob("*.yaml")))
            or f"none in {folder}/; run from the project's root"
        )
        raise MelaError(f"preset {name}: no such preset; expected one of {names}")
    check_document(source)
    write_text(params, source.read_text(encoding="utf-8"))
    print(f"{params} is now the preset {name}; `dvc repro` runs it")


@app.command()
def summary(
    results: Annotated[Path, typer.Option(help="Where the stages left their metrics.")] = Path("results"),
) -> None:
    """Print the last run in one table."""
    table = Table(show_header=False, title="MeLa")
    stages: dict[str, type[Metrics]] = {"label": LabelMetrics, "score_labels": Scores}
    stages |= {"pretrain": PretrainMetrics, "evaluate": Evaluation}
    found = (read_metrics(results / stage / "metrics.json", kind) for stage, kind in stages.items())
    for row in summary_rows(*found):
        table.add_row(*row)
    Console().print(table)


@app.command()
def download(
    name: Annotated[str, typer.Argument(help="omniglot or cifar100.")],
    root: Annotated[Path | None, typer.Option(help="Where to; default data/raw/NAME.")] = None,
) -> None:
    """Fetch a benchmark's published archive, checked against its checksum, to where the presets expect it."""
    from mela.data.benchmarks import cifar_fs, omniglot

    sources = {"omniglot": omniglot, "cifar100": cifar_fs}
    if name not in sources:
        raise MelaError(f"download {name}: no such data set; expected one of {', '.join(sources)}")
    root = root or Path("data/raw") / name
    source = sources[name](root, download=True)
    print(f"{root}: {len(source)} images")


app.command()(predict)
app.command()(export)


def main() -> None:
    """Entry point: an error that the user can put right becomes one line and exit status 1."""
    print_anything()
    try:
        app()
    except Exception as error:
        line = line_of(error)
        if line is None:
            raise
        print(line, file=sys.stderr)
        sys.exit(1)
