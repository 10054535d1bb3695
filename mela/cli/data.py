"""Define ``mela data``: what a user's data holds, what is wrong with it, and which parameters suit it."""

import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mela.errors import MelaError
from mela.io.overwriting import require_apart
from mela.runtime.console import is_terminal, log

if TYPE_CHECKING:
    from mela.sources.check.inspect import Findings
    from mela.sources.check.pictures import Inspected

app = typer.Typer(help="Look at data before the pipeline runs.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command()
def check(
    path: Annotated[Path, typer.Argument(help="A folder of images, or a table (csv, tsv, parquet) in it.")],
    kind: Annotated[
        Literal["tasks", "classes"] | None, typer.Option("--as", help="What to take it for; default: what is there.")
    ] = None,
    write: Annotated[Path | None, typer.Option(help="Write a complete params.yaml there (- prints it).")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Look at the heads of the image files only.")] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Print every error and warning, not one line for each kind.")
    ] = False,
    details: Annotated[
        Path | None,
        typer.Option(
            help="Write errors.csv, unused.csv and copies.csv (images with the same pixels) into this folder."
        ),
    ] = None,
    aside: Annotated[
        Path | None,
        typer.Option("--set-aside", help="Move files that cannot be read into this folder; `put-back` undoes it."),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="A preset by its name, or a file: where other parameters come from. Default: glyphs, or that of a "
            "published benchmark."
        ),
    ] = None,
) -> None:
    """Say what a folder or a table of tasks holds and all that is wrong with it, and make the parameters for it.

    mini- and tieredImageNet, CUB, FGVC-Aircraft and VGG Flower are recognised in their usual forms, and checked
    against their counts. So is a folder of several of them, and the layout of Meta-Album.

    The exit status is 0 if the pipeline can use it, and 1 if it has errors. Errors of one kind are one line with their
    number and three examples, and so are warnings.

    Example: `mela data check data/raw/mine --write params.yaml && dvc repro`
    """
    from mela.cli.shipped_files import find_preset
    from mela.params import DataParams
    from mela.runtime.progress import watched
    from mela.sources.check.aside import LIST, require_aside, set_aside
    from mela.sources.check.describe import describe, in_lines
    from mela.sources.check.details import FILES, write_details
    from mela.sources.check.error_kinds import lines
    from mela.sources.check.inspect import inspect
    from mela.sources.check.layout import find_layout
    from mela.sources.check.recognised import published_in
    from mela.sources.check.suggest import read_preset, suggest
    from mela.sources.plurals import count_of

    published = published_in(path) if kind is None else None
    preset = preset or (published.preset if published else "glyphs")
    source = find_preset(preset)
    text, settings = read_preset(source), DataParams.read(source)
    to_stdout = write is not None and str(write) == "-"
    told = sys.stderr if to_stdout else sys.stdout
    # parameters may lie in the folder of the data, which may be the current one
    if write is not None and not to_stdout and write.suffix not in (".yaml", ".yml"):
        require_apart("--write", write, [path])
    if published is not None:
        if details is not None or aside is not None:
            raise MelaError(
                f"{path}: this is {published.title}, for which --details and --set-aside do nothing; leave them out"
            )
        try:
            sources = published.open()
        except MelaError as error:
            raise MelaError(f"{error} (or add --as classes or --as tasks, if these are other images)") from None
        print(*published.describe(sources), sep="\n", file=told)
        _give(published.suggest(sources), text, source, path, preset, write)
        return
    layout = find_layout(path, kind)
    if details is not None:
        for name in FILES:
            require_apart("--details", details / name, [path])
    if aside is not None:
        require_aside(layout.root, aside)

    def counted(names: Sequence[str]) -> Iterable[str]:
        with watched("data check", "images", shown=not to_stdout or is_terminal(sys.stderr)) as watch:
            watch.begin(len(names))
            for name in names:
                yield name
                watch.advance()

    known: dict[str, Inspected] = {}

    def examine() -> "Findings":
        fractions, seed = settings.split_fractions, settings.seed
        return inspect(layout, split_fractions=fractions, seed=seed, decode=not quick, progress=counted, known=known)

    def write_tables(findings: "Findings") -> str:
        if details is None:
            return ""
        return f"details: {', '.join(map(str, write_details(details, findings)))}\n"

    findings, count, stay = examine(), 0, list[str]()
    # before anything else can fail
    written = write_tables(findings)
    # what is moved can leave a link behind that leads nowhere, which is moved then
    while aside is not None and (moved := set_aside(layout.root, findings.errors, aside, report=stay.append)):
        findings, count = examine(), count + len(moved)
        written, stay = write_tables(findings), []
    try:
        print(*describe(findings, every=every), "", sep="\n", file=told)
    finally:
        # whatever keeps the data from being described, its errors are told
        if aside is not None:
            back = shlex.join(["mela", "data", "put-back", str(layout.root), str(aside)])
            undo = f"; {aside / LIST} says why, and `{back}` undoes it" if count else ""
            print(f"set aside: {count_of(count, 'file')} that cannot be read{undo}", file=told)
            print(*(f"not set aside: {line}\n" for line in lines(stay)), sep="", file=told)
        if written:
            print(written, file=told)
        print(*(f"{line}\n" for line in in_lines("error", findings.errors, every=every)), sep="", end="", file=told)
    if findings.errors:
        raise typer.Exit(1)
    _give(suggest(findings), text, source, path, preset, write)


def _give(values: dict[str, Any], text: str, source: Path, path: Path, preset: str, write: Path | None) -> None:
    """Write a preset with other values to a file or to the standard output, or print what differs from the preset."""
    from mela.cli.shipped_files import where_it_runs
    from mela.io.store import write_text
    from mela.sources.check.suggest import changed_lines, fill_preset, is_of_benchmark

    where = where_it_runs()
    if where:
        # the parameters are for a clone, in which a path relative to this folder leads elsewhere
        values["data.root"] = Path(values["data.root"]).resolve().as_posix()
    named = source.as_posix() if Path(preset).suffix else f"the preset {preset}"
    filled = fill_preset(text, values, title=f"Made by `mela data check {path.as_posix()}` from {named}.")
    if write is not None and str(write) == "-":
        print(filled, end="")
    elif write is not None:
        write_text(write, filled)
        then = "make benchmark" if is_of_benchmark(text) else "dvc repro"
        log.info(f"{write} is made for this data; `{then}` runs it{where}")
    else:
        print(f"params.yaml: {named} with these values (--write params.yaml writes it)\n")
        print(changed_lines(text, filled), end="")


@app.command()
def put_back(
    path: Annotated[Path, typer.Argument(help="The folder of images.")],
    aside: Annotated[Path, typer.Argument(help="The folder into which `check --set-aside` has moved files.")],
) -> None:
    """Move back files that `mela data check --set-aside` has set aside.

    A file whose place is taken stays where it is; the exit status is 1 then.

    Example: `mela data put-back data/raw/mine data/raw/unreadable`
    """
    from mela.sources.check import aside as files
    from mela.sources.image_files import require_folder
    from mela.sources.plurals import count_of

    require_folder(path, "path")
    moved, problems = files.put_back(path, aside)
    print(f"{path}: {count_of(len(moved), 'file')} {'is' if len(moved) == 1 else 'are'} back")
    if problems:
        print(*(f"error: {problem}" for problem in problems), sep="\n")
        raise typer.Exit(1)
