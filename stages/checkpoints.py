"""Where the training stages keep their state while they run."""

from collections.abc import Sequence
from pathlib import Path

import torch

from mela.checkpoints import Checkpoint, fingerprint
from mela.compute import Compute
from mela.params import Block, RuntimeParams

FOLDER = Path(".checkpoints")


def checkpoint(
    stage: str,
    params: Path,
    blocks: Sequence[type[Block]],
    files: Sequence[Path],
    device: torch.device,
    compute: Compute,
) -> Checkpoint:
    """Where a training stage keeps its state: a file that no other parameters, inputs, code or machine share.

    Parameters
    ----------
    stage : str
    params : Path
    blocks : sequence of Block types
        All parameters that the stage depends on.
    files : sequence of Path
        Its inputs.
    device, compute
        What of the machine the numbers depend on.
    """
    machine = {"device": device.type, "dtype": str(compute.dtype), "processes": compute.team.size}
    facts = {block.block: block.read(params).model_dump(mode="json") for block in blocks}
    known = fingerprint({"stage": stage, "compiled": compute.compiled} | machine | facts, files)

    def tell(line: str) -> None:
        if compute.team.leads:
            print(f"{stage}: {line}", flush=True)

    path = FOLDER / f"{stage}-{known[:16]}.safetensors"
    interval = RuntimeParams.read(params).checkpoint_seconds
    return Checkpoint(path=path, fingerprint=known, interval=interval, tell=tell)
