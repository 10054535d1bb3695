"""Render the page: one self-contained file."""

from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup


def render(content: dict[str, Any]) -> str:
    """Fill in the page; all text is escaped, including users' names of classes.

    Parameters
    ----------
    content : dict
        What ``page.html`` names, but for style and script.
    """
    parts = resources.files("mela.reporting.page")
    page, style, script = (parts.joinpath(name).read_text("utf-8") for name in ("page.html", "page.css", "page.js"))
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    # files of our own
    own = {"style": Markup(style), "script": Markup(script)}  # noqa: S704
    return environment.from_string(page).render(**content, **own) + "\n"
