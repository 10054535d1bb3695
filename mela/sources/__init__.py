"""Where images come from: built-in glyphs, published benchmarks, and folders of your own."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mela.sources.open import open_source
    from mela.sources.packing import pack_images
    from mela.sources.source import ImageSource

__all__ = ["ImageSource", "open_source", "pack_images"]

# the module of each
_HOMES = {"ImageSource": "source", "open_source": "open", "pack_images": "packing"}


def __getattr__(name: str) -> Any:
    """Import what `__all__` names when it is asked for, since much of it takes long to import."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
