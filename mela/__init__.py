"""Meta label learning: hidden global classes inferred from independently labelled few-shot tasks.

Wang, Pontil and Ciliberto, "The Role of Global Labels in Few-Shot Classification and How to Infer Them", 2021.
"""

from typing import TYPE_CHECKING, Any

from mela.errors import MelaError

if TYPE_CHECKING:
    from mela.inference.classifier import FewShotClassifier
    from mela.labeling.labeler import LearnLabeler

    __version__: str

__all__ = ["FewShotClassifier", "LearnLabeler", "MelaError"]


def __getattr__(name: str) -> Any:
    """Import an estimator when it is asked for: one needs torch, and most stages need neither. So with the version."""
    if name == "FewShotClassifier":
        from mela.inference.classifier import FewShotClassifier

        return FewShotClassifier
    if name == "LearnLabeler":
        from mela.labeling.labeler import LearnLabeler

        return LearnLabeler
    if name == "__version__":
        from importlib.metadata import version

        return version("mela")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
