"""Infer the hidden global classes behind independently labelled few-shot tasks: meta label learning.

Wang, Pontil and Ciliberto, "The Role of Global Labels in Few-Shot Classification and How to Infer Them", 2021.
"""

from typing import Any

import lazy_loader

_attached, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Return the version of the installed package, or import what the stub beside this file names."""
    if name == "__version__":
        from mela.runtime.release import own_version

        return own_version()
    return _attached(name)
