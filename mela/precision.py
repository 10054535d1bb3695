"""The number format of training: reduced where the machine computes in it."""

from typing import Any, Literal

import torch

from mela.errors import MelaError

Precision = Literal["auto", "float32", "bfloat16"]


def choose_dtype(precision: Precision, device: torch.device) -> torch.dtype:
    """The type in which the backbone is computed while it is trained; weights and sums stay float32 in any case.

    ``auto`` takes bfloat16 where the device has instructions for it: NVIDIA GPUs since Ampere, processors with
    AVX512_BF16 or AMX (PyTorch tells since 2.10; before, CPUs train in float32).

    Raises
    ------
    MelaError
        bfloat16 is asked for on a GPU that cannot compute in it.
    """
    if precision == "float32":
        return torch.float32
    able = _gpu_has_bfloat16(device) if device.type == "cuda" else _cpu_has_bfloat16()
    if precision == "bfloat16" and device.type == "cuda" and not able:
        raise MelaError(f"model.precision: expected a GPU that computes in bfloat16, got {device}; use auto or float32")
    return torch.bfloat16 if able or precision == "bfloat16" else torch.float32


def _gpu_has_bfloat16(device: torch.device) -> bool:
    return torch.cuda.get_device_capability(device) >= (8, 0)


def _cpu_has_bfloat16() -> bool:
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))
