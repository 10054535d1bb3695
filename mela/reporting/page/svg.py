"""Embed drawings in a page."""

import html
import re

from markupsafe import Markup

from mela.reporting.figures import BLUE, GREEN, GREY, LIGHT, ORANGE

# the page decides what they are, by day and by night
COLOURS = {
    BLUE: "var(--blue)",
    LIGHT: "var(--light)",
    ORANGE: "var(--orange)",
    GREEN: "var(--green)",
    GREY: "var(--grey)",
    "#000000": "var(--ink)",
    "#ffffff": "var(--paper)",
}


def inline(drawn: str, description: str) -> Markup:
    """Return the SVG that `drawing` drew as an ``svg`` element in the page's colours and font.

    Parameters
    ----------
    drawn : str
    description : str
        What there is to see, for those who do not see it.
    """
    text = drawn[drawn.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    for colour, variable in COLOURS.items():
        text = text.replace(colour, variable)
    text = re.sub(r"font: ([\d.]+px) [^;\"]+", r"font-size: \1", text)
    text = re.sub(r"font-family: [^;\"]+;? ?", "", text)
    # the names of groups, which are the same in every figure
    text = re.sub(r'(<g) id="[^"]*"', r"\1", text)
    head, _, body = text.partition(">")
    view = re.search(r'viewBox="0 0 ([\d.]+) [^"]*"', head)
    assert view is not None, head
    opened = (
        f'<svg {view[0]} style="max-width: {float(view[1]) * 4 / 3:.0f}px" role="img" '
        f'aria-label="{html.escape(description)}" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    # what matplotlib drew from words of our own
    return Markup(opened + body)  # noqa: S704
