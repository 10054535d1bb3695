"""Store tensors as Safetensors files with a JSON object in the header."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from mela.errors import MelaError, raise_if_machine
from mela.io.atomic import replacing


def read_tensors(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the object under the key ``mela`` of a file's header, empty if there is none, and all tensors.

    Raises
    ------
    SafetensorError, OSError, ValueError
        It is no such file.
    """
    # safetensors takes a file that must not be read for a missing one
    path.open("rb").close()
    with safe_open(path, framework="pt") as file:
        try:
            header = json.loads((file.metadata() or {}).get("mela", "{}"))
        except RecursionError:
            raise ValueError("a header that is nested too deeply") from None
        if not isinstance(header, dict):
            raise ValueError(f"a header that is {type(header).__name__}, not an object")
        return header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def write_trained(path: Path, trained: nn.Module, about: Mapping[str, Any]) -> None:
    """Write all tensors of a module, with an object in the header, whole or not at all."""
    tensors = {name: value.detach().cpu().contiguous() for name, value in trained.state_dict().items()}
    # one key only: safetensors writes several in random order
    header = {"mela": json.dumps(about, sort_keys=True)}
    with replacing(path) as temporary:
        temporary.write_bytes(save(tensors, metadata=header))


def read_trained(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return what `write_trained` wrote: the object in the header and the tensors.

    Raises
    ------
    MelaError
        The file is damaged, or holds something else.
    """
    try:
        return read_tensors(path)
    except (SafetensorError, OSError, ValueError, MemoryError) as error:
        raise_if_machine(error, path)
        raise MelaError(f"{path}: expected a safetensors file, got {error}; train it again") from None
