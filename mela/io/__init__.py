"""Files on disk: written whole or not at all, and checked when they are read."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
