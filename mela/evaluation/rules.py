"""Meta-test any method on frozen tasks: by its own rule, and by every head on its embedding."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from mela.data.episodes import Episodes, TaskGroup
from mela.errors import DivergedError, UnsolvableError
from mela.evaluation.accuracy import Lookup, Rule, support_of, task_accuracies, variants
from mela.evaluation.heads import Head, in_blocks
from mela.learners.base import Learner
from mela.models.features import feature_batches


def own_rule(
    learner: Learner, images: npt.NDArray[np.uint8], tasks: Episodes, shots: Sequence[int], *, block: int = 8
) -> pd.DataFrame:
    """Return the accuracy of every task by the method's own rule, in evaluation mode.

    What the rule needs of an image is computed once.

    Parameters
    ----------
    learner : Learner
    images : uint8 (N, h, w, c)
    tasks : Episodes
    shots : sequence of int
        Numbers of shots; each class's first support images count.
    block : int
        Tasks at a time.

    Returns
    -------
    DataFrame with columns task_id, setting, accuracy (percent)

    Raises
    ------
    MelaError
        The rule's result has a wrong shape.
    DivergedError
        A feature or a logit is not finite, or the rule has no solution for a task; names the image or the task.
    """
    device = next(learner.parameters()).device
    image_ids = tasks.image_ids()
    known = torch.from_numpy(np.concatenate([found for _, found in feature_batches(learner, images, image_ids)]))
    with torch.no_grad():

        def of(ids: npt.NDArray[np.int64]) -> Tensor:
            return known[torch.from_numpy(np.searchsorted(image_ids, ids))].to(device)

        def predict(group: TaskGroup, _: str) -> npt.NDArray[np.int64]:
            found = []
            for start in range(0, len(group), block):
                part = group[start : start + block]
                labels = torch.from_numpy(part.support_labels).to(device)
                try:
                    logits = learner.checked_logits(of(part.support), labels, of(part.query), part.ways)
                except UnsolvableError as error:
                    task = tasks.task_ids[part.positions[error.problem]]
                    raise DivergedError(f"task {task}: {error}; train again with a lower learning rate") from None
                if len(wrong := (~logits.isfinite()).flatten(1).any(1).nonzero()):
                    task = tasks.task_ids[part.positions[int(wrong[0])]]
                    raise DivergedError(
                        f"task {task}: expected finite logits, got NaN or infinity; train again, with a lower learning "
                        "rate, or correct the method"
                    )
                found.append(logits.argmax(2).cpu().numpy())
            return np.concatenate(found)

        return task_accuracies(tasks, _named(shots), {"": predict})


def with_head(
    head: Head, lookup: Lookup, tasks: Episodes, shots: Sequence[int], *, copies: Lookup | None = None
) -> pd.DataFrame:
    """Return the accuracy of every task with a head on features.

    Parameters
    ----------
    head : callable
        See `mela.evaluation.heads`.
    lookup, copies : callable
        See `mela.evaluation.accuracy.evaluate_tasks`.
    tasks : Episodes
    shots : sequence of int

    Returns
    -------
    DataFrame with columns task_id, setting, accuracy (percent)
    """

    def rule(support: Lookup) -> Rule:
        return lambda group, _: in_blocks(head, *support_of(group, support), lookup(group.query)[:, :, 0], group.ways)

    rules = {suffix: rule(own) for suffix, own in variants(lookup, tasks, copies).items()}
    return task_accuracies(tasks, _named(shots), rules)


def _named(shots: Sequence[int]) -> dict[str, int | None]:
    return {f"{k}_shot": k for k in shots}
