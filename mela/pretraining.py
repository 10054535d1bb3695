"""Pre-training: classify all global labels at once (Eq. 7), and what it bounds (Proposition 1)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mela.augmentation import Augmentation
from mela.backbones import Backbone
from mela.compute import Compute
from mela.episodes import Episodes
from mela.errors import MelaError
from mela.extraction import extract_features
from mela.images import ImageLoader, require_images
from mela.seeding import seeded
from mela.targets import Targets
from mela.training import Epoch, Part, Schedule, batch_count, fit, shuffled_batches

Ids = npt.NDArray[np.int64]


def pretrain(
    backbone: Backbone,
    images: npt.NDArray[np.uint8],
    targets: Targets,
    *,
    augmentation: Augmentation,
    schedule: Schedule,
    batch_size: int,
    accumulate: int = 1,
    seed: int,
    compute: Compute | None = None,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
) -> tuple[nn.Linear, list[Epoch]]:
    """Train `backbone` in place with a linear classifier on top, and return the classifier and the curve.

    The loss is the cross-entropy to the label of an image or, if it has shares of several, to these shares, which is
    the mean of the losses of its labels weighted by them.

    Parameters
    ----------
    backbone : Backbone
    images : uint8 (N, h, w, c)
    targets : Targets
        The flat data set.
    augmentation : Augmentation
    schedule : Schedule
    batch_size : int
    accumulate : int
        Parts into which a batch is cut, to be computed one after the other with less memory; their gradients add up.
        Each part has BatchNorm statistics of its own.
    seed : int
        Of the classifier's weights, the order, augmentation and dropout.
    compute : Compute, optional
        Number format and processes; by default float32 in this process alone.
    on_epoch : callable
        Told of every finished epoch.
    """
    if targets.n_labels < 2:
        raise MelaError(f"pretrain.labels: expected at least 2 global labels to tell apart, got {targets.n_labels}")
    require_images(images, targets.image_ids)
    compute = compute or Compute()
    smallest = len(targets.image_ids) // batch_count(len(targets.image_ids), batch_size)
    if smallest < accumulate * compute.team.size:
        raise MelaError(
            f"pretrain.batch_size: expected batches of {accumulate * compute.team.size} images or more, one for each "
            f"of {compute.team.size} processes in each of {accumulate} parts, got batches of {smallest}"
        )
    generator = torch.Generator().manual_seed(seed)
    like = next(backbone.parameters())
    device = like.device
    load = ImageLoader(images, device)
    with seeded(seed):
        classifier = nn.Linear(backbone.dimensions, targets.n_labels).to(like)
    network = nn.Sequential(backbone, classifier)
    forward = compute.forward_of(network)

    def parts(chosen: Tensor) -> Iterator[Part]:
        for part in chosen.tensor_split(accumulate):
            own = compute.team.share(len(part))
            rows = part[own].numpy()
            logits = forward(augmentation.draw(len(part), generator)[own](load(targets.image_ids[rows])))
            label = torch.from_numpy(targets.labels[rows]).to(device)
            loss = F.cross_entropy(logits, targets.batch(rows).to(device), reduction="sum")
            yield loss / len(chosen), (logits.detach().argmax(1) == label).sum() / len(chosen)

    def epoch_steps() -> Iterator[Iterator[Part]]:
        return map(parts, shuffled_batches(len(targets.image_ids), batch_size, generator))

    curve = fit(network, epoch_steps, schedule, stage="pretrain", seed=seed, team=compute.team, on_epoch=on_epoch)
    return classifier, curve


def both_losses(
    backbone: Backbone,
    classifier: nn.Linear,
    images: npt.NDArray[np.uint8],
    tasks: Episodes,
    targets: Targets,
) -> "Proposition1":
    """`proposition1` of a trained embedding and its classifier, in evaluation mode and without augmentation.

    Of an image with several labels, the one with the largest share counts.
    """
    features = torch.from_numpy(extract_features(backbone, images, targets.image_ids))
    row_of = {image: row for row, image in enumerate(targets.image_ids.tolist())}
    weights, bias = classifier.weight.detach().cpu(), classifier.bias.detach().cpu()

    def logits(ids: Ids) -> Tensor:
        return F.linear(features[[row_of[image] for image in ids.tolist()]], weights, bias)

    return proposition1(logits, tasks, targets.image_ids, targets.labels)


@dataclass(frozen=True)
class Proposition1:
    """Mean cross-entropy over tasks: restricted to each task's own classes, and over all global classes."""

    task_loss: float
    global_loss: float


def proposition1(logits: Callable[[Ids], Tensor], tasks: Episodes, image_ids: Ids, labels: Ids) -> Proposition1:
    r"""Both sides of Proposition 1 (Eq. 9) on the query sets of `tasks`.

    .. math:: E_{(X, Y)} [L_{ce}(W[Y], (\psi(X), Y))] \le E_{(x, y)} [\ell_{ce}(W \psi(x), y)]

    The classes of a task are the distinct global labels of its query images. Both sides are averaged over tasks, which
    is the mean over samples when all query sets have one size.

    Parameters
    ----------
    logits : callable
        int64 (n,) image ids to float (n, n_labels): W psi(x).
    tasks : Episodes
    image_ids, labels : int64 (n_labelled,)
        Images without a label are left out, and so are tasks whose query images have none.
    """
    label_of = dict(zip(image_ids.tolist(), labels.tolist(), strict=True))
    task_losses, global_losses = [], []
    for task in tasks:
        query = [image for image in task.image_ids[~task.is_support].tolist() if image in label_of]
        if not query:
            continue
        outputs = logits(np.array(query, dtype=np.int64))
        target = torch.tensor([label_of[image] for image in query], device=outputs.device)
        classes, local = target.unique(sorted=True, return_inverse=True)
        task_losses.append(F.cross_entropy(outputs[:, classes], local))
        global_losses.append(F.cross_entropy(outputs, target))
    if not task_losses:
        raise MelaError("pretrain.labels: expected labels for some query images of the training tasks, found none")
    return Proposition1(float(torch.stack(task_losses).mean()), float(torch.stack(global_losses).mean()))
