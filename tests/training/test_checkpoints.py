"""A training that was interrupted ends like one that was not, to the bit, and goes on from its own state only."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mela.data.augmentation import Augmentation
from mela.errors import MelaError
from mela.io import store
from mela.methods.feat import FEAT
from mela.methods.moco import MoCo
from mela.methods.s2m2 import S2M2Learner
from mela.params import AugmentParams, EmbedParams, ModelParams
from mela.runtime.compute import Compute
from mela.runtime.seeding import seeded
from mela.runtime.team import Team
from mela.runtime.usage import measured
from mela.training.checkpoint import Checkpoint, fingerprint, steady
from mela.training.embeddings import pretrain, train_embedding
from mela.training.loop import Epoch, Part, Training, fit, shuffled_batches
from mela.training.on_images import train_on_labels, train_without_labels
from mela.training.on_tasks import train_on_tasks
from mela.training.resume import Progress
from mela.training.schedule import Schedule
from mela.training.targets import Targets
from stages.common import paths
from stages.common.checkpoints import checkpoint
from tests.helpers.checkpoint import SCHEDULE
from tests.helpers.embedding import IMAGES, episodes
from tests.helpers.embedding import backbone as small_backbone
from tests.helpers.processes import python
from tests.helpers.project import change, run_stages

pytestmark = pytest.mark.slow

TARGETS = Targets(image_ids=np.arange(40), labels=np.arange(40) % 4)
AUGMENTATION = Augmentation(crop_padding=2, flip=True, jitter=0.3)

Trained = tuple[dict[str, Tensor], list[Epoch]]
Train = Callable[[Checkpoint | None], Trained]


class StoppedError(Exception):
    """In place of a kill."""


class Stopping(Checkpoint):
    """Stops the training when it is asked for the n-th time whether it is time for a checkpoint, after writing it."""

    steps: int

    def save(self, *arguments: Any) -> None:
        super().save(*arguments)
        self.steps -= 1
        if self.steps == 0:
            raise StoppedError


def stopping(path: Path, steps: int) -> Stopping:
    checkpoint = Stopping(path=path, fingerprint="a", interval=0)
    checkpoint.steps = steps
    return checkpoint


def training(stage: str, checkpoint: Checkpoint | None) -> Training:
    return Training(stage=stage, schedule=SCHEDULE, seed=4, augmentation=AUGMENTATION, checkpoint=checkpoint)


def small(checkpoint: Checkpoint | None, schedule: Schedule = SCHEDULE) -> Trained:
    """Four steps an epoch, with dropout, BatchNorm, and noise from the generator of the data."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))
    generator = torch.Generator().manual_seed(2)
    inputs, labels = torch.randn(19, 4, generator=torch.Generator().manual_seed(0)), torch.arange(19) % 3

    def parts(rows: Tensor) -> Iterator[Part]:
        for some in rows.tensor_split(2):
            logits = model(inputs[some] + 0.1 * torch.randn(len(some), 4, generator=generator))
            loss = F.cross_entropy(logits, labels[some], reduction="sum") / len(rows)
            yield loss, (logits.argmax(1) == labels[some]).sum() / len(rows)

    curve = fit(
        model,
        lambda: map(parts, shuffled_batches(19, 5, generator)),
        Training(stage="embed", schedule=schedule, seed=3, checkpoint=checkpoint),
        generator=generator,
        steps_per_epoch=4,
    )
    return model.state_dict(), curve


def small_in_every_step(checkpoint: Checkpoint | None) -> Trained:
    """With a learning rate that falls in every step, and biases that do not decay."""
    return small(checkpoint, replace(SCHEDULE, scheduler="cosine", nesterov=True, decay_norms=False))


def backbone() -> Any:
    """With DropBlock, whose counter is part of the state."""
    return small_backbone("resnet12", drop_rate=0.2)


