"""The classifier with what a method has learned: its own rule, with the accuracies that the benchmark measures."""

import pickle
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import torch
from PIL import Image

from mela import FewShotClassifier
from mela.data.augmentation import Augmentation
from mela.errors import MelaError
from mela.evaluation.rules import own_rule
from mela.inference import embedding as picture_model
from mela.inference import export as exporting
from mela.inference import input_images as pictures
from mela.methods import find_method, method_names
from mela.models.files import save_model
from mela.training.learner_files import save_learner
from tests.helpers.classifier import accuracy, save, write_rule
from tests.helpers.commands import mela
from tests.helpers.embedding import IMAGES, N_CLASSES, PER_CLASS, batch_of, configuration, episodes
from tests.helpers.extras import ONNX

CONFIGURATION = configuration(width=8, drop_rate=0.0, drop_block=1, std=[0.3])
SOME = Augmentation(crop_padding=2, flip=True, jitter=0.4)
ON_TASKS = [name for name in method_names() if find_method(name).sees == "tasks"]
OTHERS = [name for name in method_names() if find_method(name).sees != "tasks"]
CLASSES = np.arange(N_CLASSES * PER_CLASS) // PER_CLASS
SUPPORT = np.flatnonzero((CLASSES < 3) & (np.arange(len(CLASSES)) % PER_CLASS < 4))[:-1]  # 4, 4 and 3 of a class
LABELS = np.array(["oak", "ash", "elm"])[CLASSES[SUPPORT]]
QUERIES = np.flatnonzero((CLASSES < 3) & (np.arange(len(CLASSES)) % PER_CLASS >= 4))


def write(path: Path, name: str, network: str = "conv4") -> Any:
    """An untrained method, with statistics of some images."""
    return write_rule(path, name, CONFIGURATION | {"name": network}, batch_of(IMAGES))


def fitted(path: Path, **parameters: Any) -> FewShotClassifier:
    return FewShotClassifier.load(path, "cpu", **parameters).fit(IMAGES[SUPPORT], LABELS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "network"), [*((name, "conv4") for name in ON_TASKS), ("tadam", "resnet12"), ("frn", "resnet12")]
)
def test_accuracies_are_those_of_the_benchmark(name: str, network: str, path: Path) -> None:
    """On every task, at one shot and at three."""
    learner, tasks = write(path, name, network), episodes([([3] * 5, 4)] * 6)
    images = blurred()
    measured = own_rule(learner, images, tasks, [1, 3]).set_index(["setting", "task_id"])["accuracy"]
    classifier = FewShotClassifier.load(path, "cpu")
    for shots in (1, 3):
        found = {task.task_id: accuracy(classifier, images, task, shots) for task in tasks}
        assert found == pytest.approx(measured[f"{shots}_shot"].to_dict())
    assert measured.nunique() > 2, "rules that always say the same would be equal, too"
    assert classifier.head_ == name
    assert not hasattr(classifier, "coef_")


def blurred() -> npt.NDArray[np.uint8]:
    """The images, harder to tell apart."""
    noise = np.random.default_rng(5).normal(scale=60, size=IMAGES.shape)
    return (IMAGES + noise).clip(0, 255).astype(np.uint8)


