"""Compare training steps with the reference way: images per second of an epoch, from bytes to updated weights.

The reference way is that of RFS and most of its peers: images become PIL images and go through torchvision's transforms
one by one, in the workers of a DataLoader, and the network is computed in float32, with its channels before rows and
columns. It has the number of workers that suits it best, of those in `Setting.workers`. Network, batches, images and
optimiser are the same.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch
import typer
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from torch.utils.flop_counter import FlopCounterMode
from torchvision import transforms

from mela.data.augmentation import Augmentation
from mela.models.backbones import Backbone, build_backbone
from mela.runtime.compute import Compute
from mela.runtime.device import Precision, choose_dtype, keep_freed_memory
from mela.training.embeddings import pretrain
from mela.training.loop import Training
from mela.training.schedule import Schedule
from mela.training.targets import Targets
from studies.lab import plain
from studies.speed.measure import Timing, compete, record, seconds_of, write_rows

BATCH, LABELS = 64, 64


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Describe images and augmentation, as in the presets."""

    size: int
    channels: int
    augmentation: Augmentation
    steps: int
    network: str = "conv4"
    width: int = 64
    device: str = "cpu"
    workers: tuple[int, ...] = (0, 1, 2)

    def images(self) -> npt.NDArray[np.uint8]:
        """Return an epoch of noise: what an image shows makes no difference to the time."""
        shape = (self.steps * BATCH, self.size, self.size, self.channels)
        return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)

    def labels(self) -> npt.NDArray[np.int64]:
        """Return the labels of the images."""
        return np.random.default_rng(1).integers(0, LABELS, self.steps * BATCH)

    def backbone(self) -> Backbone:
        """Return an untrained backbone, on the device."""
        configuration = plain(self.network, size=self.size, channels=self.channels, width=self.width)
        return build_backbone(**configuration, seed=0).to(self.device)


GREY, COLOUR = Augmentation(crop_padding=2, flip=False, jitter=0), Augmentation(crop_padding=4, flip=True, jitter=0.4)
SETTINGS = {
    "train_conv4_28": Setting(size=28, channels=1, augmentation=GREY, steps=60),
    "train_conv4_32": Setting(size=32, channels=3, augmentation=COLOUR, steps=40),
    "train_resnet12_32_half": Setting(
        size=32, channels=3, augmentation=COLOUR, steps=6, network="resnet12", width=32, workers=(0,)
    ),
    "train_resnet12_32": Setting(size=32, channels=3, augmentation=COLOUR, steps=3, network="resnet12", workers=(0,)),
}


def ours(setting: Setting, precision: Precision, compiled: bool = False) -> Callable[[], Any]:
    """Return a function that trains an epoch of `mela.training.embeddings`."""
    keep_freed_memory()
    images, backbone = setting.images(), setting.backbone()
    targets = Targets(image_ids=np.arange(len(images)), labels=setting.labels())
    schedule = Schedule(epochs=1, learning_rate=0.05, momentum=0.9, weight_decay=5e-4, milestones=[], decay=0.1)
    compute = Compute(dtype=choose_dtype(precision, torch.device(setting.device)), compiled=compiled)
    training = Training(stage="pretrain", schedule=schedule, seed=0, augmentation=setting.augmentation, compute=compute)
    return lambda: pretrain(backbone, images, targets, training, batch_size=BATCH)


class Images(Dataset[tuple[Tensor, int]]):
    """Load images one by one, through PIL."""

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


def plain_network(setting: Setting) -> nn.Module:
    """Return the network as the field writes it: channels before rows and columns, conv4 with ReLU before MaxPool."""
    if setting.network != "conv4":
        backbone = setting.backbone().to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        return nn.Sequential(backbone.body, nn.Linear(backbone.dimensions, LABELS))
    layers: list[nn.Module] = []
    for index in range(4):
        convolution = nn.Conv2d(setting.channels if index == 0 else 64, 64, 3, padding=1, bias=False)
        layers += [convolution, nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * (setting.size // 16) ** 2, LABELS))


def reference(setting: Setting, workers: int) -> Callable[[], Any]:
    """Return a function that trains an epoch the reference way."""
    device = torch.device(setting.device)
    model = plain_network(setting).to(device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    loader = DataLoader(
        Images(setting),
        batch_size=BATCH,
        shuffle=True,
        num_workers=workers,
        persistent_workers=workers > 0,
        pin_memory=device.type == "cuda",
    )

    def epoch() -> float:
        total = 0.0
        for pictures, names in loader:
            batch, labels = pictures.to(device, non_blocking=True), names.to(device, non_blocking=True)
            logits = model(batch)
            loss = F.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() + (logits.argmax(1) == labels).float().mean().item()
        return total

    return epoch


def operations_of_a_step(setting: Setting) -> float:
    """Return the floating-point operations of a training step, forward and backward, for one image."""
    network = plain_network(replace(setting, device="cpu"))
    batch = torch.rand(2, setting.channels, setting.size, setting.size)
    with FlopCounterMode(display=False) as counter:
        network(batch).logsumexp(1).sum().backward()
    return counter.get_total_flops() / 2


def peak(dtype: torch.dtype, device: str, n: int = 5) -> float:
    """Return the operations per second of a product of random square matrices."""
    side = 4096 if device == "cpu" else 8192
    one, other = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))

    def products() -> None:
        for _ in range(n):
            one @ other
        if device != "cpu":
            torch.cuda.synchronize()

    products()
    return n * 2 * side**3 / seconds_of(products)


def row_of(name: str, setting: Setting, n: int, *, compiled: bool = False) -> dict[str, Any]:
    """Measure images per second: ours, and the reference with the number of workers that suits it best."""
    others = {str(workers): (reference, setting, workers) for workers in setting.workers}
    own = {"auto": (ours, setting, "auto", compiled), "float32": (ours, setting, "float32")}
    taken = compete(own | others, n=n)
    rates = {key: _per_second(timing, setting.steps * BATCH) for key, timing in taken.items()}
    best = max(others, key=lambda workers: rates[workers].median)
    medians = {key: round(rate.median, 1) for key, rate in rates.items()}
    dtype = choose_dtype("auto", torch.device(setting.device))
    operations, rate = operations_of_a_step(setting), peak(dtype, setting.device)
    more: dict[str, Any] = {
        "precision": str(dtype).removeprefix("torch."),
        "operations_per_image": operations,
        "share_of_peak": round(rates["auto"].median * operations / rate, 3),
        "compiled": compiled,
        "float32": medians["float32"],
        "reference_by_workers": {workers: medians[workers] for workers in others},
    }
    size = {"batch": BATCH, "threads": torch.get_num_threads()}
    return record(name, rates["auto"], rates[best], unit="images/s", n=n, **more, **size)


def _per_second(timing: Timing, images: int) -> Timing:
    return Timing(median=images / timing.median, low=images / timing.high, high=images / timing.low)


def main(n: Annotated[int, typer.Option(help="rounds")] = 5) -> None:
    """Add the results to studies/results/bench.json."""
    for name, setting in SETTINGS.items():
        write_rows([row_of(name, setting, n)])
