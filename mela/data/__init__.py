"""What training draws from: images, their augmentation, and tasks."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mela.data.augmentation import Augmentation
    from mela.data.episodes import Episodes, FlatTasks
    from mela.data.images import ImageLoader
    from mela.data.sampling import draw_split, draw_with_replacement, draw_without_replacement, given_split

__all__ = [
    "Augmentation",
    "Episodes",
    "FlatTasks",
    "ImageLoader",
    "draw_split",
    "draw_with_replacement",
    "draw_without_replacement",
    "given_split",
]

# the module of each
_HOMES = {
    "Augmentation": "augmentation",
    "Episodes": "episodes",
    "FlatTasks": "episodes",
    "ImageLoader": "images",
    "draw_split": "sampling",
    "draw_with_replacement": "sampling",
    "draw_without_replacement": "sampling",
    "given_split": "sampling",
}


def __getattr__(name: str) -> Any:
    """Import what `__all__` names when it is asked for, since much of it takes long to import."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
