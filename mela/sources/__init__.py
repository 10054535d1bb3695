"""Provide images: built-in glyphs, published benchmarks, and folders of your own."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
