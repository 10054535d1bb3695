"""``mela data``: what a user's data holds, what is wrong with it, and which parameters suit it."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from mela.output import is_terminal, log

app = typer.Typer(help="Look at data before the pipeline runs.", no_args_is_help=True)
SHOWN = 100


@app.callback()
def _group() -> None:
    pass


@app.command()
def check(
    path: Annotated[Path, typer.Argument(help="A folder of images, or a table (csv, parquet) in it.")],
    kind: Annotated[
        Literal["tasks", "classes"] | None, typer.Option("--as", help="What to take it for; default: what is there.")
    ] = None,
    write: Annotated[Path | None, typer.Option(help="Write a complete params.yaml there (- prints it).")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Look at the heads of the image files only.")] = False,
    every: Annotated[bool, typer.Option("--all", help=f"Print all errors, not the first {SHOWN}.")] = False,
    preset: Annotated[
        str, typer.Option(help="A preset by its name, or a file: where other parameters come from.")
    ] = "glyphs",
) -> None:
    """Say what a folder or a table of tasks holds and all that is wrong with it, and make the parameters for it.

    The exit status is 0 if the pipeline can use it, and 1 if it has errors, of which all are told.

    Example: `mela data check data/raw/mine --write params.yaml && dvc repro`
    """
    from mela.data.description import describe
    from mela.data.inspection import inspect
    from mela.data.layout import find_layout
    from mela.data.suggestion import changed_lines, fill_preset, is_of_benchmark, read_preset, suggest
    from mela.params import DataParams
    from mela.preset_folder import find_preset
    from mela.store import write_text
    from mela.watching import watched

    source = find_preset(preset)
    text, settings = read_preset(source), DataParams.read(source)
    layout = find_layout(path, kind)
    to_stdout = write is not None and str(write) == "-"

    def counted(names: Sequence[str]) -> Iterable[str]:
        with watched("data check", "images", shown=not to_stdout or is_terminal(sys.stderr)) as watch:
            watch.begin(len(names))
            for name in names:
                yield name
                watch.advance()

    findings = inspect(
        layout, split_fractions=settings.split_fractions, seed=settings.seed, decode=not quick, progress=counted
    )
    told = sys.stderr if to_stdout else sys.stdout
    print(*describe(findings), "", sep="\n", file=told)
    if findings.errors:
        shown = findings.errors if every else findings.errors[:SHOWN]
        print(*(f"error: {error}" for error in shown), sep="\n", file=told)
        if left := len(findings.errors) - len(shown):
            print(f"{left} more errors; --all prints them", file=told)
        raise typer.Exit(1)
    values = suggest(findings)
    named = source.as_posix() if Path(preset).suffix else f"the preset {preset}"
    filled = fill_preset(text, values, title=f"Made by `mela data check {path.as_posix()}` from {named}.")
    if to_stdout:
        print(filled, end="")
    elif write is not None:
        write_text(write, filled)
        then = "make benchmark" if is_of_benchmark(text) else "dvc repro"
        where = "" if Path("dvc.yaml").is_file() else " in a clone of the project"
        log.info(f"{write} is made for this data; `{then}` runs it{where}")
    else:
        print(f"params.yaml: {named} with these values (--write params.yaml writes it)\n")
        print(changed_lines(text, filled), end="")
