"""The definitions of this project that are called while something runs."""

import inspect
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType

from stages.code_hashes.reaching import PACKAGES
from tests.helpers.project import ROOT


class Calls:
    """Collect what is called within a block, as the names of definitions at the top of modules."""

    def __init__(self) -> None:
        self.seen: set[CodeType] = set()

    def __enter__(self) -> "Calls":
        threading.setprofile(self.note)
        sys.setprofile(self.note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]

    def note(self, frame: FrameType, event: str, argument: object) -> None:
        # the bodies of classes run when their modules are imported, and are no calls
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            self.seen.add(frame.f_code)

    def names(self) -> set[str]:
        found = set()
        for code in self.seen:
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