@pytest.mark.parametrize("name", ON_TASKS)
def test_probabilities_of_any_rule(name: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of shots that differ from class to class; blocks and the names of classes make no difference."""
    write(path, name)
    classifier = fitted(path)
    found = classifier.predict_proba(IMAGES[QUERIES])
    assert found.shape == (len(QUERIES), 3)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_array_equal(classifier.predict(IMAGES[QUERIES]), classifier.classes_[found.argmax(axis=1)])
    assert len(np.unique(found.round(6))) > len(QUERIES)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(classifier)).predict_proba(IMAGES[QUERIES]), found)

    numbers = {"oak": 1, "ash": 2, "elm": 0}
    other = FewShotClassifier.load(path, "cpu").fit(IMAGES[SUPPORT], [numbers[label] for label in LABELS])
    # sorted, they are elm, oak, ash, and ash, elm, oak before
    np.testing.assert_allclose(other.predict_proba(IMAGES[QUERIES])[:, [2, 0, 1]], found, atol=1e-4)

    monkeypatch.setattr(pictures, "BLOCK_BYTES", 5 * 16 * 16)
    monkeypatch.setattr(picture_model, "IMAGES", 2)
    monkeypatch.setattr(picture_model, "BYTES", 2 * 16 * 16 * 4)
    np.testing.assert_allclose(fitted(path).predict_proba(IMAGES[QUERIES]), found, atol=1e-4)


@pytest.mark.parametrize("name", method_names())
def test_a_logistic_head_on_what_was_learned_is_that_on_the_embedding(name: str, path: Path, tmp_path: Path) -> None:
    learner = write(path, name)
    classifier = fitted(path, head="logistic", support_copies=2, augmentation=SOME)
    found = classifier.predict_proba(IMAGES[QUERIES])
    assert classifier.head_ == "logistic"
    if name != "cmc":  # whose embedding is two networks
        save_model(tmp_path / "alone.safetensors", learner.backbone, CONFIGURATION)
        alone = fitted(tmp_path / "alone.safetensors", support_copies=2, augmentation=SOME)
        np.testing.assert_array_equal(alone.predict_proba(IMAGES[QUERIES]), found)
    np.testing.assert_array_equal(classifier.transform(IMAGES), fitted(path).transform(IMAGES))
    assert classifier.transform(IMAGES).shape == (len(IMAGES), learner.backbone.dimensions)


@pytest.mark.parametrize("name", OTHERS)
def test_methods_that_have_no_rule_take_the_logistic_head(name: str, path: Path) -> None:
    write(path, name)
    classifier = fitted(path)
    assert classifier.head_ == "logistic"
    np.testing.assert_array_equal(classifier.coef_, fitted(path, head="logistic").coef_)


def test_what_is_fitted_again_forgets_the_other_head(path: Path) -> None:
    write(path, "protonet")
    classifier = fitted(path)
    expected = classifier.predict_proba(IMAGES[QUERIES])
    logistic = classifier.set_params(head="logistic").fit(IMAGES[SUPPORT], LABELS).predict_proba(IMAGES[QUERIES])
    assert not np.allclose(logistic, expected)
    of_both = {"classes_", "embedding_", "head_", "support_", "targets_"}
    assert attributes(classifier) == of_both | {
        "coef_",
        "intercept_",
        "n_iter_",
        "temperature_",
        "calibrated_",
        "threshold_",
    }
    np.testing.assert_array_equal(logistic, fitted(path, head="logistic").predict_proba(IMAGES[QUERIES]))
    again = classifier.set_params(head="auto").fit(IMAGES[SUPPORT], LABELS).predict_proba(IMAGES[QUERIES])
    np.testing.assert_array_equal(again, expected)
    assert attributes(classifier) == of_both


def attributes(classifier: FewShotClassifier) -> set[str]:
    return {name for name in vars(classifier) if name.endswith("_")}


@pytest.mark.parametrize("name", ON_TASKS)
def test_rules_in_inference_mode(name: str, path: Path) -> None:
    write(path, name)
    expected = fitted(path).predict_proba(IMAGES[QUERIES])
    with torch.inference_mode():
        found = fitted(path).predict_proba(IMAGES[QUERIES])
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("name", ["anil", "maml", "tadam"])
def test_rules_that_change_the_network_in_several_threads(
    name: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(path, name)
    classifier = fitted(path)
    expected = classifier.predict_proba(IMAGES[QUERIES])
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            features = [pool.submit(classifier.transform, IMAGES[QUERIES]) for _ in range(8)]
            found = list(pool.map(classifier.predict_proba, [IMAGES[QUERIES]] * 8))
    finally:
        sys.setswitchinterval(before)
    for one in [*found, classifier.predict_proba(IMAGES[QUERIES])]:
        np.testing.assert_allclose(one, expected, atol=1e-5)
    for told in features:
        np.testing.assert_allclose(told.result(), fitted(path).transform(IMAGES[QUERIES]), atol=1e-5)


@pytest.mark.parametrize(
    ("name", "weights", "message"),
    [
        ("maml", "backbone.body", "model: expected finite logits by the rule of maml, got NaN or infinity"),
        ("feat", "transformer", "model: expected finite logits by the rule of feat, got NaN or infinity"),
        ("feat", "backbone.body", "features: image 0: expected finite values, got NaN or infinity"),
        ("r2d2", "log_lambda", "support images: the rule of r2d2 failed: .*"),
    ],
)
def test_a_rule_that_comes_to_nothing(name: str, weights: str, message: str, path: Path) -> None:
    learner = write(path, name)
    with torch.no_grad():
        for key, value in learner.named_parameters():
            if key.startswith(weights):
                value.fill_(torch.nan)
    save_learner(path, learner, name, CONFIGURATION)
    with pytest.raises(MelaError, match=f"^{message}.*; (set head to 'logistic', or )?train .*again$"):
        fitted(path).predict(IMAGES[QUERIES])


def test_a_rule_takes_no_copies(path: Path) -> None:
    write(path, "frn")
    message = "support_copies: expected 1 with the rule of frn, got 5; set head to 'logistic', which takes copies"
    with pytest.raises(MelaError, match=f"^{re.escape(message)}$"):
        fitted(path, support_copies=5, augmentation=SOME)


def test_the_command_takes_what_a_method_has_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("feat.safetensors"), "feat")
    for number, label in zip(SUPPORT, LABELS, strict=True):
        save(f"support/{label}/{number}.png", IMAGES[number, ..., 0])
    save("query/new.png", IMAGES[QUERIES[5], ..., 0])
    with Image.open("query/new.png") as opened:
        query = [opened.copy()]
    predict = partial(mela, "predict", "--support", "support", "--query", "query", "--model", "feat.safetensors")
    found = {}
    for head in ("auto", "logistic"):
        done = predict("--device", "cpu", "--head", head)
        assert done.returncode == 0
        found[head] = pd.read_csv("predictions.csv").loc[0, "probability"]
        expected = fitted(Path("feat.safetensors"), head=head).predict_proba(query).max()
        assert found[head] == pytest.approx(expected, rel=1e-4)
        how = {"auto": "the rule of feat", "logistic": "logistic regression"}[head]
        assert done.stdout.endswith(f"predictions.csv: 1 images, by {how}\n")
    assert found["auto"] != pytest.approx(found["logistic"], rel=1e-3)
    done = predict("--device", "cpu", "--head", "svm")
    assert (done.returncode, done.stderr) == (1, "error: head: expected auto or logistic, got 'svm'; correct it\n")


@pytest.mark.slow
@ONNX
@pytest.mark.parametrize("name", ["maml", "frn", "distill", "cmc"])
def test_the_embedding_of_a_method_is_exported(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the method has changed the network, or has two."""
    monkeypatch.chdir(tmp_path)
    write(Path("model.safetensors"), name)
    assert mela("export", "--onnx", "psi.onnx", "--model", "model.safetensors").returncode == 0
    card = Path("psi.onnx.md").read_text(encoding="utf-8")
    assert f"| method | {find_method(name).title}: its embedding, without what it has learned besides |" in card
    given = (IMAGES.transpose(0, 3, 1, 2) / 255).astype(np.float32)
    found = exporting.run_onnx(Path("psi.onnx").read_bytes())(given)
    expected = FewShotClassifier.load("model.safetensors", "cpu").transform(IMAGES)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
