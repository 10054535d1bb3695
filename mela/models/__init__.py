"""Embeddings: networks, their files, and the features that they give images."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mela.models.backbones import Backbone, build_backbone
    from mela.models.features import extract_features, feature_batches
    from mela.models.files import configure, load_model, save_model

__all__ = ["Backbone", "build_backbone", "configure", "extract_features", "feature_batches", "load_model", "save_model"]

# the module of each
_HOMES = {
    "Backbone": "backbones",
    "build_backbone": "backbones",
    "configure": "files",
    "extract_features": "features",
    "feature_batches": "features",
    "load_model": "files",
    "save_model": "files",
}


def __getattr__(name: str) -> Any:
    """Import what `__all__` names when it is asked for, since much of it takes long to import."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
