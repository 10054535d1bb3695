"""Define ``mela download``: fetch the published archive of a benchmark."""

from pathlib import Path
from typing import Annotated

import typer

from mela.errors import MelaError
from mela.runtime.console import log

ARCHIVES = ("omniglot", "cifar100")


def download(
    name: Annotated[str, typer.Argument(help=" or ".join(ARCHIVES) + ".", autocompletion=lambda: ARCHIVES)],
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
