"""The device that ``runtime.device`` asks for."""

import torch

from mela.errors import MelaError


def choose_device(name: str) -> torch.device:
    """``auto`` takes CUDA where there is one; asking for a device that is not there is an error."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda" and (not torch.cuda.is_available() or (device.index or 0) >= torch.cuda.device_count()):
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        raise MelaError(
            f"runtime.device: expected a device of this machine ({count} CUDA devices), got {name}; use auto or cpu"
        )
    return device
