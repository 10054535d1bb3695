"""Accuracies of the paper, beside which those of the same benchmark are shown."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """5-way accuracy in percent, 1-shot and 5-shot."""

    name: str
    one_shot: float
    five_shot: float


# Wang, Pontil and Ciliberto (2021), with ResNet-12
PUBLISHED = {
    "cifar_fs": [
        Published("MeLa, published (ResNet-12)", 71.4, 85.6),
        Published("true labels (RFS), published (ResNet-12)", 71.6, 85.7),
    ],
    "fc100": [
        Published("MeLa, published (ResNet-12)", 44.0, 59.5),
        Published("true labels (RFS), published (ResNet-12)", 44.4, 60.0),
    ],
}
