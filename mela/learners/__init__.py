"""Provide the parts of methods: base classes, checks of what they make, and parts that several methods share."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
