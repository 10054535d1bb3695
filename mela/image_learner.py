"""What learns from images alone."""

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mela.augmentation import Augmentation
from mela.backbones import Backbone
from mela.compute import Run


class ImageLearner(nn.Module):
    """Tells images apart without any label; methods say how.

    Parameters
    ----------
    backbone : Backbone
    n_images : int
        In the data set.

    Attributes
    ----------
    optimizer : {"sgd", "adam"}
        That trains the method; "adam" is AdamW, for which the schedule's momentum does not count.
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
        """Images (b, c, h, w), float in [0, 1], to what is compared."""
        raise NotImplementedError

    def loss(
        self, run: Run, images: Tensor, augmentation: Augmentation, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Loss of a batch.

        Parameters
        ----------
        run : callable
            `forward`, in the number format of the training.
        images : Tensor (b, c, h, w)
            float in [0, 1].
        augmentation : Augmentation
            Of every view, beside the method's own changes.
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
    r"""InfoNCE (van den Oord, Li and Vinyals, 2018): :math:`-\log(e^{s_{own}} / \sum_j e^{s_j})`, summed over images.

    Parameters
    ----------
    logits : Tensor (b, k)
        Similarities s, divided by the temperature.
    own : Tensor (b,) of int64
        Which one is the image's own.

    Returns
    -------
    loss : Tensor ()
    right : Tensor (b,) of bool
    """
    return F.cross_entropy(logits, own, reduction="sum"), logits.detach().argmax(1) == own
