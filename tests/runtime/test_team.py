"""Processes that share the work give what one process gives; real processes, by torchrun and by `runtime.processes`."""

import re
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import nn

from mela.errors import MelaError
from mela.io import feature_tables, store
from mela.models.files import is_trained
from mela.params import RuntimeParams
from mela.runtime.compute import Compute, SharedBatchNorm, share_statistics
from mela.runtime.launch import launched
from mela.runtime.team import ALONE, Team, joined
from mela.training.loop import _dropout_seed
from stages.common import paths
from stages.common.computing import computing
from tests.helpers import training
from tests.helpers.processes import python
from tests.helpers.project import change, run_stages, stage_words

pytestmark = pytest.mark.slow

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]


@given(count=st.integers(0, 50), size=st.integers(1, 7))
def test_shares_are_everything_once(count: int, size: int) -> None:
    things = list(range(count))
    shares = [things[Team(rank=rank, size=size).share(count)] for rank in range(size)]
    assert [thing for share in shares for thing in share] == things
    lengths = [len(share) for share in shares]
    assert lengths == sorted(lengths, reverse=True)
    assert max(lengths) - min(lengths) <= 1


def test_one_process_is_no_team() -> None:
    assert not launched({})
    assert not launched({"WORLD_SIZE": "1"})
    assert launched({"WORLD_SIZE": "2"})
    with joined(torch.device("cpu")) as team:
        assert team == ALONE
    rows = torch.arange(6.0).view(3, 2)
    assert ALONE.total(rows) is rows
    assert ALONE.gather(rows, 3) is rows


def test_a_team_learns_what_one_process_learns(tmp_path: Path) -> None:
    """In float64, since training magnifies differences of rounding a hundredfold in a step or two."""
    training.main(str(tmp_path / "alone.safetensors"))
    together = python(*TORCHRUN, "2", "-m", training.__name__, "team.safetensors", folder=tmp_path)
    assert together.returncode == 0, together.stderr
    expected, found = load_file(tmp_path / "alone.safetensors"), load_file(tmp_path / "team.safetensors")
    assert list(found) == list(expected)
    for name, value in expected.items():
        tolerance = 1e-5 if value.dtype == torch.float32 else 1e-9
        torch.testing.assert_close(found[name], value, rtol=tolerance, atol=tolerance)


def test_shared_statistics_keep_names_weights_and_evaluation() -> None:
    plain = nn.BatchNorm2d(3)
    assert list(SharedBatchNorm(3).state_dict()) == list(plain.state_dict())
    network = nn.Sequential(nn.Conv2d(1, 3, 3), plain, nn.Sequential(nn.BatchNorm2d(3)))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    share_statistics(network)
    assert [type(module) for module in network.modules()].count(SharedBatchNorm) == 2
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert network[1].weight is plain.weight
    maps = torch.rand(4, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    assert torch.equal(network.eval()[1](maps), plain.eval()(maps))


def test_alone_nothing_is_wrapped() -> None:
    network = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3))
    Compute().forward_of(network)
    assert type(network[1]) is nn.BatchNorm2d


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_layers_are_computed_in_the_type_and_outputs_are_float32(dtype: torch.dtype) -> None:
    seen = []

    class Look(nn.Module):
        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            seen.append(batch.dtype)
            return batch

    network = nn.Sequential(nn.Linear(4, 4), Look())
    outputs = Compute(dtype=dtype).forward_of(network)(torch.rand(2, 4))
    assert seen == [dtype]
    assert outputs.dtype == torch.float32
    outputs.sum().backward()
    assert network[0].weight.grad.dtype == torch.float32


def test_compiled_networks_compute_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the compiler's front end; its back end needs a C++ compiler, which not every machine has."""
    compiled = []
    compile_it = nn.Module.compile
    monkeypatch.setattr(nn.Module, "compile", lambda self: (compiled.append(self), compile_it(self, backend="eager")))
    network = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    batch = torch.rand(5, 4)
    expected = network(batch)
    torch.testing.assert_close(Compute(compiled=True).forward_of(network)(batch), expected)
    assert list(network.state_dict()) == ["0.weight", "0.bias"]
    assert compiled == [network]


