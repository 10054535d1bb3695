"""Write the tables and figures of a run as files, for texts of others."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from mela.io.atomic import replacing
from mela.io.store import write_text
from mela.reporting.latex import latex
from mela.reporting.summary import Table, markdown


def write_folder(
    folder: Path, tables: Sequence[Table], figures: Mapping[str, Figure], drawn: Mapping[str, str]
) -> None:
    """Write tables in Markdown and LaTeX, and figures by their names as PNG and SVG.

    Figures of other names that are there, of a run in which accuracies were measured, go.

    Parameters
    ----------
    folder : Path
    tables : sequence of Table
    figures : mapping of str to Figure
        They must not be drawn yet, since they would keep that layout.
    drawn : mapping of str to str
        The same as SVG files.
    """
    for name, form in {"summary.md": markdown, "summary.tex": latex}.items():
        write_text(folder / name, "\n".join(map(form, tables)))
    for name, figure in figures.items():
        with replacing(folder / f"{name}.png") as temporary:
            figure.savefig(temporary, format="png")
        write_text(folder / f"{name}.svg", drawn[name])
    for left in (*folder.glob("*.png"), *folder.glob("*.svg")):
        if left.stem not in figures:
            left.unlink()
