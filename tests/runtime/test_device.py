"""The device of a process, memory that stays with it, and the number format that training takes on it."""

import sys

import pytest
import torch

from mela.errors import MelaError
from mela.runtime.device import choose_device, choose_dtype
from tests.helpers.processes import python

MEMORY = """
import resource, torch
from mela.runtime.device import keep_freed_memory
if {keep}: keep_freed_memory()
def step():
    maps = [torch.ones(2**n) for n in (22, 21, 22, 20, 23)]
for _ in range(8): step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(4): step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.fixture(autouse=True)
def keeps(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Holds True when this process was told to keep freed memory, which it is not."""
    told: list[bool] = []
    monkeypatch.setattr("mela.runtime.device.keep_freed_memory", lambda: told.append(True))
    return told


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> list[torch.device]:
    """A machine with two; the list holds those that were made the current one."""
    chosen: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    return chosen


@pytest.mark.parametrize(
    ("name", "local_rank", "expected"),
    [
        ("auto", None, "cuda:0"),
        ("auto", "1", "cuda:1"),
        ("cuda", "1", "cuda:1"),
        ("cuda:0", "1", "cuda:0"),
        ("cpu", "1", "cpu"),
    ],
)
def test_each_process_has_its_gpu(
    monkeypatch: pytest.MonkeyPatch,
    gpus: list[torch.device],
    keeps: list[bool],
    name: str,
    local_rank: str | None,
    expected: str,
) -> None:
    if local_rank is not None:
        monkeypatch.setenv("LOCAL_RANK", local_rank)
    assert choose_device(name) == torch.device(expected)
    assert gpus == ([] if expected == "cpu" else [torch.device(expected)])
    assert torch.backends.cudnn.allow_tf32 == (expected == "cpu")
    assert keeps == [True] * (expected == "cpu")


@pytest.mark.parametrize(
    ("variable", "name", "message"),
    [
        ("LOCAL_RANK", "auto", r"expected .* \(2 CUDA devices\), got cuda:2; .* no more proc"),
        ("LOCAL_WORLD_SIZE", "cuda:1", r"expected auto, cuda or cpu with 2 processes, got cuda:1$"),
    ],
    ids=["more processes than GPUs", "processes that share a GPU"],
)
def test_too_few_gpus(
    monkeypatch: pytest.MonkeyPatch, gpus: list[torch.device], variable: str, name: str, message: str
) -> None:
    monkeypatch.setenv(variable, "2")
    with pytest.raises(MelaError, match=f"^runtime.device: {message}"):
        choose_device(name)
    assert gpus == []


def test_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto") == torch.device("cpu")
    message = r"^runtime.device: expected .* \(0 CUDA devices\), got cuda:0; use auto or cpu"
    with pytest.raises(MelaError, match=message):
        choose_device("cuda")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="page faults are counted on Linux")
def test_freed_memory_is_used_again() -> None:
    """Feature maps of 4 to 32 MiB, again and again; a page fault for each 4 KiB that the system has to give."""

    def faults(keep: bool) -> int:
        return int(python("-c", MEMORY.format(keep=keep)).stdout)

    assert faults(keep=True) < 1000
    assert faults(keep=False) > 10_000, "this C library keeps freed memory by itself: keep_freed_memory is not needed"


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
