"""Training steps against the reference way: images per second of an epoch, everything from bytes to updated weights.

The reference way is that of RFS and most of its peers: images become PIL images and go through torchvision's transforms
one by one, in the workers of a DataLoader, and the network is computed in float32, with its channels before rows and
columns. It has the number of workers that suits it best. Network, batches, images and optimiser are the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch
import typer
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

from bench.contender import compete
from bench.measure import Timing, record, write_rows
from mela.augmentation import Augmentation
from mela.backbones import Backbone, build_backbone
from mela.compute import Compute
from mela.device import keep_freed_memory
from mela.precision import Precision, choose_dtype
from mela.pretraining import pretrain
from mela.targets import Targets
from mela.training import Schedule

BATCH, LABELS = 64, 64
WORKERS = (0, 1, 2)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Images and augmentation, as in the presets."""

    size: int
    channels: int
    augmentation: Augmentation
    steps: int

    def images(self) -> npt.NDArray[np.uint8]:
        """An epoch of noise: what an image shows makes no difference to the time."""
        shape = (self.steps * BATCH, self.size, self.size, self.channels)
        return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)

    def labels(self) -> npt.NDArray[np.int64]:
        """Of the images."""
        return np.random.default_rng(1).integers(0, LABELS, self.steps * BATCH)

    def backbone(self) -> Backbone:
        """Conv4 of 64 channels."""
        return build_backbone(
            name="conv4",
            channels=self.channels,
            size=self.size,
            width=64,
            drop_rate=0,
            drop_block=1,
            mean=[0.5] * self.channels,
            std=[0.3] * self.channels,
            seed=0,
        )


SETTINGS = {
    "train_conv4_28": Setting(
        size=28, channels=1, augmentation=Augmentation(crop_padding=2, flip=False, jitter=0), steps=60
    ),
    "train_conv4_32": Setting(
        size=32, channels=3, augmentation=Augmentation(crop_padding=4, flip=True, jitter=0.4), steps=40
    ),
}


def ours(setting: Setting, precision: Precision) -> Callable[[], Any]:
    """An epoch of `mela.pretraining`."""
    keep_freed_memory()
    images, backbone = setting.images(), setting.backbone()
    targets = Targets(image_ids=np.arange(len(images)), labels=setting.labels())
    schedule = Schedule(epochs=1, learning_rate=0.05, momentum=0.9, weight_decay=5e-4, milestones=[], decay=0.1)
    compute = Compute(dtype=choose_dtype(precision, torch.device("cpu")))
    return lambda: pretrain(
        backbone,
        images,
        targets,
        augmentation=setting.augmentation,
        schedule=schedule,
        batch_size=BATCH,
        seed=0,
        compute=compute,
    )


class Images(Dataset[tuple[Tensor, int]]):
    """Images one by one, through PIL."""

    def __init__(self, setting: Setting) -> None:
        self.images, self.labels = setting.images(), setting.labels()
        augmentation = setting.augmentation
        steps: list[Any] = [transforms.RandomCrop(setting.size, padding=augmentation.crop_padding)]
        if augmentation.jitter:
            steps.append(transforms.ColorJitter(*[augmentation.jitter] * 3))
        if augmentation.flip:
            steps.append(transforms.RandomHorizontalFlip())
        mean, std = [0.5] * setting.channels, [0.3] * setting.channels
        self.transform = transforms.Compose([*steps, transforms.ToTensor(), transforms.Normalize(mean, std)])

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = self.images[index]
        picture = Image.fromarray(image[..., 0] if image.shape[2] == 1 else image)
        return self.transform(picture), int(self.labels[index])


def plain_conv4(channels: int, size: int) -> nn.Module:
    """The network as the field writes it."""
    layers: list[nn.Module] = []
    for index in range(4):
        convolution = nn.Conv2d(channels if index == 0 else 64, 64, 3, padding=1, bias=False)
        layers += [convolution, nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * (size // 16) ** 2, LABELS))


def reference(setting: Setting, workers: int) -> Callable[[], Any]:
    """An epoch of the reference way."""
    model = plain_conv4(setting.channels, setting.size).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    loader = DataLoader(
        Images(setting), batch_size=BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )

    def epoch() -> float:
        total = 0.0
        for batch, labels in loader:
            logits = model(batch)
            loss = F.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() + (logits.argmax(1) == labels).float().mean().item()
        return total

    return epoch


def row_of(name: str, n: int) -> dict[str, Any]:
    """Images per second."""
    setting = SETTINGS[name]
    contenders: dict[str, tuple[Any, ...]] = {
        "auto": (ours, setting, "auto"),
        "float32": (ours, setting, "float32"),
        **{str(workers): (reference, setting, workers) for workers in WORKERS},
    }
    taken = compete(contenders, n=n)
    rates = {key: _per_second(timing, setting.steps * BATCH) for key, timing in taken.items()}
    best = max(map(str, WORKERS), key=lambda workers: rates[workers].median)
    return record(
        name,
        rates["auto"],
        rates[best],
        unit="images/s",
        n=n,
        precision=str(choose_dtype("auto", torch.device("cpu"))).removeprefix("torch."),
        float32=round(rates["float32"].median, 1),
        reference_by_workers={str(workers): round(rates[str(workers)].median, 1) for workers in WORKERS},
        batch=BATCH,
        threads=torch.get_num_threads(),
    )


def _per_second(timing: Timing, images: int) -> Timing:
    return Timing(median=images / timing.median, low=images / timing.high, high=images / timing.low)


def main(n: Annotated[int, typer.Option(help="rounds")] = 5) -> None:
    """Add to results/bench.json."""
    rows = []
    for name in SETTINGS:
        rows.append(row_of(name, n))
        print(
            "{name}: {ours:.0f} images/s ({precision}; float32 {float32:.0f}) against {reference:.0f} "
            "(by workers {reference_by_workers}), {ratio} times".format(**rows[-1]),
            flush=True,
        )
    write_rows(rows)


if __name__ == "__main__":
    typer.run(main)
