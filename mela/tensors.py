"""Safetensors files with a JSON object in the header."""

import json
from pathlib import Path
from typing import Any

from safetensors import safe_open
from torch import Tensor


def read_tensors(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The object under the key ``mela`` of a file's header, empty where there is none, and all tensors.

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
