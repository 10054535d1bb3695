"""Rotate images by quarter turns, so that each class in each of its four rotations can be a class of its own."""

from torch import Tensor

TURNS = 4


def quarter_turned(images: Tensor, turns: Tensor) -> Tensor:
    """Rotate each image by its own number of quarter turns, counterclockwise.

    Parameters
    ----------
    images : Tensor (n, c, h, w)
        Squares.
    turns : Tensor (n,) of int64
        From 0 to 3.
    """
    turned = images.clone()
    for count in range(1, TURNS):
        rows = (turns == count).nonzero().squeeze(1).to(images.device)
        turned[rows] = images[rows].rot90(count, (2, 3))
    return turned
