"""Define the classes that methods derive from, which learn from tasks, from labels, or from images alone."""

from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mela.data.augmentation import Augmentation
from mela.learners.contract import pair_of, require_tensor
from mela.models.backbones import Backbone
from mela.runtime.compute import Run


class Learner(nn.Module):
    """Combine an embedding with a rule that labels query images by a support set; methods define rule and loss.

    Tensors hold t tasks of one shape: n support and q query images each, with the same number of ways.

    Parameters
    ----------
    backbone : Backbone

    Attributes
    ----------
    optimizer : {"sgd", "adam"}
        Optimizer that trains the method; "adam" is AdamW, for which the schedule's momentum does not count.
    learning_rate : float
        At the start.
    initial_scale : float, optional
        Scale of the logits at the start, for methods that learn it as the parameter `scale`. A small one lets
        the embedding learn more from queries that are already right; training changes it little.
    regularizer : float, optional
        Regularizer of a head that has one, and does not learn it.
    remedy : str
        What helps if the head has no solution, beside a lower learning rate.
    """

    optimizer: ClassVar[Literal["sgd", "adam"]] = "adam"
    learning_rate: ClassVar[float] = 0.003
    initial_scale: ClassVar[float | None] = None
    regularizer: float | None = None
    remedy: ClassVar[str] = ""
    scale: nn.Parameter

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.backbone = backbone
        if self.initial_scale is not None:
            self.scale = nn.Parameter(torch.tensor(self.initial_scale, dtype=torch.float32))

    def forward(self, images: Tensor) -> Tensor:
        """Return what the rule needs of each image (b, c, h, w), float in [0, 1]: by default features (b, m)."""
        features: Tensor = self.backbone(images)
        return features

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """Return how much each query image belongs to each class.

        Parameters
        ----------
        support, query : Tensor (t, n, ...), (t, q, ...)
            What `forward` made of the images.
        labels : Tensor (t, n) of int64
            Local labels, 0 to ways - 1.
        ways : int

        Returns
        -------
        Tensor (t, q, ways)
            Finite.
        """
        raise NotImplementedError

    def checked_logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """Return `logits` after a check of their shape; training and testing call this.

        Raises
        ------
        MelaError
            The method has made something else.
        """
        logits = self.logits(support, labels, query, ways)
        return require_tensor(self, "logits", logits, "logits (tasks, queries, ways)", (*query.shape[:2], ways))

    def losses(self, features: Tensor, labels: Tensor, n_support: int, ways: int) -> tuple[Tensor, Tensor]:
        """Return the losses that training minimises: by default the cross-entropy of the query images.

        Parameters
        ----------
        features : Tensor (t, n + q, ...)
            What `forward` made of the support and then the query images.
        labels : Tensor (t, n + q) of int64
        n_support, ways : int

        Returns
        -------
        losses : Tensor (t,)
        accuracies : Tensor (t,)
            Shares of the query images whose label has the largest logit, in [0, 1].
        """
        logits = self.checked_logits(features[:, :n_support], labels[:, :n_support], features[:, n_support:], ways)
        return query_losses(logits, labels[:, n_support:])


def checked_losses(
    learner: Learner, features: Tensor, labels: Tensor, n_support: int, ways: int
) -> tuple[Tensor, Tensor]:
    """Return `Learner.losses` after a check: one loss and one accuracy for each task.

    Raises
    ------
    MelaError
        The method has made something else.
    """
    asked = "losses and accuracies of the tasks"
    losses, accuracies = pair_of(learner, "losses", learner.losses(features, labels, n_support, ways), asked)
    return (
        require_tensor(learner, "losses", losses, "losses of the tasks", labels.shape[:1], learned=True),
        require_tensor(learner, "losses", accuracies, "accuracies of the tasks", labels.shape[:1]),
    )


