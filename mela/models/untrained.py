"""Write a file in the place of an embedding that was not trained, without the seconds that importing torch takes."""

import json
from pathlib import Path

from safetensors.numpy import save

from mela.io.atomic import replacing

NOTHING = "mela.nothing/1"


def save_nothing(path: Path) -> None:
    """Write a file that says that no embedding was trained: no tensors, and a header as of `mela.io.tensors`."""
    with replacing(path) as temporary:
        temporary.write_bytes(save({}, metadata={"mela": json.dumps({"kind": NOTHING})}))
