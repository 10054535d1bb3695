"""The device that ``runtime.device`` asks for, and memory for feature maps on a CPU."""

import ctypes
import os
import sys

import torch

from mela.errors import MelaError

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_NEVER, _LARGE, _ONCE_LARGEST = 2**31 - 1, 2**30, 2**25


def choose_device(name: str) -> torch.device:
    """The device, made ready; ``auto`` takes CUDA where there is one, and one that is not there is an error.

    ``auto`` and ``cuda`` are a GPU of its own for each of the processes that torchrun starts on a machine.
    """
    own = int(os.environ.get("LOCAL_RANK", "0"))
    if name == "auto":
        device = torch.device("cuda", own) if torch.cuda.is_available() else torch.device("cpu")
    else:
        device = torch.device(name)
        processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        if device.index is not None and processes > 1:
            raise MelaError(f"runtime.device: expected auto, cuda or cpu with {processes} processes, got {name}")
        if device == torch.device("cuda"):
            device = torch.device("cuda", own)
    if device.type == "cuda" and (not torch.cuda.is_available() or (device.index or 0) >= torch.cuda.device_count()):
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        raise MelaError(
            f"runtime.device: expected a device of this machine ({count} CUDA devices), got {device}; use auto or cpu, "
            "and no more processes than devices"
        )
    if device.type == "cuda":
        torch.cuda.set_device(device)
        # what is said to be float32 shall be, convolutions too
        torch.backends.cudnn.allow_tf32 = False
    else:
        keep_freed_memory()
    return device


def keep_freed_memory() -> None:
    """Keep memory that this process has freed, to be used again; only glibc needs to be told, others stay as they are.

    By default glibc gives large blocks back to the system, and each layer of a network that is computed on a CPU gets
    its feature maps page by page anew, which takes longer than most layers do.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, _NEVER)
        # older versions refuse more than 32 MiB
        if not mallopt(_M_MMAP_THRESHOLD, _LARGE):
            mallopt(_M_MMAP_THRESHOLD, _ONCE_LARGEST)
