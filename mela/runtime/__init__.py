"""Handle the machine that a program runs on: devices, processes, seeds, threads, and progress."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
