"""Define ``mela preset``: make a preset the active experiment."""

from pathlib import Path
from typing import Annotated

import typer

from mela.cli.shipped_files import preset_files, where_it_runs
from mela.errors import MelaError
from mela.runtime.console import log


def preset(
    name: Annotated[
        str | None, typer.Argument(help="A file of presets/, without .yaml.", autocompletion=lambda: [*preset_files()])
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Where the presets are; default: presets/, or those that come with MeLa.")
    ] = None,
    params: Annotated[Path, typer.Option(help="The file to write.")] = Path("params.yaml"),
    convert: Annotated[
        bool, typer.Option("--convert", help="Take no preset: rewrite the file of a former version.")
    ] = False,
) -> None:
    """Make a preset the active experiment: write it to params.yaml.

    Values changed there by hand are overwritten (`git diff params.yaml` shows them before).

    Example: `mela preset cifar_fs && dvc repro`
    """
    from mela.io.store import write_text
    from mela.params import check_document

    if convert:
        _convert(name, params)
        return
    if name is None:
        raise MelaError("preset: expected the name of a preset, or --convert; `mela preset --help` says more")
    known = preset_files(folder)
    if name not in known:
        names = ", ".join(known) or f"none in {folder}/; leave out --folder"
        raise MelaError(f"preset {name}: no such preset; expected one of {names}")
    source = known[name]
    check_document(source)
    write_text(params, source.read_text(encoding="utf-8"))
    log.info(f"{params} is now the preset {name}; `dvc repro` runs it{where_it_runs()}")


def _convert(name: str | None, params: Path) -> None:
    from mela.blocks import read_yaml
    from mela.cli.former_params import convert
    from mela.io.store import write_text
    from mela.params import check_document

    if name is not None:
        raise MelaError(f"preset: expected a name or --convert, got {name} and --convert; leave one out")
    # which tells of a file that is missing or no YAML
    read_yaml(params)
    text = params.read_text(encoding="utf-8")
    converted = convert(text, str(params))
    write_text(params, converted)
    check_document(params)
    log.info(f"{params}: {'nothing to convert' if converted == text else 'is now a file of this version'}")
