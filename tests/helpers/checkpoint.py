"""Trains with dropout and a checkpoint, as one of several processes: run by torchrun in test_checkpoints.py.

Writes the weights of each process, of each run; in a run with a number of checkpoints, the first process ends itself
after so many.
"""

import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

from mela.runtime.compute import Compute
from mela.runtime.team import Team, joined
from mela.training.checkpoint import Checkpoint
from mela.training.loop import Part, Training, fit, shuffled_batches
from mela.training.schedule import Schedule

SCHEDULE = Schedule(epochs=4, learning_rate=0.1, momentum=0.9, weight_decay=5e-4, milestones=[1, 3], decay=0.5)


class Ending(Checkpoint):
    """Ends the process after some states."""

    states = 0

    def save(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Write a state, and count it."""
        super().save(tensors, facts)
        self.states -= 1
        if self.states == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def train(team: Team, checkpoint: Checkpoint) -> dict[str, Tensor]:
    """Forty steps an epoch, whose losses are looked at after 32 of them."""
    torch.manual_seed(1)
    layers = [nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.5), nn.Linear(16, 3)]
    model = nn.Sequential(*layers)
    inputs, labels = torch.randn(160, 1, 4, 4), torch.arange(160) % 3
    generator = torch.Generator().manual_seed(2)
    forward = Compute(team=team).forward_of(model)

    def parts(rows: Tensor) -> Iterator[Part]:
        own = team.share(len(rows))
        logits = forward((inputs[rows] + 0.1 * torch.randn(len(rows), 1, 4, 4, generator=generator))[own])
        correct = logits.argmax(1) == labels[rows[own]]
        yield F.cross_entropy(logits, labels[rows[own]], reduction="sum") / len(rows), correct.sum() / len(rows)

    curve = fit(
        model,
        lambda: map(parts, shuffled_batches(160, 4, generator)),
        Training(stage="embed", schedule=SCHEDULE, seed=3, compute=Compute(team=team), checkpoint=checkpoint),
        generator=generator,
    )
    found = torch.tensor([[epoch.loss, epoch.accuracy, epoch.learning_rate] for epoch in curve])
    return model.state_dict() | {"curve": found}


def main(folder: Path, runs: Sequence[int]) -> None:
    """Write what was learnt, in every run anew; so many checkpoints later, if any, the first process is gone."""
    with joined(torch.device("cpu")) as team:
        for number, states in enumerate(runs):
            checkpoint = Ending(path=folder / "state", fingerprint="a", interval=0, tell=print if team.leads else str)
            checkpoint.states = states
            save_file(train(team, checkpoint), folder / f"{number}-{team.rank}.safetensors")
            checkpoint.remove()


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(states) for states in sys.argv[2:]])
