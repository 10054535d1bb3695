"""Keep the state of an interrupted training on disk, so that the next run goes on where it stopped.

The module is the project's own, since checkpoints of Lightning and Accelerate contain pickles, and neither notices
that parameters, inputs or code have changed.
"""

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save
from torch import Tensor

from mela.errors import MelaError, one_line
from mela.io.atomic import replacing
from mela.io.tensors import read_tensors

KIND = "mela.checkpoint/1"
CODE = ("mela", "stages")


@contextmanager
def steady(*files: Path) -> Iterator[dict[str, str]]:
    """Yield the SHA-256 of files that are read in the block.

    Raises
    ------
    MelaError
        A file is missing, or was changed meanwhile.
    """
    before = [_state(path) for path in files]
    yield {str(path): _digest(path) for path in files}
    for path, state in zip(files, before, strict=True):
        if _state(path) != state:
            raise MelaError(f"{path}: this file changed while it was being read; run again")


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def fingerprint(facts: Mapping[str, Any], files: Mapping[str, str]) -> str:
    """Return 64 hexadecimal digits that identify what decides a training.

    Parameters
    ----------
    facts : mapping
        Parameters and all else that matters, as JSON. The version of PyTorch and the source of the imported modules
        are added.
    files : mapping of str to str
        Inputs and the SHA-256 of their content.
    """
    # the name of the stage that runs is __main__, but not that in its specification
    specs = [getattr(module, "__spec__", None) for module in sys.modules.values()]
    modules = {spec.name: spec.origin for spec in specs if spec and spec.name.partition(".")[0] in CODE}
    known = {
        "facts": dict(facts),
        "torch": torch.__version__,
        "files": dict(files),
        "code": {name: _digest(Path(path)) for name, path in modules.items() if path is not None},
    }
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise MelaError(f"{path}: no such file; run `dvc repro`, or the stage that makes it, first") from None


def digest_of(tensors: Mapping[str, Tensor], facts: Any = None) -> str:
    """Return the SHA-256 of tensors by their names, and of facts that JSON can hold."""
    found = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name, value in sorted(tensors.items()):
        found.update(f"{name} {value.dtype} {list(value.shape)}".encode())
        found.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


@dataclass(kw_only=True)
class Checkpoint:
    """Keep the state of one training in a file while it runs.

    Attributes
    ----------
    path : Path
    fingerprint : str
        Fingerprint of the training; a file with another is not read.
    interval : float
        Seconds between two states, counted from when the training began.
    tell : callable
        Receives a line about a state that is found.
    """

    path: Path
    fingerprint: str
    interval: float
    tell: Callable[[str], None] = lambda line: None

    def __post_init__(self) -> None:
        self._written = time.monotonic()

    def due(self) -> bool:
        """Tell whether the last state is older than the interval."""
        return time.monotonic() - self._written >= self.interval

    def save(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Replace the last state, completely or not at all.

        Parameters
        ----------
        tensors : mapping of str to Tensor
        facts : mapping
            The rest of the state, as JSON has it.
        """
        copies = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
        content = {"kind": KIND, "fingerprint": self.fingerprint, "facts": facts, "digest": digest_of(copies, facts)}
        with replacing(self.path) as temporary:
            temporary.write_bytes(save(copies, metadata={"mela": json.dumps(content)}))
        self._written = time.monotonic()

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any], str] | None:
        """Return the last state and its digest; None if there is none or, as is told, none that fits."""
        if not self.path.exists():
            return None
        try:
            content, tensors = read_tensors(self.path)
        except (SafetensorError, OSError, ValueError) as error:
            self.tell(f"{self.path}: this checkpoint cannot be read ({one_line(error)}); starting from scratch")
            return None
        if content.get("kind") != KIND or content.get("fingerprint") != self.fingerprint:
            self.tell(f"{self.path}: this checkpoint belongs to another training; starting from scratch")
            return None
        facts, digest = content.get("facts"), content.get("digest")
        if not isinstance(facts, dict) or digest != digest_of(tensors, facts):
            self.tell(f"{self.path}: this checkpoint is damaged; starting from scratch")
            return None
        return tensors, facts, digest

    def remove(self) -> None:
        """Delete the state of a complete training."""
        self.path.unlink(missing_ok=True)
