"""MoCo: each image told from others by two views of it (He et al., 2020)."""

from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mela.data.augmentation import Augmentation
from mela.learners.base import ImageLearner, contrast
from mela.learners.method import Method
from mela.learners.views import random_view
from mela.models.backbones import Backbone
from mela.runtime.compute import Run

DIMENSIONS = 128
TEMPERATURE = 0.07
QUEUE = 4096
INERTIA = 0.99


class MoCo(ImageLearner):
    """Bring a view of an image nearer to another view of it than to earlier images, in a queue.

    What the queue holds comes from a second network that follows the first one slowly, in evaluation mode, its
    BatchNorm statistics included (Cai et al., 2021). So views of one batch share no statistics that would give them
    away; the authors shuffle batches between GPUs for that. The queue holds at most half of the data set; if it holds
    that half, an image meets itself in about one of eight steps.
    """

    queue: Tensor
    place: Tensor

    def __init__(self, backbone: Backbone, n_images: int) -> None:
        super().__init__(backbone, n_images)
        self.projection = nn.Linear(backbone.dimensions, DIMENSIONS)
        self.follower = deepcopy(nn.Sequential(backbone, self.projection)).requires_grad_(requires_grad=False)
        self.register_buffer("queue", F.normalize(torch.randn(min(QUEUE, max(n_images // 2, 1)), DIMENSIONS), dim=1))
        self.register_buffer("place", torch.zeros((), dtype=torch.int64))

    def forward(self, images: Tensor) -> Tensor:
        """Return the projections (b, 128) of images (b, c, h, w)."""
        projected: Tensor = self.projection(self.backbone(images))
        return projected

    def loss(
        self, run: Run, images: Tensor, augmentation: Augmentation, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Return the summed loss, and which images were told apart; see `ImageLearner.loss`."""
        queries = F.normalize(run(random_view(images, augmentation, generator)), dim=1)
        with torch.no_grad():
            self._follow()
            keys = F.normalize(self.follower(random_view(images, augmentation, generator)), dim=1)
        own = (queries * keys).sum(1, keepdim=True)
        logits = torch.cat([own, queries @ self.queue.T], dim=1) / TEMPERATURE
        self._keep(keys)
        return contrast(logits, torch.zeros(len(images), dtype=torch.int64, device=images.device))

    def _follow(self) -> None:
        """Move the second network a little towards the first."""
        self.follower.eval()
        leaders = nn.Sequential(self.backbone, self.projection).state_dict()
        for name, value in self.follower.state_dict().items():
            if value.is_floating_point():
                value.lerp_(leaders[name], 1 - INERTIA)
            else:
                value.copy_(leaders[name])

    def _keep(self, keys: Tensor) -> None:
        """Replace the oldest keys of the queue by keys (b, 128)."""
        size = len(self.queue)
        places = (self.place + torch.arange(len(keys), device=keys.device)) % size
        # a copy, since the loss still needs what is there
        self.queue = self.queue.index_copy(0, places[-size:], keys[-size:])
        self.place = (self.place + len(keys)) % size


METHOD = Method(title="MoCo", source="He et al., 2020", sees="images", learner=MoCo)
