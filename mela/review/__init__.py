"""Ask people whether labels are the same, on a page of this machine, and keep their answers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
