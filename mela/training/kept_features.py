"""Keep features of a frozen network on disk while a linear map of them learns."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from mela.data.array_types import Features, Ints
from mela.errors import DivergedError, MelaError
from mela.io.atomic import replacing
from mela.models.backbones import Backbone
from mela.models.features import feature_batches
from mela.models.timm_backbones import Pretrained
from mela.runtime.progress import SILENT, Watch
from mela.runtime.team import ALONE, Team
from mela.training.checkpoint import digest_of, fingerprint


class _Head(nn.Module):
    """Apply the linear map of a frozen network to its features, which it gets in place of images."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head = head

    def forward(self, features: Tensor) -> Tensor:
        """Return features (n, m) of features (n, m, 1, 1)."""
        mapped: Tensor = self.head(features[:, :, 0, 0])
        return mapped


class _OfFeatures(Watch):
    """Tell another watch that the counted images are on their way to features."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def begin(self, total: int, done: int = 0, *, of: str = "") -> None:
        self._watch.begin(total, done, of=of or "features of images")

    def advance(self, count: int = 1) -> None:
        self._watch.advance(count)


@dataclass(frozen=True, kw_only=True)
class KeptFeatures:
    """Hold what learns in a backbone whose network is frozen, and what it learns from in place of images.

    Attributes
    ----------
    backbone : Backbone
        Backbone that shares its head with the whole one, which thus learns as well.
    images : float32 (N, 1, 1, m), memory-mapped
        The network's features, in place of images for training and extraction; zeros for images not asked for.
    path : Path
        The file of these features.
    """

    backbone: Backbone
    images: npt.NDArray[np.uint8]
    path: Path

    def remove(self) -> None:
        """Delete the file after the training."""
        self.path.unlink(missing_ok=True)


def keep_features(
    backbone: Backbone,
    images: npt.NDArray[np.uint8],
    image_ids: npt.NDArray[np.int64],
    *,
    folder: Path,
    files: Mapping[str, str],
    team: Team = ALONE,
    watch: Watch = SILENT,
) -> KeptFeatures:
    """Run the frozen network of a backbone on images without random changes, unless this was done before.

    There is one such file at a time: before it is written, those of other weights or images are deleted.

    Parameters
    ----------
    backbone : Backbone
        Backbone with a `Pretrained` network of which only the head learns.
    images : uint8 (N, h, w, c)
    image_ids : int64 (n,)
        Images whose features are needed.
    folder : Path
        Folder of the file, whose name says which weights, images, size and code the features are of.
    files : mapping of str to str
        The file of the images and the SHA-256 of its content.
    team : Team
        Processes that share the work; the first one writes.
    watch : Watch
        Counts images.

    Raises
    ------
    DivergedError
        A feature is NaN or infinite; names the image.
    MelaError
        The processes are on several machines that do not share the folder.
    """
    body = backbone.body
    assert isinstance(body, Pretrained), "a network of timm"
    assert body.frozen, "a network that does not learn"
    dimensions, device = backbone.dimensions, next(backbone.parameters()).device
    network = _without_head(backbone)
    facts = {
        "weights": digest_of(network.state_dict()),
        "side": body.side,
        "interpolation": body.interpolation,
        "image_ids": hashlib.sha256(image_ids.tobytes()).hexdigest(),
        "device": device.type,
    }
    path = folder / f"features-{fingerprint(facts, files)[:16]}.npy"
    shape = (len(images), 1, 1, dimensions)
    # as the first process finds it: the others may look after it has written the file
    there = torch.tensor(float(team.leads and _is_whole(path, shape)), device=device)
    if not team.total(there):
        batches = feature_batches(network, images, image_ids, team=team, watch=_OfFeatures(watch))
        try:
            _write(path, shape, batches, team)
        except DivergedError as error:
            # to train again would change nothing
            what = str(error).rpartition(";")[0]
            raise DivergedError(f"model.weights: {what}; the network does not learn, so name other weights") from None
        team.total(torch.zeros((), device=device))
        if not _is_whole(path, shape):
            raise MelaError(
                f"{path}: expected the features that the first process has written, found none; let all machines share "
                f"{folder}, or set model.keep_features to false"
            )
    kept = cast("npt.NDArray[np.uint8]", np.load(path, mmap_mode="r"))
    top = Backbone(_Head(body.head), dimensions, [0.0], [1.0]).to(device)
    return KeptFeatures(backbone=top, images=kept, path=path)


def _write(path: Path, shape: tuple[int, ...], batches: Iterable[tuple[Ints, Features]], team: Team) -> None:
    """Write the features of all batches in the first process; the others only compute their share."""
    if not team.leads:
        for _ in batches:
            pass
        return
    # those of other weights or images, which a training that failed has left
    for other in path.parent.glob("features-*.npy"):
        other.unlink()
    with replacing(path) as temporary:
        found = np.lib.format.open_memmap(temporary, mode="w+", dtype=np.float32, shape=shape)
        for ids, features in batches:
            found[ids, 0, 0] = features
        found.flush()
        del found


def _without_head(backbone: Backbone) -> Backbone:
    """Return the backbone without its head, sharing its memory."""
    body = cast(Pretrained, backbone.body)
    frozen = Pretrained(body.network, body.side, body.interpolation, None)
    frozen.frozen = True
    network = Backbone(frozen, backbone.dimensions, [0.0], [1.0])
    network.mean, network.std = backbone.mean, backbone.std
    return network.to(next(backbone.parameters()).device)


def _is_whole(path: Path, shape: tuple[int, ...]) -> bool:
    """Tell whether a file holds features of this shape."""
    try:
        found: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return False
    return found.shape == shape and found.dtype == np.float32
