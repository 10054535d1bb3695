"""Learn an embedding together with a linear head for each training task (multi-task learning; Caruana, 1997)."""

import torch
from torch import Tensor
from torch.nn import functional as F

from mela.errors import UnsolvableError
from mela.learners.base import Learner, one_hot
from mela.learners.logistic import fit_heads


class TaskHeads(Learner):
    r"""Give each task t a linear head of its own on the shared embedding; local labels are all that this needs.

    The embedding minimises the left side of Proposition 1 with heads of each task's own, at their minimum,

    .. math:: \min_\psi \sum_t \min_{W_t, b_t} \sum_{(x, y) \in t} \mathrm{CE}(W_t \psi(x) / |\psi(x)| + b_t, y) +
        \frac{1}{2 C} |W_t|^2,

    over all images of a task, whose classes weigh the same. Its gradient is that with the heads held fixed, since they
    are at their minimum (variable projection; Golub and Pereyra, 1973). A new task gets such a head from its support
    set, which is the head of Eq. 8.

    Heads that gradient descent learns beside the embedding are met too rarely: each is used only when its task is
    drawn, a few times in all.

    Attributes
    ----------
    C : float
        Inverse regularisation of the heads.
    max_iter : int
        Newton steps at most.
    """

    C = 1.0
    max_iter = 1000

    def losses(self, features: Tensor, labels: Tensor, n_support: int, ways: int) -> tuple[Tensor, Tensor]:
        """Return the mean cross-entropies (t,) of all images of a task, and the shares (t,) that are right."""
        del n_support
        logits = self._logits(features, labels, features, ways)
        counts = one_hot(labels, ways).sum(1)
        weights = labels.shape[1] / (ways * counts.gather(1, labels))
        losses = weights * F.cross_entropy(logits.mT, labels, reduction="none")
        return losses.mean(1), (logits.detach().argmax(2) == labels).float().mean(1)

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """Return the logits (t, q, ways); see `Learner.logits`."""
        return self._logits(support, labels, query, ways)

    def _logits(self, known: Tensor, labels: Tensor, asked: Tensor, ways: int) -> Tensor:
        """Return the logits (t, q, ways) of images by heads that were fitted to known ones (t, n, m)."""
        units = F.normalize(known.detach(), dim=2)
        heads = fit_heads(units.cpu().numpy(), labels.cpu().numpy(), ways, C=self.C, max_iter=self.max_iter)
        if not heads.converged.all():
            problem = int(heads.converged.argmin())
            raise UnsolvableError(
                problem,
                f"logistic regression on {known.shape[1]} samples failed in {heads.iterations} of {self.max_iter} "
                f"steps (largest feature {float(known[problem].detach().abs().max()):.3g}, C={self.C:g})",
            )
        weights, intercepts = (torch.from_numpy(one).to(asked) for one in (heads.weights, heads.intercepts))
        return F.normalize(asked, dim=2) @ weights.mT + intercepts.mT
