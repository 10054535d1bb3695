"""The definitions of this project that are called while something runs."""

import inspect
import threading
from cProfile import Profile
from pathlib import Path
from types import CodeType, FrameType

from stages.code_hashes.reached_code import PACKAGES
from tests.helpers.project import ROOT


class Calls:
    """Collect what is called within a block, as the names of definitions at the top of modules."""

    def __init__(self) -> None:
        self.seen: set[CodeType] = set()

    def __enter__(self) -> "Calls":
        # this profiler takes a fraction of the time of `note`, but sees no other threads
        self.profile = Profile(builtins=False)
        threading.setprofile(self.note)
        self.profile.enable()
        return self

    def __exit__(self, *_: object) -> None:
        self.profile.disable()
        threading.setprofile(None)  # type: ignore[arg-type]
        self.seen.update(one.code for one in self.profile.getstats() if isinstance(one.code, CodeType))

    def note(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            self.seen.add(frame.f_code)

    def names(self) -> set[str]:
        found = set()
        for code in self.seen:
            # the bodies of classes run when their modules are imported, and are no calls
            if not code.co_flags & inspect.CO_OPTIMIZED:
                continue
            # templates of pages have file names, too
            path = Path(code.co_filename)
            if path.suffix != ".py" or not path.is_relative_to(ROOT):
                continue
            if path.parts[len(ROOT.parts)] not in PACKAGES:
                continue
            top = code.co_qualname.split(".")[0]
            # Python asks a package for a name that turns out to be one of its modules
            if (path.name, top) == ("__init__.py", "__getattr__"):
                continue
            if not top.startswith("<"):
                parts = path.relative_to(ROOT).with_suffix("").parts
                found.add(".".join([*(parts[:-1] if parts[-1] == "__init__" else parts), top]))
        return found
