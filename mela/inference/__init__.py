"""Trained models in use: classify images, and export a model with its card."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mela.inference.classifier import FewShotClassifier
    from mela.inference.embedding import Embedding
    from mela.inference.export import Export
    from mela.inference.provenance import Provenance

__all__ = ["Embedding", "Export", "FewShotClassifier", "Provenance"]

# the module of each
_HOMES = {"Embedding": "embedding", "Export": "export", "FewShotClassifier": "classifier", "Provenance": "provenance"}


def __getattr__(name: str) -> Any:
    """Import what `__all__` names when it is asked for, since much of it takes long to import."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
