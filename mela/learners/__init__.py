"""What a method is made of: base classes, the checks of what it makes, and parts that several methods share."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
