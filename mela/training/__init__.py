"""Train models: the loop over epochs, checkpoints, and the files of trained methods."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
