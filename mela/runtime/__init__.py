"""The machine that a program runs on: devices, processes, seeds, threads, and what it says on the way."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mela.runtime.compute import Compute
    from mela.runtime.console import log, speak
    from mela.runtime.device import choose_device, choose_dtype
    from mela.runtime.progress import SILENT, Watch, watched
    from mela.runtime.seeding import seeded
    from mela.runtime.team import ALONE, Team
    from mela.runtime.threads import on_all_threads
    from mela.runtime.usage import measured

__all__ = [
    "ALONE",
    "SILENT",
    "Compute",
    "Team",
    "Watch",
    "choose_device",
    "choose_dtype",
    "log",
    "measured",
    "on_all_threads",
    "seeded",
    "speak",
    "watched",
]

# the module of each
_HOMES = {
    "ALONE": "team",
    "Compute": "compute",
    "SILENT": "progress",
    "Team": "team",
    "Watch": "progress",
    "choose_device": "device",
    "choose_dtype": "device",
    "log": "console",
    "measured": "usage",
    "on_all_threads": "threads",
    "seeded": "seeding",
    "speak": "console",
    "watched": "progress",
}


def __getattr__(name: str) -> Any:
    """Import what `__all__` names when it is asked for, since much of it takes long to import."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
