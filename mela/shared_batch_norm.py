"""BatchNorm whose statistics are those of a batch that several processes share."""

import torch
from torch import Tensor, nn
from torch.distributed.nn.functional import all_reduce
from torch.nn.modules.batchnorm import _BatchNorm

from mela.errors import MelaError


class SharedBatchNorm(nn.BatchNorm2d):
    r"""BatchNorm2d over the parts of a batch that all processes hold, for devices that nn.SyncBatchNorm does not know.

    With n_r, mu_r, s_r the pixels, mean and variance of part r, the batch has

    .. math:: \mu = \sum_r n_r \mu_r / n, \qquad s = \sum_r n_r (s_r + (\mu_r - \mu)^2) / n.

    In evaluation mode it is BatchNorm2d.
    """

    def forward(self, maps: Tensor) -> Tensor:
        """Maps (n, c, h, w), normalised; all processes have to call it, each with its own images."""
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
