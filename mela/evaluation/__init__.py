"""Accuracy on new tasks, the heads that are fitted to them, and scores of labels."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
