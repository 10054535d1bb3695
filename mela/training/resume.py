"""Keep a training's progress, and all that the rest of it depends on, and restore it.

The module is the project's own, since Accelerate restores the order of batches through data loaders, and batches here
are drawn from arrays without one.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from mela.runtime.seeding import random_state, set_random_state
from mela.runtime.team import Team
from mela.runtime.usage import Usage, so_far, went_before
from mela.training.checkpoint import Checkpoint
from mela.training.schedule import Scheduler


@dataclass(kw_only=True)
class Position:
    """Hold a position in a training.

    Attributes
    ----------
    curve : list of dict
        Rows of the complete epochs.
    steps : int
        Steps of the current epoch that are done.
    sums : Tensor (2,) of float64
        Sums of their losses and accuracies.
    generator : Tensor of uint8, optional
        State of the data's generator after these steps; None stands for that at the start of the epoch.
    """

    curve: list[dict[str, Any]] = field(default_factory=list)
    steps: int = 0
    sums: Tensor = field(default_factory=lambda: torch.zeros(2, dtype=torch.float64))
    generator: Tensor | None = None


@dataclass(kw_only=True)
class Progress:
    """Keep the state of a training in a checkpoint, if there is one.

    Attributes
    ----------
    model : nn.Module
    optimizer : Optimizer
    scheduler : Scheduler
    generator : torch.Generator
        Generator of order and augmentation.
    team : Team
        All of whose processes call the methods at the same moments.
    checkpoint : Checkpoint or None
    """

    model: nn.Module
    optimizer: Optimizer
    scheduler: Scheduler
    generator: torch.Generator
    team: Team
    checkpoint: Checkpoint | None
    _epoch_began: Tensor | None = None

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def begin_epoch(self) -> None:
        """Remember the state from which the order of the epoch is drawn."""
        self._epoch_began = self.generator.get_state()

    def keep(self, curve: list[dict[str, Any]], steps: int, sums: Tensor) -> None:
        """Write a checkpoint of this position if one is due; the first process decides, and writes."""
        if self.checkpoint is None:
            return
        due = self.team.total(torch.tensor(float(self.team.leads and self.checkpoint.due()), device=self._device))
        if not due:
            return
        masks = self.team.gather(random_state(self._device)[None].to(self._device), self.team.size)
        if masks is None:
            return
        assert self._epoch_began is not None, "begin_epoch comes first"
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        for number, state in self.optimizer.state_dict()["state"].items():
            kept = {name: value for name, value in state.items() if value is not None}
            tensors |= {f"optimizer.{number}.{name}": value for name, value in kept.items()}
        tensors |= {
            "masks": masks,
            "sums": sums,
            "epoch_began": self._epoch_began,
            "generator": self.generator.get_state(),
        }
        rates = [group["lr"] for group in self.optimizer.param_groups]
        self.checkpoint.save(
            tensors, {"curve": curve, "steps": steps, "learning_rates": rates, "usage": asdict(so_far())}
        )

    def _agree(self, digest: str) -> bool:
        """Tell whether all processes have found the same state; without a shared folder they may not."""
        own = torch.tensor(int(digest[:10], 16), device=self._device)
        others_differ = self.team.total(own.clone()) != self.team.size * own
        return not self.team.total(others_differ.float())

    def resume(self) -> Position:
        """Go back to the last checkpoint, or begin."""
        found = self.checkpoint.load() if self.checkpoint else None
        agreed = self._agree(found[2] if found else "0")
        if self.checkpoint is None or found is None or not agreed:
            return Position()
        tensors, facts, _ = found
        self.model.load_state_dict(
            {name.removeprefix("model."): value for name, value in tensors.items() if name.startswith("model.")}
        )
        groups = self.optimizer.param_groups
        for number, parameter in enumerate(parameter for group in groups for parameter in group["params"]):
            prefix = f"optimizer.{number}."
            for name, value in tensors.items():
                if name.startswith(prefix):
                    self.optimizer.state[parameter][name.removeprefix(prefix)] = _like(value, parameter)
        epochs, steps = len(facts["curve"]), facts["steps"]
        self.scheduler.resume(epochs, steps, facts["learning_rates"])
        set_random_state(self._device, tensors["masks"][self.team.rank])
        self.generator.set_state(tensors["epoch_began"])
        went_before(Usage(**facts.get("usage", {})))
        self.checkpoint.tell(f"goes on after {epochs} epochs and {steps} steps of a training that was interrupted")
        return Position(curve=facts["curve"], steps=steps, sums=tensors["sums"], generator=tensors["generator"])


def _like(value: Tensor, parameter: Tensor) -> Tensor:
    """Return a tensor of the optimizer in the memory format of its weights; copy a number as it is."""
    if value.shape != parameter.shape:
        return value.clone()
    return torch.empty_like(parameter, requires_grad=False).copy_(value)
