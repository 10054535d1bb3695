"""The report page: one file that shows a run."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mela.reporting.page.content import page_content, run_figures

__all__ = ["page_content", "run_figures"]

# the module of each
_HOMES = {"page_content": "content", "run_figures": "content"}


def __getattr__(name: str) -> Any:
    """Import what `__all__` names when it is asked for, since much of it takes long to import."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