def embedding(checkpoint: Checkpoint | None) -> Trained:
    """Of tasks of two shapes, two in a step, with classes that are rotated at random."""
    tasks, model = episodes([([2, 2], 2), ([2, 2, 2], 2)] * 4), backbone()
    how = {"ridge": 1.0, "normalize": False, "tasks_per_epoch": 7, "tasks_per_step": 2}
    rotated = replace(training("embed", checkpoint), rotated_classes=True)
    curve = train_embedding(model, IMAGES, tasks, rotated, **how)
    return model.state_dict(), curve


def classifier(checkpoint: Checkpoint | None) -> Trained:
    model = backbone()
    last, curve = pretrain(model, IMAGES, TARGETS, training("pretrain", checkpoint), batch_size=12)
    return model.state_dict() | {"last": last.weight}, curve


def method_on_tasks(checkpoint: Checkpoint | None, embedding_rate: float = 1.0) -> Trained:
    """With Adam, and with weights and dropout beside those of the embedding."""
    with seeded(0):
        learner = FEAT(backbone())
    chosen = replace(SCHEDULE, optimizer="adam", learning_rate=0.003, embedding_rate=embedding_rate)
    how = replace(training("methods", checkpoint), schedule=chosen)
    curve = train_on_tasks(learner, IMAGES, episodes([([2, 2], 2)] * 4), how, tasks_per_epoch=None)
    return learner.state_dict(), curve


def tuned_method(checkpoint: Checkpoint | None) -> Trained:
    """With an embedding that learns at a rate of its own."""
    return method_on_tasks(checkpoint, embedding_rate=0.1)


def method_on_labels(checkpoint: Checkpoint | None) -> Trained:
    """One that draws: which images it turns, which it mixes, and how."""
    with seeded(0):
        learner = S2M2Learner(backbone(), 4)
    curve = train_on_labels(learner, IMAGES, TARGETS, training("pretrain", checkpoint), batch_size=12)
    return learner.state_dict(), curve


def method_on_images(checkpoint: Checkpoint | None) -> Trained:
    """One that remembers: a queue of what it saw, and a second network."""
    with seeded(0):
        learner = MoCo(backbone(), 40)
    curve = train_without_labels(learner, IMAGES, np.arange(40), training("pretrain", checkpoint), batch_size=12)
    return learner.state_dict(), curve


def assert_same(found: Trained, expected: Trained) -> None:
    assert found[1] == expected[1]
    torch.testing.assert_close(found[0], expected[0], rtol=0, atol=0)


