"""List accuracies of the paper (Wang, Pontil and Ciliberto, 2021), shown beside those of the same benchmark."""

from mela.params import DataParams

# the data sets of MetaDataset that the paper mixes
METADATASET = frozenset({"aircraft", "cub", "vgg_flower"})

# what the pipeline itself is compared with, by their names among the systems below
ON_PAGE = {
    "pruned_unguarded-rfs": "MeLa, published (ResNet-12)",
    "oracle-rfs": "true labels (RFS), published (ResNet-12)",
}

# numbers of support images of a class that all of these are for
PUBLISHED_SHOTS = (1, 5)

# The tables of methods of the paper, 5-way accuracy in percent with ResNet-12 unless their authors have another
# network: for each system of the benchmark, data set to 1-shot and 5-shot accuracy. The paper's MeLa prunes by
# Algorithm 2. Most figures of other methods are copied there from their own papers. What the paper has of MetaOptNet on
# CIFAR-FS is of its ridge head, the rest of its support vector machine (Lee et al., 2019).
SYSTEMS: dict[str, dict[str, tuple[float, float]]] = {
    "maml": {"mini_imagenet": (48.7, 63.1), "tiered_imagenet": (51.7, 70.3), "cifar_fs": (58.9, 71.5)},
    "protonet": {
        "mini_imagenet": (49.4, 68.2),
        "tiered_imagenet": (53.3, 72.7),
        "cifar_fs": (72.2, 83.5),
        "fc100": (37.5, 52.5),
    },
    "r2d2": {"mini_imagenet": (51.9, 68.7), "cifar_fs": (65.3, 79.4)},
    "metaoptnet_ridge": {"cifar_fs": (72.6, 84.3)},
    "metaoptnet_svm": {"mini_imagenet": (62.6, 78.6), "tiered_imagenet": (66.0, 81.5), "fc100": (41.1, 55.5)},
    "shot_free": {"mini_imagenet": (59.0, 77.6), "tiered_imagenet": (63.5, 82.6), "cifar_fs": (69.2, 84.7)},
    "tadam": {"fc100": (40.1, 56.1)},
    "feat": {"metadataset": (60.9, 75.0)},
    "frn": {"mini_imagenet": (63.0, 78.01), "metadataset": (63.1, 79.7)},
    "initial": {"mini_imagenet": (60.2, 75.6), "tiered_imagenet": (64.3, 78.9), "metadataset": (61.9, 78.6)},
    "pruned_unguarded-rfs": {
        "mini_imagenet": (62.0, 79.6),
        "tiered_imagenet": (69.1, 84.2),
        "cifar_fs": (71.4, 85.6),
        "fc100": (44.0, 59.5),
        "metadataset": (66.3, 82.4),
    },
    "pruned_unguarded-s2m2-finetune": {"mini_imagenet": (65.8, 83.1), "tiered_imagenet": (70.6, 85.9)},
    "kmeans-rfs": {"mini_imagenet": (60.7, 76.9), "tiered_imagenet": (64.8, 78.8)},
    "oracle-rfs": {
        "mini_imagenet": (62.0, 79.6),
        "tiered_imagenet": (69.4, 84.4),
        "cifar_fs": (71.6, 85.7),
        "fc100": (44.4, 60.0),
    },
    "oracle-rfs-feat": {"mini_imagenet": (66.7, 82.0), "tiered_imagenet": (70.8, 84.8)},
    "oracle-rfs-frn": {"mini_imagenet": (66.4, 82.8), "tiered_imagenet": (71.2, 86.0)},
    "moco": {"mini_imagenet": (54.2, 73.0)},
    "cmc": {"mini_imagenet": (56.1, 73.9)},
}

# The same with the conv4 of RFS (Tian et al., 2020), which has these figures in its tables; those of ProtoNet are
# quoted there. Five augmented copies take the place of each support image, except for ProtoNet.
CONV4: dict[str, dict[str, tuple[float, float]]] = {
    "oracle": {"cifar_fs": (62.7, 78.7), "fc100": (39.6, 53.5), "mini_imagenet": (55.3, 71.6)},
    "oracle-distill": {"cifar_fs": (63.8, 79.5), "fc100": (40.3, 54.1), "mini_imagenet": (55.9, 71.7)},
    "protonet": {"cifar_fs": (55.5, 72.0), "fc100": (35.3, 48.6), "mini_imagenet": (49.4, 68.2)},
}

# The same by data set, where one embedding learns from tasks of all three (the paper's Table 8).
METADATASET_BY_DATASET: dict[str, dict[str, tuple[float, float]]] = {
    "feat": {"aircraft": (61.7, 75.8), "cub": (59.6, 73.1), "vgg_flower": (62.9, 76.0)},
    "frn": {"aircraft": (60.7, 77.6), "cub": (61.9, 77.7), "vgg_flower": (65.2, 81.2)},
    "initial": {"aircraft": (67.7, 82.8), "cub": (53.8, 69.2), "vgg_flower": (65.4, 83.3)},
    "pruned_unguarded-rfs": {"aircraft": (69.2, 84.3), "cub": (61.0, 77.2), "vgg_flower": (69.4, 86.0)},
}


def benchmark_of(data: DataParams) -> str:
    """Return the name by which the tables above know the images of a run."""
    mixed = {one.name for one in data.datasets or ()}
    return "metadataset" if mixed == METADATASET else data.name
