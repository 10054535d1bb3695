"""How a network is computed while it is trained: number format, processes, compilation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from mela.errors import MelaError
from mela.shared_batch_norm import share_statistics
from mela.team import ALONE, Team

Run = Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class Compute:
    """What training needs to know of the machine beside the device, which is where the weights are.

    Attributes
    ----------
    dtype : torch.dtype
        Of the layers; see `mela.precision.choose_dtype`. Weights, gradients and outputs are float32.
    team : Team
        Processes among which each batch is divided.
    compiled : bool
        Whether to use torch.compile.
    """

    dtype: torch.dtype = torch.float32
    team: Team = ALONE
    compiled: bool = False

    def forward_of(self, network: nn.Module) -> Callable[..., Tensor]:
        """The network as a function of this process's part of a batch, with outputs of float32 (or float64, if it is).

        What it is called with beside the batch goes to the network as it is.

        In a team the statistics of BatchNorm are those of the whole batch, and the gradients that arrive at the weights
        are the means over the processes.

        Raises
        ------
        MelaError
            The network is to be compiled and shared, which do not go together.
        """
        if self.compiled and self.team.size > 1:
            # the compiler loses the gradient through the shared statistics of BatchNorm
            raise MelaError("runtime.compile: expected false with several processes, got true; set one of them back")
        device = next(network.parameters()).device
        run: nn.Module = network
        if self.team.size > 1:
            share_statistics(network)
            # every process computes the same buffers by itself
            run = DistributedDataParallel(network, broadcast_buffers=False)
        if self.compiled:
            run.compile()

        def forward(batch: Tensor, **options: Any) -> Tensor:
            with torch.autocast(device.type, self.dtype, enabled=self.dtype != torch.float32):
                outputs: Tensor = run(batch, **options)
            return outputs.to(torch.promote_types(outputs.dtype, torch.float32))

        return forward
