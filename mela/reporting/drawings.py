"""Draw figures as files."""

import io
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure


class Drawing(NamedTuple):
    """Hold a figure as files: a PNG, and an SVG whose text stays text."""

    png: bytes
    svg: str


def drawing(figure: Figure, name: str) -> Drawing:
    """Return a figure as files of one layout, whose bytes depend on nothing else.

    Parameters
    ----------
    figure : Figure
        It keeps the layout, and is of no use for other sizes.
    name : str
        Prefix of the identifiers in the SVG, unique on a page.
    """
    png, svg = io.BytesIO(), io.StringIO()
    figure.savefig(png, format="png")
    # to find a place for everything takes longer than to draw it
    figure.set_layout_engine(None)
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "svg.id": name}):
        figure.savefig(
            svg,
            format="svg",
            transparent=True,
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    return Drawing(png.getvalue(), svg.getvalue())