def query_losses(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean cross-entropies (t,) and accuracies (t,) of logits (t, q, k) for labels (t, q)."""
    losses = F.cross_entropy(logits.mT, labels, reduction="none").mean(1)
    return losses, (logits.detach().argmax(2) == labels).float().mean(1)


def one_hot(labels: Tensor, ways: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Encode labels (...) as one-hot vectors (..., ways)."""
    return F.one_hot(labels, ways).to(dtype)


def prototypes(support: Tensor, labels: Tensor, ways: int) -> Tensor:
    """Return each class's mean feature: (t, n, m) to (t, ways, m); each class has at least one image."""
    members = one_hot(labels, ways, support.dtype).mT
    return members @ support / members.sum(2, keepdim=True)


class LabelLearner(nn.Module):
    r"""Classify all global labels at once, :math:`W \psi(x) + b` (Eq. 7); methods define the loss.

    Parameters
    ----------
    backbone : Backbone
    n_labels : int

    Attributes
    ----------
    label_smoothing : float
        Share of each target that `cross_entropy` divides equally among all labels (Szegedy et al., 2016).
    turns_images : bool
        Whether the loss rotates images itself, so that rotations can be no classes.
    """

    label_smoothing: float = 0.0
    turns_images: ClassVar[bool] = False

    def __init__(self, backbone: Backbone, n_labels: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.classifier = nn.Linear(backbone.dimensions, n_labels)

    def forward(self, images: Tensor) -> Any:
        """Return the logits (b, n_labels) of images (b, c, h, w), float in [0, 1], or all that the loss needs."""
        return self.classifier(self.backbone(images))

    def logits(self, images: Tensor) -> Tensor:
        """Return the logits (b, n_labels) of images (b, c, h, w)."""
        logits: Tensor = self.classifier(self.backbone(images))
        return logits

    def loss(self, run: Run, images: Tensor, targets: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return the loss of a batch: by default the cross-entropy.

        Parameters
        ----------
        run : callable
            `forward`, in the number format of the training.
        images : Tensor (b, c, h, w)
            Augmented, float in [0, 1].
        targets : Tensor (b,) of int64 or (b, n_labels)
            Labels, or shares of several.
        generator : Generator
            On the CPU, of all that is drawn.

        Returns
        -------
        loss : Tensor ()
            Summed over the images.
        logits : Tensor (b, n_labels)
            Logits that measure the training accuracy.
        """
        del generator
        logits = run(images)
        return self.cross_entropy(logits, targets), logits

    def cross_entropy(self, logits: Tensor, targets: Tensor, reduction: Literal["sum", "mean"] = "sum") -> Tensor:
        """Return the cross-entropy of logits (b, n_labels) to targets as in `loss`, with smoothed labels."""
        return F.cross_entropy(logits, targets, reduction=reduction, label_smoothing=self.label_smoothing)


@runtime_checkable
class Student(Protocol):
    """Require what a method has that also learns from another model."""

    def learn_from(self, teacher: LabelLearner) -> None:
        """Take a teacher, which does not change and is not trained."""


class ImageLearner(nn.Module):
    """Learn to tell images apart without any label; methods define how.

    Parameters
    ----------
    backbone : Backbone
    n_images : int
        Images in the data set.

    Attributes
    ----------
    optimizer : {"sgd", "adam"}
        Optimizer that trains the method; "adam" is AdamW, for which the schedule's momentum does not count.
    learning_rate : float
        At the start.
    """

    optimizer: ClassVar[Literal["sgd", "adam"]] = "sgd"
    learning_rate: ClassVar[float] = 0.03

    def __init__(self, backbone: Backbone, n_images: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.n_images = n_images

    def forward(self, images: Tensor) -> Any:
        """Return what is compared of images (b, c, h, w), float in [0, 1]."""
        raise NotImplementedError

    def loss(
        self, run: Run, images: Tensor, augmentation: Augmentation, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Return the loss of a batch.

        Parameters
        ----------
        run : callable
            `forward`, in the number format of the training.
        images : Tensor (b, c, h, w)
            float in [0, 1].
        augmentation : Augmentation
            Changes of every view, beside the method's own changes.
        generator : Generator
            On the CPU, of all that is drawn.

        Returns
        -------
        loss : Tensor ()
            Summed over the images.
        right : Tensor (b,) of bool
            Whether each was told apart from all that it was compared with.
        """
        raise NotImplementedError


def contrast(logits: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
    r"""Return InfoNCE :math:`-\log(e^{s_{own}} / \sum_j e^{s_j})` (van den Oord, Li and Vinyals, 2018), summed.

    Parameters
    ----------
    logits : Tensor (b, k)
        Similarities s, divided by the temperature.
    own : Tensor (b,) of int64
        Column of the image's own similarity.

    Returns
    -------
    loss : Tensor ()
    right : Tensor (b,) of bool
    """
    return F.cross_entropy(logits, own, reduction="sum"), logits.detach().argmax(1) == own
