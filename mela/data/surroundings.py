"""Replace what surrounds the middle of training images by parts of other images.

Where each person photographs one thing of a class in one place, the place tells this thing from all others. A network
that learns to tell them apart need not look at the thing then. With other surroundings each time, the place tells less.

CutMix (Yun et al., ICCV 2019) also joins parts of two images, but learns the labels of both. Here, the label is that of
the middle, as where backgrounds alone are replaced (Ryali, Schwab and Morcos, "Characterizing and Improving the
Robustness of Self-Supervised Learning through Background Augmentations", 2021). That needs a network which finds what
is background; this does not, and takes what a photograph is of to be in its middle.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

# the radius r of what stays, of which 1 is half of the image's side
SMALLEST, LARGEST = 0.55, 1.05
# the power p of its shape, from nearly an ellipse to nearly a rectangle
LOWEST, HIGHEST = 2.4, 8.4
# width of the seam, in units of r
SEAM = 0.1


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    r"""Say which part of each of n images stays, and which image surrounds it.

    With x and y from -1 to 1 across the image, the part :math:`(|x|^p + |y|^p)^{1/p} < r` stays, with a soft seam.

    Attributes
    ----------
    donors : int64 (n,)
        Position of the image that surrounds it, among all images that were drawn for; rarely, its own.
    sizes : float32 (n,)
        r; infinite where the whole image stays.
    powers : float32 (n,)
        p.
    """

    donors: Tensor
    sizes: Tensor
    powers: Tensor

    @classmethod
    def draw(cls, share: float, count: int, generator: torch.Generator) -> Self:
        """Draw them for `count` images, each of which gets other surroundings with probability `share`."""
        donors = torch.randperm(count, generator=generator)
        size, power, chosen = torch.rand(3, count, generator=generator)
        sizes = torch.where(chosen < share, SMALLEST + (LARGEST - SMALLEST) * size, torch.inf)
        return cls(donors=donors, sizes=sizes, powers=LOWEST + (HIGHEST - LOWEST) * power)

    def __getitem__(self, rows: slice) -> Self:
        """Return those of some of the images; donors are still positions among all."""
        return type(self)(donors=self.donors[rows], sizes=self.sizes[rows], powers=self.powers[rows])

    def __call__(self, images: Tensor, others: Tensor) -> Tensor:
        """Return images (n, c, h, w), float, surrounded by others of the same shape."""
        height, width = images.shape[2:]
        return torch.lerp(others, images, self.shares(height, width, images.device))

    def shares(self, height: int, width: int, device: torch.device) -> Tensor:
        """Return which share of each pixel is the image's own, float32 (n, 1, height, width)."""
        powers, sizes = (drawn.to(device)[:, None, None] for drawn in (self.powers, self.sizes))
        y, x = (torch.linspace(-1, 1, side, device=device).abs() for side in (height, width))
        distances = (y[:, None] ** powers + x**powers) ** (1 / powers)
        return ((sizes - distances) / SEAM + 0.5).clamp(0, 1)[:, None]
