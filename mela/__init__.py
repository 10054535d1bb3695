"""Meta label learning: hidden global classes inferred from independently labelled few-shot tasks.

Wang, Pontil and Ciliberto, "The Role of Global Labels in Few-Shot Classification and How to Infer Them", 2021.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mela.classifier import FewShotClassifier

__all__ = ["FewShotClassifier"]


def __getattr__(name: str) -> Any:
    """Import what `__all__` names when it is asked for: it needs torch, and most stages do not."""
    if name == "FewShotClassifier":
        from mela.classifier import FewShotClassifier

        return FewShotClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
