"""What a run tells of itself: metrics, tables, figures, and the report page."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mela.reporting.figures import save_figures
    from mela.reporting.metrics import read_metrics
    from mela.reporting.published import PUBLISHED, SYSTEMS
    from mela.reporting.summary import summary_rows

__all__ = ["PUBLISHED", "SYSTEMS", "read_metrics", "save_figures", "summary_rows"]

# the module of each
_HOMES = {
    "PUBLISHED": "published",
    "SYSTEMS": "published",
    "read_metrics": "metrics",
    "save_figures": "figures",
    "summary_rows": "summary",
}


def __getattr__(name: str) -> Any:
    """Import what `__all__` names when it is asked for, since much of it takes long to import."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
