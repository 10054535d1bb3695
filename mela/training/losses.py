"""Sum the losses of an epoch, and check them a few steps at a time."""

import torch
from torch import Tensor

from mela.errors import DivergedError
from mela.runtime.team import Team

UNTRAINED = "nothing has been learned yet, so correct what computes it, or what training starts from"


class Tally:
    """Sum losses and accuracies of an epoch's steps; those that are not settled yet are still on the device.

    Parameters
    ----------
    team : Team
        Team whose parts of a step are added up.
    where, advice : str
        Begin and end of the error about a loss that is not finite.
    steps : int
        Steps of the epoch that were settled before.
    sums : Tensor (2,) of float64, optional
        Sums of their losses and accuracies.
    untrained : bool
        Whether the epoch's first step is the very first, for which no learning rate can be at fault.
    """

    def __init__(
        self,
        team: Team,
        *,
        where: str,
        advice: str,
        steps: int = 0,
        sums: Tensor | None = None,
        untrained: bool = False,
    ) -> None:
        self._team = team
        self._where = where
        self._advice = advice
        self._untrained = untrained
        self._parts: list[Tensor] = []
        self._open: list[Tensor] = []
        self.sums = torch.zeros(2, dtype=torch.float64) if sums is None else sums
        self.steps = steps

    def add(self, loss: Tensor, accuracy: Tensor) -> None:
        """Add a part of the current step."""
        self._parts.append(torch.stack([loss.detach(), accuracy]))

    def close_step(self) -> None:
        """End the current step."""
        self._open.append(torch.stack(self._parts).sum(0))
        self._parts = []

    @property
    def waiting(self) -> int:
        """Number of steps that are not settled."""
        return len(self._open)

    def settle(self, team: Team | None = None) -> None:
        """Add up the open steps over the team, or over the given one.

        Raises
        ------
        DivergedError
            A loss is NaN or infinite; names the first such step, counted from 1.
        """
        if not self._open:
            return
        values = (team or self._team).total(torch.stack(self._open)).double().cpu()
        strange = torch.nonzero(~values[:, 0].isfinite()).flatten().tolist()
        if strange:
            step, loss = self.steps + strange[0] + 1, values[strange[0], 0].item()
            self._open = []
            advice = UNTRAINED if self._untrained and step == 1 else self._advice
            raise DivergedError(f"{self._where}, step {step}: expected a finite loss, got {loss}; {advice}")
        self.sums += values.sum(0)
        self.steps += len(values)
        self._open = []

    def mean(self) -> tuple[float, float]:
        """Return the mean loss and accuracy over the settled steps."""
        loss, accuracy = (self.sums / self.steps).tolist()
        return loss, accuracy
