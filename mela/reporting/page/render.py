"""Render the page: one self-contained file."""

from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


def render(content: dict[str, Any]) -> str:
    """Fill in the page; all text is escaped, including users' names of classes.

    Parameters
    ----------
    content : dict
        What ``page.html`` names, but for style and script.
    """
    parts = resources.files("mela.reporting.page")
    environment = Environment(
        loader=PackageLoader("mela", "reporting/page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # files of our own
    style, script = (Markup(parts.joinpath(name).read_text(encoding="utf-8")) for name in ("page.css", "page.js"))  # noqa: S704
    return environment.get_template("page.html").render(**content, style=style, script=script) + "\n"