@pytest.mark.parametrize(
    "train",
    [
        small,
        small_in_every_step,
        embedding,
        classifier,
        method_on_tasks,
        tuned_method,
        method_on_labels,
        method_on_images,
    ],
)
def test_interrupted_after_any_step_it_ends_the_same(train: Train, tmp_path: Path) -> None:
    """At the begin, within and at the end of an epoch; again and again, each time one step further."""
    expected = train(None)
    path = tmp_path / "state.safetensors"
    for steps in range(1, 17) if train in (small, small_in_every_step) else (1, 4, 6, 16):
        path.unlink(missing_ok=True)
        with pytest.raises(StoppedError):
            train(stopping(path, steps))
        told: list[str] = []
        assert_same(train(Checkpoint(path=path, fingerprint="a", interval=1e9, tell=told.append)), expected)
        done = divmod(steps, 4) if steps % 4 else (steps // 4 - 1, 4)
        assert told == ["goes on after {} epochs and {} steps of a training that was interrupted".format(*done)]
    path.unlink()
    for _ in range(16):
        with pytest.raises(StoppedError):
            train(stopping(path, 1))
    assert_same(train(stopping(path, 2)), expected)


def test_without_an_interruption_a_checkpoint_changes_nothing(tmp_path: Path) -> None:
    expected = small(None)
    state = torch.get_rng_state()
    assert_same(small(Checkpoint(path=tmp_path / "state", fingerprint="a", interval=0)), expected)
    assert torch.equal(torch.get_rng_state(), state)


def test_time_and_memory_before_an_interruption_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second passes with every look at the clock: where a block begins and ends, and for each state."""
    seconds = count()
    monkeypatch.setattr("mela.runtime.usage.time.time", lambda: float(next(seconds)))
    memory = iter([5, 7, 6, 6, 2, 2])
    monkeypatch.setattr("mela.runtime.usage._peak", lambda: next(memory))
    path = tmp_path / "state"
    with pytest.raises(StoppedError), measured() as first:
        small(stopping(path, 1))
    assert (first.seconds, first.memory) == (2, 7), "one state, after a second"
    with pytest.raises(StoppedError), measured() as second:
        small(stopping(path, 1))
    assert (second.seconds, second.memory) == (1 + 2, 6), "what followed the last state is lost, and done again"
    with measured() as last:
        small(Checkpoint(path=path, fingerprint="a", interval=1e9))
    assert (last.seconds, last.memory) == (1 + 1 + 1, 6)
    with measured() as other:
        pass
    assert other.seconds == 1, "and belong to nothing else"


def test_states_are_an_interval_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second passes with every look at the clock: one for each step, and one for each state that is written."""
    seconds = count()
    monkeypatch.setattr("mela.training.checkpoint.time.monotonic", lambda: float(next(seconds)))
    written = []

    class Noting(Checkpoint):
        def save(self, tensors: Any, facts: Any) -> None:
            super().save(tensors, facts)
            written.append(4 * len(facts["curve"]) + facts["steps"])

    small(Noting(path=tmp_path / "state", fingerprint="a", interval=4))
    assert written == [4, 8, 12, 16]


def rewritten(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize(
    ("other", "line"),
    [
        (rewritten(lambda content: content[:1000]), "this checkpoint cannot be read"),
        (rewritten(lambda content: b""), "this checkpoint cannot be read"),
        (rewritten(lambda content: b"\xff" * 1000), "this checkpoint cannot be read"),
        (rewritten(lambda content: content[:-9] + b"\x7f" + content[-8:]), "this checkpoint is damaged"),
        (
            rewritten(lambda content: content.replace(b"learning_rate", b"learning_hate")),
            "this checkpoint (cannot be read|is damaged)",
        ),
        (lambda path: path.unlink(), None),
        (lambda path: stop(path, "b"), "this checkpoint belongs to another training"),
    ],
)
def test_a_state_that_does_not_fit_is_told_and_left_alone(
    other: Callable[[Path], Any], line: str | None, tmp_path: Path
) -> None:
    expected = small(None)
    path = tmp_path / "state.safetensors"
    stop(path, "a")
    other(path)
    told: list[str] = []
    assert_same(small(Checkpoint(path=path, fingerprint="a", interval=1e9, tell=told.append)), expected)
    assert len(told) == (line is not None)
    for message in told:
        assert re.fullmatch(rf"{path}: {line}.*; starting from scratch", message), message


def stop(path: Path, name: str) -> None:
    checkpoint = stopping(path, 5)
    checkpoint.fingerprint = name
    with pytest.raises(StoppedError):
        small(checkpoint)


def test_a_fingerprint_is_of_all_that_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks, one = {"embed": {"seed": 0}}, {"one": "1"}
    others = [{"other": "1"}, {"one": "2"}, one | {"other": "1"}]
    found = {fingerprint({"embed": {"seed": 1}}, one), *(fingerprint(blocks, inputs) for inputs in [one, *others])}
    assert len(found) == 5
    assert fingerprint(blocks, one) in found
    monkeypatch.setattr("mela.training.checkpoint.torch.__version__", "0.1")
    assert fingerprint(blocks, one) not in found
    monkeypatch.undo()
    assert fingerprint(blocks, one) in found
    code = tmp_path / "training.py"
    code.write_text("changed")
    monkeypatch.setattr(sys.modules["mela.training.loop"].__spec__, "origin", str(code))
    assert fingerprint(blocks, one) not in found


def test_inputs_that_change_while_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "input"
    with pytest.raises(MelaError, match=r"input: no such file; run `dvc repro`, or the stage"), steady(path):
        pass
    path.write_bytes(b"1")
    with steady(path) as first:
        pass
    path.write_bytes(b"2")
    with steady(path) as second:
        pass
    assert first.keys() == second.keys() == {str(path)}
    assert first != second
    for change_it in (lambda: path.write_bytes(b"33"), lambda: store.write_text(path, "4"), path.unlink):
        path.write_bytes(b"2")
        with (
            pytest.raises(MelaError, match=r"input: this file changed while .*; run again"),
            steady(path),
        ):
            change_it()


@pytest.fixture
def labelled(project: Path) -> Path:
    """A project up to its true labels."""
    run_stages("images", "manifest", "label_oracle")
    return project


@pytest.mark.usefixtures("labelled")
@pytest.mark.parametrize(
    ("stage", "cell", "more"), [("embed", [], []), ("pretrain", ["oracle"], [paths.ORACLE_LABELS, "labels"])]
)
def test_a_checkpoint_is_of_the_inputs_and_the_parameters_that_are_used(
    stage: str, cell: list[str], more: list[Path | str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the file of parameters is edited while the stage reads its inputs."""
    module = import_module(f"stages.{stage}")
    reading = import_module({"embed": "stages.embed", "pretrain": "stages.common.label_training"}[stage])
    configure, seen = reading.configure, {}

    def edited(*arguments: Any) -> Any:
        change(Path("params.yaml"), {f"{stage}.learning_rate": 0.2, "augment.flip": False, "model.width": 16})
        return configure(*arguments)

    def caught(name: str, blocks: Any, files: Any, *others: Any) -> Any:
        seen.update({"files": files} | {type(block).block: block for block in blocks})
        raise KeyboardInterrupt

    before = {block.block: block.read() for block in (ModelParams, AugmentParams)}
    monkeypatch.setattr(reading, "configure", edited)
    monkeypatch.setattr("stages.embed.checkpoint", caught)
    monkeypatch.setattr("stages.common.pretraining.checkpoint", caught)
    with pytest.raises(KeyboardInterrupt):
        module.main(*cell)
    assert seen[stage].learning_rate == 0.05
    assert sorted(seen["files"]) == sorted(map(str, [paths.IMAGES, paths.TRAIN, *more]))
    assert {name: seen[name] for name in before} == before


SAVING = """
import os, signal
from itertools import count
from pathlib import Path
from mela.training.checkpoint import Checkpoint

save, number = Checkpoint.save, count(1)
def saving(*arguments):
    save(*arguments)
    if next(number) == {after}:
        os.kill(os.getpid(), signal.SIGKILL)
Checkpoint.save = saving

from functools import partial
from stages.{script} import main
main = partial(main, *{cell})
{calls}
"""


def run(stage: str, calls: str = "main()", *, after: int = 0) -> str:
    """What a stage prints in a process of its own; `after` so many checkpoints the system ends it."""
    script, _, cell = stage.partition("@")
    done = python("-c", SAVING.format(script=script, cell=[cell] if cell else [], calls=calls, after=after))
    assert done.returncode == (-9 if after else 0), done.stderr
    return done.stdout


def test_each_machine_and_each_parameter_has_its_own_state(project: Path) -> None:
    """The name of a checkpoint; other files of the same content would share it otherwise."""

    def name(stage: str = "embed", device: str = "cpu", **changes: Any) -> str:
        compute = Compute(**{"dtype": torch.float32, "team": Team(), "compiled": False} | changes)
        blocks = [block.read() for block in (EmbedParams, ModelParams, AugmentParams)]
        return checkpoint(stage, blocks, {"input": "0"}, torch.device(device), compute, 60.0).path.name

    others = [{"device": "cuda"}, {"dtype": torch.bfloat16}, {"team": Team(rank=0, size=2)}, {"compiled": True}]
    names = [name(), name("pretrain"), *(name(**changes) for changes in others)]
    for key, value in {"embed.ridge": 0.5, "model.width": 16, "augment.flip": False}.items():
        change(project / "params.yaml", {key: value})
        names.append(name())
    assert len(set(names)) == len(names) == 9
    # the second process of a team reads what the first one has written
    assert name(team=Team(rank=1, size=2)) == name(team=Team(rank=0, size=2))
    change(project / "params.yaml", {"runtime.checkpoint_seconds": 5.0, "labeler.q": 1.0})
    assert name() == names[-1]


class _Others(Team):
    """A team whose other process has found another state."""

    def total(self, tensor: Tensor) -> Tensor:
        """As if the other process had a number of its own."""
        return tensor + 1


def test_a_team_that_does_not_agree_begins_anew(tmp_path: Path) -> None:
    stop(tmp_path / "state", "a")
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    progress = Progress(
        model=model,
        optimizer=optimizer,
        scheduler=SCHEDULE.scheduler_of(optimizer, 1),
        generator=torch.Generator(),
        team=_Others(rank=0, size=2),
        checkpoint=Checkpoint(path=tmp_path / "state", fingerprint="a", interval=0),
    )
    assert progress.resume().steps == 0
    assert progress.resume().curve == []


def kept() -> list[Path]:
    return sorted(Path(".checkpoints").glob("*"))


# what one process does, one after the other, with the names of the states that are there between
OTHER_FIRST = """
from mela.runtime.console import speak
speak()
main(params=Path("other.yaml"))
print(*sorted(os.listdir(".checkpoints")))
Path("{output}").rename("{weights}")
main()
"""


def test_stages_go_on_with_the_same_parameters_only(labelled: Path) -> None:
    """A training with another seed, which goes before, leaves the state alone."""
    for stage, outputs in {
        "embed": [paths.INITIAL, paths.EMBED_CURVE],
        "pretrain@oracle": [paths.ORACLE, paths.PRETRAIN / "oracle.csv", paths.PRETRAIN / "oracle.json"],
    }.items():
        run_stages(stage)
        assert kept() == []
        expected = {path: path.read_bytes() for path in outputs}
        change(labelled / "params.yaml", {"runtime.checkpoint_seconds": 0})
        for path in outputs:
            path.unlink()
        run(stage, after=7)
        assert not any(path.exists() for path in outputs)
        (found,) = kept()
        shutil.copy("params.yaml", "other.yaml")
        change(labelled / "other.yaml", {f"{stage.partition('@')[0]}.seed": 1})
        change(labelled / "params.yaml", {"runtime.checkpoint_seconds": 60})
        weights = outputs[0].name
        printed = run(stage, OTHER_FIRST.format(output=outputs[0], weights=weights))
        others, _, own = printed.partition(f"{found.name}\n")
        assert others.count(f"{stage}: epoch") == own.count(f"{stage}: epoch") == 2
        assert "goes on" not in others
        assert f"{stage}: goes on after 0 epochs and 7 steps of a training that was interrupted\n" in own
        assert kept() == []
        assert Path(weights).read_bytes() != expected[outputs[0]]
        for path, content in expected.items():
            assert path.read_bytes() == content, path


def test_a_team_goes_on_with_the_masks_of_each_process(tmp_path: Path) -> None:
    """Two processes; the first is killed at its third checkpoint, in the second epoch, and the other is ended then."""

    def team(*states: int) -> subprocess.CompletedProcess[str]:
        launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        return python(*launch, "-m", "tests.helpers.checkpoint", str(tmp_path), *map(str, states))

    def written(run: int) -> list[bytes]:
        return [path.read_bytes() for path in sorted(tmp_path.glob(f"{run}-*.safetensors"))]

    # a training that nothing interrupts, and the same again
    assert team(0, 3).returncode != 0
    expected = written(0)
    assert len(expected) == 2
    assert written(1) == []
    for path in tmp_path.glob("0-*.safetensors"):
        path.unlink()
    done = team(0)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "goes on after 1 epochs and 32 steps of a training that was interrupted\n"
    assert written(0) == expected
