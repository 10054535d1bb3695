"""Meta label learning: hidden global classes inferred from independently labelled few-shot tasks.

Wang, Pontil and Ciliberto, "The Role of Global Labels in Few-Shot Classification and How to Infer Them", 2021.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mela.classifier import FewShotClassifier

    __version__: str

__all__ = ["FewShotClassifier"]


def __getattr__(name: str) -> Any:
    """Import what `__all__` names when it is asked for: it needs torch, and most stages do not. So with the version."""
    if name == "FewShotClassifier":
        from mela.classifier import FewShotClassifier

        return FewShotClassifier
    if name == "__version__":
        from importlib.metadata import version

        return version("mela")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
