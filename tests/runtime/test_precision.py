"""Which number format training takes on which machine."""

import pytest
import torch

from mela.errors import MelaError
from mela.runtime.device import choose_dtype

CPU, GPU = torch.device("cpu"), torch.device("cuda", 1)


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        (None, torch.float32),
        ({}, torch.float32),
        ({"avx512_bf16": False, "amx_bf16": False}, torch.float32),
        ({"avx512_bf16": True}, torch.bfloat16),
        ({"amx_bf16": True}, torch.bfloat16),
    ],
)
def test_auto_asks_the_processor(
    monkeypatch: pytest.MonkeyPatch, capabilities: dict[str, bool] | None, expected: torch.dtype
) -> None:
    """None: this PyTorch cannot tell."""
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    if capabilities is None:
        monkeypatch.delattr(torch.cpu, "get_capabilities")
    assert choose_dtype("auto", CPU) == expected
    assert choose_dtype("float32", CPU) == torch.float32
    assert choose_dtype("bfloat16", CPU) == torch.bfloat16


@pytest.mark.parametrize(("capability", "expected"), [((7, 5), torch.float32), ((8, 0), torch.bfloat16)])
def test_auto_asks_the_gpu_that_is_used(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], expected: torch.dtype
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", {GPU: capability}.__getitem__)
    assert choose_dtype("auto", GPU) == expected


def test_an_old_gpu_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 0))
    with pytest.raises(MelaError, match=r"^model.precision: expected a GPU that computes in bfloat16, got cuda:1; use"):
        choose_dtype("bfloat16", GPU)
