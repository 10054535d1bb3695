"""Define how a model runs: its number format, and its copies in several processes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.nn.functional import all_reduce
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel

from mela.errors import MelaError
from mela.runtime.team import ALONE, Team

Run = Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class Compute:
    """Describe what training needs to know of the machine beside the device, which is where the weights are.

    Attributes
    ----------
    dtype : torch.dtype
        Type of the layers; see `mela.runtime.device.choose_dtype`. Weights, gradients and outputs are float32.
    team : Team
        Processes among which each batch is divided.
    compiled : bool
        Whether to use torch.compile.
    """

    dtype: torch.dtype = torch.float32
    team: Team = ALONE
    compiled: bool = False

    def forward_of(self, network: nn.Module) -> Callable[..., Tensor]:
        """Return the network as a function of this process's part of a batch, with float32 (or float64) outputs.

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
            raise MelaError("runtime.compile works with one process only; set it to false, or runtime.processes to 1")
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


class SharedBatchNorm(nn.BatchNorm2d):
    r"""Apply BatchNorm2d over the parts of a batch in all processes, for devices without nn.SyncBatchNorm.

    With n_r, mu_r, s_r the pixels, mean and variance of part r, the batch has

    .. math:: \mu = \sum_r n_r \mu_r / n, \qquad s = \sum_r n_r (s_r + (\mu_r - \mu)^2) / n.

    In evaluation mode it is BatchNorm2d.
    """

    def forward(self, maps: Tensor) -> Tensor:
        """Normalise maps (n, c, h, w); all processes have to call it, each with its own images."""
        if not self.training:
            return super().forward(maps)
        variance, mean = torch.var_mean(maps.to(self.weight.dtype), (0, 2, 3), correction=0)
        n_own = maps.numel() / maps.shape[1]
        sums = all_reduce(torch.cat([n_own * mean, mean.new_tensor([n_own])]))
        n, shared = sums[-1].detach(), sums[:-1] / sums[-1].detach()
        spread = all_reduce(n_own * (variance + (mean - shared) ** 2)) / n
        self._remember(shared.detach(), spread.detach() * n / (n - 1))
        scale = self.weight * torch.rsqrt(spread + self.eps)
        shift = self.bias - shared * scale
        return (maps * scale[:, None, None] + shift[:, None, None]).to(maps.dtype)

    def _remember(self, mean: Tensor, variance: Tensor) -> None:
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        self.num_batches_tracked += 1
        momentum = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean, momentum)
        self.running_var.lerp_(variance, momentum)


def share_statistics(module: nn.Module) -> None:
    """Let all processes share the statistics of every BatchNorm2d below `module`; names and weights stay.

    Raises
    ------
    MelaError
        A BatchNorm that learns is of a kind of its own, for which this is not known.
    """
    on_gpu = next(module.parameters()).device.type == "cuda"
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.BatchNorm2d:
                setattr(parent, name, nn.SyncBatchNorm.convert_sync_batchnorm(child) if on_gpu else _shared(child))
            elif isinstance(child, _BatchNorm) and not isinstance(child, SharedBatchNorm | nn.SyncBatchNorm):
                if not any(weight.requires_grad for weight in child.parameters()):
                    continue
                raise MelaError(
                    "runtime.processes: expected 1 with this backbone, which normalises batches by "
                    f"{type(child).__name__}, whose statistics cannot be shared; set it to 1, or model.train to head"
                )


def _shared(norm: nn.BatchNorm2d) -> SharedBatchNorm:
    shared = SharedBatchNorm(norm.num_features, eps=norm.eps, momentum=norm.momentum)
    shared.weight, shared.bias = norm.weight, norm.bias
    shared.running_mean, shared.running_var = norm.running_mean, norm.running_var
    shared.num_batches_tracked = norm.num_batches_tracked
    return shared.train(norm.training)
