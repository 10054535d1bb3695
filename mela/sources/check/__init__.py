"""The checks of your own data behind `mela data check`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mela.sources.check.aside import set_aside
    from mela.sources.check.inspect import Findings
    from mela.sources.check.layout import Layout, find_layout
    from mela.sources.check.suggest import fill_preset

__all__ = ["Findings", "Layout", "fill_preset", "find_layout", "set_aside"]

# the module of each
_HOMES = {
    "Findings": "inspect",
    "Layout": "layout",
    "fill_preset": "suggest",
    "find_layout": "layout",
    "set_aside": "aside",
}


def __getattr__(name: str) -> Any:
    """Import what `__all__` names when it is asked for, since much of it takes long to import."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
