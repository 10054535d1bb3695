"""Say where the training stages keep their state while they run."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from mela.blocks import Block
from mela.runtime.compute import Compute
from mela.runtime.console import log
from mela.training.checkpoint import Checkpoint, fingerprint

FOLDER = Path(".checkpoints")


def checkpoint(
    stage: str,
    blocks: Sequence[Block],
    files: Mapping[str, str],
    device: torch.device,
    compute: Compute,
    seconds: float,
) -> Checkpoint:
    """Return where a training stage keeps its state: a file of these parameters, inputs, code and machine alone.

    Parameters
    ----------
    stage : str
    blocks : sequence of Block
        All parameters that the stage depends on, the very ones that it uses.
    files : mapping of str to str
        Its inputs and their SHA-256.
    device, compute
        What of the machine the numbers depend on.
    seconds : float
        Seconds between two states.
    """
    machine = {"device": device.type, "dtype": str(compute.dtype), "processes": compute.team.size}
    facts = {block.block: block.model_dump(mode="json") for block in blocks}
    known = fingerprint({"stage": stage, "compiled": compute.compiled} | machine | facts, files)

    def tell(line: str) -> None:
        if compute.team.leads:
            log.info(f"{stage}: {line}")

    path = FOLDER / f"{stage}-{known[:16]}.safetensors"
    return Checkpoint(path=path, fingerprint=known, interval=seconds, tell=tell)