def test_stages_share_their_work(project: Path) -> None:
    """`runtime.processes` starts them; a slow and short first training differs by rounding only."""
    few = {"embed.learning_rate": 0.001, "embed.tasks_per_epoch": 2, "embed.tasks_per_step": 2}
    change(project / "params.yaml", few | {"model.precision": "float32"})
    run_stages("images", "manifest", "embed", "extract", "label_oracle")
    change(project / "params.yaml", {"runtime.processes": 2})
    curve, model = paths.EMBED_CURVE.read_text(), load_file(paths.INITIAL)
    ids, features = feature_tables.read_features(paths.FEATURES)
    for stage in ("embed", "extract", "pretrain@oracle"):
        done = python(*stage_words(stage), folder=project)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count(f"{stage}: ") == {"embed": 3, "extract": 2, "pretrain@oracle": 4}[stage]
        assert done.stdout.count("of memory at most") == 1, "told once for all processes"
    assert [float(x) for x in paths.EMBED_CURVE.read_text().split("\n")[1].split(",")] == pytest.approx(
        [float(x) for x in curve.split("\n")[1].split(",")], rel=1e-4
    )
    for name, value in load_file(paths.INITIAL).items():
        torch.testing.assert_close(value, model[name], rtol=1e-3, atol=1e-3)
    shared_ids, shared = feature_tables.read_features(paths.FEATURES)
    assert (shared_ids == ids).all()
    assert shared == pytest.approx(features, rel=0.05, abs=0.05)
    assert store.read_json(paths.PRETRAIN / "oracle.json")["precision"] == "float32"
    assert is_trained(paths.ORACLE)


def test_errors_of_a_team_are_one_line(project: Path) -> None:
    run_stages("images", "manifest")
    change(project / "params.yaml", {"runtime.processes": 2, "embed.tasks_per_step": 1})
    done = python("-m", "stages.embed", folder=project)
    assert done.returncode == 1
    assert re.fullmatch(r"error: embed.tasks_per_step: .* 1 tasks, but 2 are needed .*\n", done.stderr)
    assert not paths.INITIAL.exists()


ALONE_WITH_IT = """
import os, signal
from pathlib import Path
import torch
from mela.errors import MelaError
from mela.params import RuntimeParams
from mela.runtime.team import joined
from stages.common.processes import run_shared

def main(params: Path = Path("params.yaml")) -> None:
    with joined(torch.device("cpu")) as team:
        team.total(torch.ones(1))
        if team.rank == {rank}:
            {event}
        team.total(torch.ones(1))

if __name__ == "__main__":
    run_shared(main)
"""


@pytest.mark.parametrize(
    ("rank", "event", "said"),
    [
        (0, "raise MelaError('task 17: broken')", "task 17: broken"),
        (1, "raise MelaError('task 17: broken')", "task 17: broken"),
        (1, "os.kill(os.getpid(), signal.SIGKILL)", "process 1 of 2 was ended by signal 9; "),
    ],
    ids=["the first", "another", "killed"],
)
def test_the_end_of_one_process_is_told_and_ends_all(project: Path, rank: int, event: str, said: str) -> None:
    change(project / "params.yaml", {"runtime.processes": 2})
    (project / "alone.py").write_text(ALONE_WITH_IT.format(rank=rank, event=event), encoding="utf-8")
    done = python("-m", "alone", folder=project)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(f"error: {said}")


def test_compiling_and_sharing_do_not_go_together() -> None:
    with pytest.raises(MelaError, match=r"^runtime.compile works with one process only"):
        Compute(team=Team(rank=0, size=2), compiled=True).forward_of(nn.Linear(1, 1))


def test_each_process_draws_dropout_of_its_own() -> None:
    def drawn(rank: int) -> torch.Tensor:
        return torch.rand(4, generator=torch.Generator().manual_seed(_dropout_seed(5, rank)))

    assert torch.equal(drawn(0), torch.rand(4, generator=torch.Generator().manual_seed(5)))
    assert not torch.equal(drawn(1), drawn(0))
    assert not torch.equal(drawn(1), drawn(2))


def test_a_gpu_says_what_it_guarantees(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    runtime = RuntimeParams(device="auto", processes=1, compile=False, checkpoint_seconds=60)
    for kind, lines in {"cuda": 1, "cpu": 0}.items():
        monkeypatch.setattr("stages.common.computing.choose_device", lambda name, kind=kind: torch.device(kind))
        with computing("embed", "steps", runtime) as (device, compute, _):
            assert device.type == kind
            assert compute.dtype == torch.float32
        assert capsys.readouterr().out.count("on a GPU: the same seed gives the same draws; ") == lines
