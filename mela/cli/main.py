"""The command line beside the pipeline."""

from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from mela.cli import data, label
from mela.cli.export import export
from mela.cli.predict import predict
from mela.cli.run import run
from mela.errors import MelaError
from mela.preset_folder import preset_files, where_it_runs
from mela.runtime.console import ending_in_one_line, log, speak

RUN, DATA, MODEL = "Run the pipeline", "Your own data", "Use what was learned"
ARCHIVES = ("omniglot", "cifar100")
PARAMS = Path("params.yaml")
PAGE = "report.html"

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="markdown")


def _tell_version(asked: bool) -> None:
    if asked:
        print(f"mela {version('mela')}")
        raise typer.Exit


@app.callback()
def _group(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but results and errors.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say more, of errors also where they arise.")
    ] = False,
    _: Annotated[bool, typer.Option("--version", is_eager=True, callback=_tell_version, help="Say which.")] = False,
) -> None:
    """Infer the classes that independently labelled tasks share, and learn an embedding from them.

    The pipeline itself is run by DVC, in the project's folder:

    - `dvc repro` runs the stages whose inputs, code or parameters (params.yaml) have changed;

    - `dvc exp run -S pretrain.epochs=20` does so with another value, and `dvc exp show --only-changed` compares;

    - `mela run` runs all stages one after the other, without Git and DVC;

    - `MELA_OUTPUT=quiet dvc repro` (or `verbose`) says less (or more) than usual.

    **mela** has the commands around it; `mela COMMAND --help` explains one, and `mela --install-completion` makes the
    shell complete names.

    The exit status is 0 when all was done; 1 after an error, which is told in one line on standard error with what to
    do about it; 2 if the command line is wrong; 130 after Ctrl-C. Colours and bars are for terminals alone;
    `NO_COLOR=1` takes the colours away.
    """
    if quiet and verbose:
        raise MelaError("--quiet, --verbose: expected one of them at most, got both; leave one out")
    if quiet or verbose:
        speak("quiet" if quiet else "verbose")


def _complete_preset(incomplete: str) -> list[str]:
    return [name for name in preset_files() if name.startswith(incomplete)]


@app.command(rich_help_panel=RUN)
def preset(
    name: Annotated[str, typer.Argument(help="A file of presets/, without .yaml.", autocompletion=_complete_preset)],
    folder: Annotated[
        Path | None, typer.Option(help="Where the presets are; default: presets/, or those that come with MeLa.")
    ] = None,
    params: Annotated[Path, typer.Option(help="The file to write.")] = PARAMS,
) -> None:
    """Make a preset the active experiment: write it to params.yaml.

    Values changed there by hand are overwritten (`git diff params.yaml` shows them before).

    Example: `mela preset cifar_fs && dvc repro`
    """
    # commands import what they need: names are completed, and help is shown, at once
    from mela.io.store import write_text
    from mela.params import check_document

    known = preset_files(folder)
    if name not in known:
        names = ", ".join(known) or f"none in {folder}/; leave out --folder"
        raise MelaError(f"preset {name}: no such preset; expected one of {names}")
    source = known[name]
    check_document(source)
    write_text(params, source.read_text(encoding="utf-8"))
    log.info(f"{params} is now the preset {name}; `dvc repro` runs it{where_it_runs()}")


app.command(rich_help_panel=RUN)(run)


@app.command(rich_help_panel=RUN)
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


def _complete_archive(incomplete: str) -> list[str]:
    return [name for name in ARCHIVES if name.startswith(incomplete)]


@app.command(rich_help_panel=RUN)
def download(
    name: Annotated[str, typer.Argument(help=" or ".join(ARCHIVES) + ".", autocompletion=_complete_archive)],
    root: Annotated[Path | None, typer.Option(help="Where to; default data/raw/NAME.")] = None,
) -> None:
    """Fetch a benchmark's published archive, checked against its checksum, to where the presets expect it.

    Example: `mela download cifar100 && mela preset cifar_fs && dvc repro`
    """
    from mela.sources.benchmarks import cifar_fs, omniglot

    sources = dict(zip(ARCHIVES, (omniglot, cifar_fs), strict=True))
    if name not in sources:
        raise MelaError(f"download {name}: no such data set; expected one of {', '.join(sources)}")
    root = root or Path("data/raw") / name
    source = sources[name](root, download=True)
    log.info(f"{root}: {len(source)} images")


app.command(rich_help_panel=DATA)(label.label)
app.add_typer(data.app, name="data", rich_help_panel=DATA)
app.command(rich_help_panel=MODEL)(predict)
app.command(rich_help_panel=MODEL)(export)


def main() -> None:
    """Entry point: an error that the user can put right becomes one line and exit status 1."""
    with ending_in_one_line():
        app()
