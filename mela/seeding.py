"""Torch's global random state, for what knows no other source: initial weights and dropout."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's global generators within the block, on all devices, and give them back as they were."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield
