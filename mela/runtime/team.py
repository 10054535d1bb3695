"""Join the processes that train together, and share their work."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from mela.runtime.launch import launched


@dataclass(frozen=True, kw_only=True)
class Team:
    """Describe a process among `size` that run the same program, of which the first (`rank` 0) reports and writes."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """True if this process reports and writes."""
        return self.rank == 0

    def share(self, count: int) -> slice:
        """Return this process's part of `count` things; parts are adjacent and differ by one thing at most."""
        each, left = divmod(count, self.size)
        start = self.rank * each + min(self.rank, left)
        return slice(start, start + each + (self.rank < left))

    def total(self, tensor: Tensor) -> Tensor:
        """Return the sum of the processes' tensors of one shape, the same in all of them."""
        if self.size > 1:
            dist.all_reduce(tensor)
        return tensor

    def gather(self, rows: Tensor, count: int) -> Tensor | None:
        """Return all `count` rows (count, ...), each process's `share`, in the first process; None in the others."""
        if self.size == 1:
            return rows
        # parts have to be of one size: the first share is the largest, and no other lacks more than a row
        longest = -(-count // self.size)
        padded = torch.cat([rows, rows.new_zeros(longest - len(rows), *rows.shape[1:])])
        parts = [torch.empty_like(padded) for _ in range(self.size)] if self.leads else None
        dist.gather(padded, parts)
        if parts is None:
            return None
        each, left = divmod(count, self.size)
        return torch.cat([part[: each + (rank < left)] for rank, part in enumerate(parts)])


ALONE = Team()


@contextmanager
def joined(device: torch.device) -> Iterator[Team]:
    """Yield the team of this process within the block: `ALONE` unless it was `launched`.

    GPUs talk by NCCL, CPUs by Gloo. After an error the process has to end, and the others wait for that.
    """
    if not launched():
        yield ALONE
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    yield Team(rank=dist.get_rank(), size=dist.get_world_size())
    # a DistributedDataParallel that is found to be garbage later, and is the last to hold the group, can wait for ever:
    # it keeps Python's lock, which the group's threads want before they end
    gc.collect()
    # not after an error: the others would fail too, before this process can say why
    dist.destroy_process_group()
