"""Processes that share the batches of one training, on one machine or several."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Team:
    """A process among `size`, which all run the same program and of which the first (`rank` 0) reports and writes."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process reports and writes."""
        return self.rank == 0

    def share(self, count: int) -> slice:
        """The part of this process among `count` things; parts are adjacent and differ by one thing at most."""
        each, left = divmod(count, self.size)
        start = self.rank * each + min(self.rank, left)
        return slice(start, start + each + (self.rank < left))

    def total(self, tensor: Tensor) -> Tensor:
        """Sum of the processes' tensors of one shape, the same in all of them."""
        if self.size > 1:
            dist.all_reduce(tensor)
        return tensor

    def gather(self, rows: Tensor) -> Tensor | None:
        """Rows (n_r, m) of all processes below each other for the first, None for the others.

        Numbers of rows may differ, by one at most and falling, as `share` makes them.
        """
        if self.size == 1:
            return rows
        counts = [torch.zeros(1, dtype=torch.int64, device=rows.device) for _ in range(self.size)]
        dist.all_gather(counts, torch.tensor([len(rows)], device=rows.device))
        longest = int(max(counts))
        padded = torch.cat([rows, rows.new_zeros(longest - len(rows), *rows.shape[1:])])
        parts = [torch.empty_like(padded) for _ in counts] if self.leads else None
        dist.gather(padded, parts)
        if parts is None:
            return None
        return torch.cat([part[: int(count)] for part, count in zip(parts, counts, strict=True)])


ALONE = Team()


def launched(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process was started as one of several, by torchrun's variables."""
    return int(environment.get("WORLD_SIZE", "1")) > 1


@contextmanager
def joined(device: torch.device) -> Iterator[Team]:
    """The team of this process within the block: `ALONE` unless it was `launched`.

    GPUs talk by NCCL, CPUs by Gloo.
    """
    if not launched():
        yield ALONE
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Team(rank=dist.get_rank(), size=dist.get_world_size())
    finally:
        dist.destroy_process_group()
