"""Seed torch's global random state, for what knows no other source: initial weights and dropout."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's global generators on all devices within the block, and restore them afterwards."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield


def random_state(device: torch.device) -> Tensor:
    """Return the state (n,) of uint8 of torch's global generator for a device."""
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def set_random_state(device: torch.device, state: Tensor) -> None:
    """Set torch's global generator for a device to a state from `random_state`."""
    # PyTorch 2.11 reads a row of several states from where the first one begins
    state = state.clone()
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)
