"""Keep what a command writes away from what it reads."""

from collections.abc import Iterable
from pathlib import Path

from mela.errors import MelaError


def require_apart(option: str, out: Path, inputs: Iterable[Path]) -> None:
    """Raise MelaError if an output is an input, or lies in an input folder, by whatever name or link.

    Parameters
    ----------
    option : str
        What the error calls the output.
    out : Path
    inputs : iterable of Path
        Files and folders; those that are missing are passed over.
    """
    place = out.resolve()
    for path in inputs:
        real = path.resolve()
        if path.is_dir():
            if place.is_relative_to(real):
                raise MelaError(f"{option}: {out} lies in {path}, which this command reads; write to another folder")
        elif path.exists() and (place == real or (out.exists() and out.samefile(path))):
            raise MelaError(f"{option}: {out} is the file {path}, which this command reads; give another name")
