"""Choose the device to compute on, and the number format."""

import ctypes
import os
import sys
from typing import Any, Literal

import torch

from mela.errors import MelaError

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_NEVER, _LARGE, _ONCE_LARGEST = 2**31 - 1, 2**30, 2**25


def choose_device(name: str) -> torch.device:
    """Return the device, made ready; ``auto`` takes CUDA if it is available, and a missing device is an error.

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
    """Keep freed memory for reuse; only glibc needs to be told, others stay as they are.

    By default glibc gives large blocks back to the system, and each layer of a network that is computed on a CPU gets
    its feature maps page by page again, which takes longer than most layers do.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, _NEVER)
        # older versions refuse more than 32 MiB
        if not mallopt(_M_MMAP_THRESHOLD, _LARGE):
            mallopt(_M_MMAP_THRESHOLD, _ONCE_LARGEST)


Precision = Literal["auto", "float32", "bfloat16"]


def choose_dtype(precision: Precision, device: torch.device) -> torch.dtype:
    """Return the type in which the backbone is computed in training; weights and sums are always float32.

    ``auto`` takes bfloat16 where the device has instructions for it: NVIDIA GPUs since Ampere, processors with
    AVX512_BF16 or AMX (PyTorch tells since 2.10; before, CPUs train in float32).

    Raises
    ------
    MelaError
        bfloat16 is asked for on a GPU that cannot compute in it.
    """
    if precision == "float32":
        return torch.float32
    if device.type == "cuda":
        able = torch.cuda.get_device_capability(device) >= (8, 0)
    else:
        capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
        able = bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))
    if precision == "bfloat16" and device.type == "cuda" and not able:
        raise MelaError(f"model.precision: expected a GPU that computes in bfloat16, got {device}; use auto or float32")
    return torch.bfloat16 if able or precision == "bfloat16" else torch.float32
