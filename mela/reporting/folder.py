"""Write the tables and figures of a run as files, for texts of others."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from mela.io.atomic import replacing
from mela.io.store import write_text
from mela.reporting.drawings import Drawing
from mela.reporting.latex import latex
from mela.reporting.summary import Table, markdown


def write_folder(folder: Path, tables: Sequence[Table], drawn: Mapping[str, Drawing]) -> None:
    """Write tables in Markdown and LaTeX, and figures by their names as PNG and SVG.

    Figures of other names that are there, of a run in which accuracies were measured, go.

    Parameters
    ----------
    folder : Path
    tables : sequence of Table
    drawn : mapping of str to Drawing
    """
    for name, form in {"summary.md": markdown, "summary.tex": latex}.items():
        write_text(folder / name, "\n".join(map(form, tables)))
    for name, figure in drawn.items():
        with replacing(folder / f"{name}.png") as temporary:
            temporary.write_bytes(figure.png)
        write_text(folder / f"{name}.svg", figure.svg)
    for left in (*folder.glob("*.png"), *folder.glob("*.svg")):
        if left.stem not in drawn:
            left.unlink()
