"""The classifier that uses a trained embedding: the head of the stage evaluate, in scikit-learn's manners."""

import os
import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import torch
from PIL import Image, ImageOps
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

from mela import FewShotClassifier
from mela.data.augmentation import Augmentation
from mela.data.episodes import Episodes
from mela.errors import MelaError
from mela.evaluation.heads import l2_normalize
from mela.evaluation.temperature_files import write_temperatures
from mela.inference import input_images as pictures
from mela.io import feature_tables, schemas, store
from mela.models.features import extract_features
from mela.models.untrained import save_nothing
from mela.sources.image_files import open_image
from mela.sources.packing import to_array
from tests.helpers.classifier import accuracy, some_images, write_model
from tests.helpers.project import ROOT
from tests.helpers.starts import SLOW, modules_after

SOME = Augmentation(crop_padding=2, flip=True, jitter=0.4)
MODELS = ("merged", "pruned")
LABELS = np.array(["oak", "ash", "elm"]).repeat(4)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "psi.safetensors")


QUERIES = some_images(20, 16, 16, 3, seed=1)
# four of each class that differ a little
IMAGES = some_images(3, 16, 16, 3).repeat(4, axis=0) // 8 * 7 + some_images(12, 16, 16, 3, seed=2) // 8


def fitted(model: Path, **parameters: Any) -> FewShotClassifier:
    return FewShotClassifier.load(model, "cpu", **parameters).fit(IMAGES, LABELS)


@pytest.mark.slow
def test_the_package_offers_it_without_importing_torch() -> None:
    imported = modules_after("import mela; assert 'FewShotClassifier' in mela.__all__")
    assert not {name for name in SLOW if name in imported}
    assert "torch" in modules_after("from mela import FewShotClassifier")
    with pytest.raises(ImportError, match="FewShotLearner"):
        exec("from mela import FewShotLearner")


@pytest.mark.slow
def test_accuracies_are_those_of_the_stage_evaluate(finished: Path) -> None:
    """On every frozen test task, in both settings."""
    images = store.open_images(finished / "data/images/images.npy")
    tasks = Episodes(store.read_table(finished / "data/manifest/test.parquet", schemas.MANIFEST))
    measured = store.read_table(finished / "results/evaluate/per_task.parquet", schemas.ACCURACIES)
    for name in ("initial", "merged", "pruned", "oracle"):
        classifier = FewShotClassifier.load(finished / f"models/{name}.safetensors", "cpu")
        rows = measured[(measured["split"] == "test") & (measured["model"] == name)]
        for shots in (1, 5):
            expected = rows[rows["setting"] == f"{shots}_shot"].set_index("task_id")["accuracy"].to_dict()
            assert {task.task_id: accuracy(classifier, images, task, shots) for task in tasks} == expected
            assert len(set(expected.values())) > 1


def test_without_a_model_it_takes_that_of_the_labels_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read when it is first needed, by the params file of that moment; without one, merged labels are in use."""
    monkeypatch.chdir(tmp_path)
    files = {name: write_model(Path("models", f"{name}.safetensors"), seed=seed) for seed, name in enumerate(MODELS)}
    expected = {name: fitted(path).predict_proba(QUERIES) for name, path in files.items()}
    assert not np.array_equal(expected["merged"], expected["pruned"])
    classifier = FewShotClassifier(device="cpu")
    for text, name in {"": "merged", "use: pruned\n": "pruned", "use: merged\n": "merged"}.items():
        if text:
            Path("params.yaml").write_text(text)
        np.testing.assert_array_equal(classifier.fit(IMAGES, LABELS).predict_proba(QUERIES), expected[name])
        np.testing.assert_array_equal(clone(classifier).fit(IMAGES, LABELS).predict_proba(QUERIES), expected[name])
    # what was fitted stays what it is
    Path("params.yaml").write_text("use: pruned\n")
    np.testing.assert_array_equal(classifier.predict_proba(QUERIES), expected["merged"])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(classifier)).predict_proba(QUERIES), expected["merged"])
    assert classifier.get_params()["model"] is None


def untrained() -> None:
    save_nothing(Path("models/merged.safetensors"))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda: None, "models/merged.safetensors: no such file; run `dvc repro`, or the stage that makes it, first"),
        (
            untrained,
            "models/merged.safetensors: expected an embedding, got none, since nothing was trained on these labels; "
            "set compare.merged to true in the parameters and run the pipeline again, or name another model",
        ),
        (
            lambda: Path("params.yaml").write_text("use: pruned\n"),
            "models/pruned.safetensors: no such file; run `dvc repro`, or the stage that makes it, first",
        ),
        (
            lambda: Path("params.yaml").write_text("use: [merged]\n"),
            "params.yaml: use: expected merged or pruned, got ['merged']",
        ),
        (
            lambda: Path("params.yaml").write_text("data: {}\n"),
            "params.yaml: use: expected this block, found only data",
        ),
        (lambda: Path("params.yaml").write_text("{"), "params.yaml: expected YAML, got "),
    ],
)
def test_a_model_of_no_use_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[], Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("models").mkdir()
    spoil()
    for attempt in (FewShotClassifier.load, lambda: FewShotClassifier().fit(IMAGES, LABELS)):
        with pytest.raises(MelaError, match=rf"^{re.escape(message)}[^\n]*$"):
            attempt()


def probabilities_of_scikit_learn(
    support: npt.NDArray[np.float32], labels: npt.NDArray[Any], queries: npt.NDArray[np.float32], C: float
) -> npt.NDArray[np.float64]:
    """Solved to the end, which scikit-learn by default does not."""
    head = LogisticRegression(C=C, tol=1e-10, max_iter=10_000, class_weight="balanced")
    head.fit(l2_normalize(support).astype(np.float64), labels)
    return head.predict_proba(l2_normalize(queries).astype(np.float64))


def test_probabilities_are_those_of_scikit_learn(model: Path) -> None:
    classifier = fitted(model, C=3.0)
    support, queries = classifier.transform(IMAGES), classifier.transform(QUERIES)
    found = classifier.predict_proba(QUERIES)
    np.testing.assert_allclose(found, probabilities_of_scikit_learn(support, LABELS, queries, 3.0), atol=1e-7)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_array_equal(classifier.predict(QUERIES), classifier.classes_[found.argmax(axis=1)])
    assert classifier.coef_.shape == (3, 8)
    assert classifier.intercept_.shape == (3,)
    assert classifier.score(IMAGES, LABELS) == 1.0


def test_features_are_those_of_the_stage_extract(finished: Path) -> None:
    images = store.open_images(finished / "data/images/images.npy")
    ids, features = feature_tables.read_features(finished / "data/features.parquet")
    found = FewShotClassifier.load(finished / "models/initial.safetensors", "cpu").transform(images[ids])
    np.testing.assert_array_equal(found, features)


def test_the_order_of_classes_and_images_changes_nothing(model: Path) -> None:
    classifier = fitted(model)
    expected = classifier.predict_proba(QUERIES)
    order = np.random.default_rng(0).permutation(len(LABELS))
    shuffled = clone(classifier).fit(IMAGES[order], LABELS[order])
    np.testing.assert_allclose(shuffled.predict_proba(QUERIES), expected, atol=1e-7)
    renamed = {"oak": 7, "ash": 9, "elm": 8}
    other = clone(classifier).fit(IMAGES, [renamed[label] for label in LABELS])
    assert other.classes_.tolist() == [7, 8, 9]
    np.testing.assert_allclose(other.predict_proba(QUERIES)[:, [2, 1, 0]], expected[:, [0, 1, 2]], atol=1e-7)
    assert other.predict(QUERIES).tolist() == [renamed[label] for label in classifier.predict(QUERIES)]


@pytest.mark.parametrize(
    "labels",
    [
        LABELS.tolist(),
        LABELS.astype(object),
        np.array([30, -2, 5]).repeat(4),
        np.array([0.0, 1.0, 2.0]).repeat(4),
        np.array([True, False]).repeat([4, 8]),
    ],
    ids=["strings", "objects", "integers", "whole floats", "booleans"],
)
def test_labels_are_of_any_kind(model: Path, labels: Any) -> None:
    predicted = FewShotClassifier(model, device="cpu").fit(IMAGES, labels).predict(IMAGES)
    assert predicted.dtype == np.asarray(labels).dtype
    np.testing.assert_array_equal(predicted, labels)


def test_probabilities_have_the_temperature_of_the_model(tmp_path: Path) -> None:
    model = write_model(tmp_path / "psi.safetensors")
    plain = fitted(model)
    assert (plain.temperature_, plain.calibrated_) == (1.0, False)
    fitted_on = {"1_shot": {"temperature": 0.5}, "5_shot": {"temperature": 0.125}}
    write_temperatures(tmp_path / "temperatures.json", {model: fitted_on}, C=1.0)
    calibrated = fitted(model)
    assert (calibrated.temperature_, calibrated.calibrated_) == (0.125, True)
    # the softmax of eight times the logits
    expected = plain.predict_proba(QUERIES) ** 8
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(calibrated.predict_proba(QUERIES), expected, rtol=1e-9)
    # it was fitted on heads without copies, and with this C
    for changes in ({"support_copies": 2, "augmentation": SOME}, {"C": 2.0}):
        other = fitted(model, **changes)
        assert (other.temperature_, other.calibrated_) == (1.0, False)
    write_temperatures(tmp_path / "temperatures.json", {model: {}}, C=1.0)
    assert not fitted(model).calibrated_


@pytest.mark.parametrize("channels", [1, 3])
def test_arrays_pil_images_and_paths_are_one(channels: int, tmp_path: Path) -> None:
    """Of another size and other channels than the model's, and in a list of each kind."""
    classifier = FewShotClassifier.load(write_model(tmp_path / "psi.safetensors", channels=channels), "cpu")
    images = some_images(12, 22, 31, 3)
    packed = np.stack([to_array(Image.fromarray(image), size=16, channels=channels) for image in images])
    opened = [Image.fromarray(image) for image in images]
    paths = [tmp_path / f"{number}.png" for number in range(12)]
    for path, image in zip(paths, opened, strict=True):
        image.save(path)
    expected = classifier.transform(packed)
    probabilities = classifier.fit(packed, LABELS).predict_proba(packed)
    mixed = [*images[:4], *opened[4:8], *map(str, paths[8:])]
    for given in (images, list(images), opened, paths, np.array([str(path) for path in paths]), mixed):
        np.testing.assert_array_equal(classifier.transform(given), expected)
        np.testing.assert_array_equal(classifier.fit(given, LABELS).predict_proba(given), probabilities)


def test_grey_arrays_have_a_channel_axis_or_none(tmp_path: Path) -> None:
    classifier = FewShotClassifier.load(write_model(tmp_path / "psi.safetensors", channels=1), "cpu")
    for size in (16, 20):
        grey = some_images(5, size, size, 1)
        expected = classifier.transform(grey)
        for given in (grey[..., 0], list(grey), list(grey[..., 0]), [Image.fromarray(image) for image in grey[..., 0]]):
            np.testing.assert_array_equal(classifier.transform(given), expected)


def test_images_go_the_way_of_the_stage_images(model: Path, tmp_path: Path) -> None:
    """Turned as EXIF says, 16 bits a pixel, palettes and transparency: as files, and as Pillow opens them."""
    image = Image.fromarray(some_images(1, 20, 30, 3)[0])
    exif = Image.Exif()
    exif[0x0112] = 6
    image.save(tmp_path / "turned.png", exif=exif)
    image.convert("P").save(tmp_path / "palette.png")
    Image.fromarray(some_images(1, 20, 30, 4)[0]).save(tmp_path / "transparent.png")
    Image.fromarray(some_images(1, 20, 30)[0].astype(np.uint16) * 257).save(tmp_path / "deep.png")
    classifier = FewShotClassifier.load(model, "cpu")
    for path in sorted(tmp_path.glob("*.png")):
        expected = classifier.transform(to_array(open_image(path, path.name), size=16, channels=3)[None])
        np.testing.assert_array_equal(classifier.transform([path]), expected)
        with Image.open(path) as opened:
            np.testing.assert_array_equal(classifier.transform([opened]), expected)
    with Image.open(tmp_path / "turned.png") as opened:
        upright = ImageOps.exif_transpose(opened)
    assert upright.size == (20, 30)
    transparent = some_images(1, 20, 30, 4)
    expected = classifier.transform([tmp_path / "transparent.png"])
    np.testing.assert_array_equal(classifier.transform(transparent), expected)


def test_blocks_change_nothing(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = fitted(model)
    expected = classifier.predict_proba(QUERIES), classifier.transform(QUERIES)
    monkeypatch.setattr(pictures, "BLOCK_BYTES", 3 * 16 * 16 * 3)
    assert [len(block) for block in classifier.embedding_.blocks(QUERIES, "queries")] == [3] * 6 + [2]
    for given in (QUERIES, list(QUERIES)):
        np.testing.assert_allclose(classifier.predict_proba(given), expected[0], atol=1e-6)
        np.testing.assert_allclose(classifier.transform(given), expected[1], rtol=1e-4, atol=1e-5)


def test_no_more_than_a_block_of_queries_is_in_memory(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Images come and go: opening one waits until features of all blocks before it are there."""
    monkeypatch.setattr(pictures, "BLOCK_BYTES", 3 * 16 * 16 * 3)
    order: list[str] = []

    def opened(picture: Any, name: str) -> Image.Image:
        order.append("image")
        return Image.fromarray(picture)

    def extracted(*arguments: Any) -> npt.NDArray[np.float32]:
        order.append("features")
        return extract_features(*arguments)

    classifier = fitted(model)
    monkeypatch.setattr(pictures, "_opened", opened)
    monkeypatch.setattr("mela.inference.embedding.extract_features", extracted)
    classifier.predict(list(QUERIES[:7]))
    assert order == [*["image"] * 3, "features"] * 2 + ["image", "features"]


def test_copies_take_the_place_of_support_images(model: Path) -> None:
    # copies have no surroundings of other images
    classifier = fitted(model, support_copies=3, augmentation=replace(SOME, surroundings=0.5), random_state=5)
    generator = torch.Generator().manual_seed(5)
    arguments = classifier.embedding_.backbone, IMAGES, np.arange(12), lambda batch: SOME(batch, generator)
    support = np.concatenate([extract_features(*arguments) for _ in range(3)])
    queries = classifier.transform(QUERIES)
    expected = probabilities_of_scikit_learn(support, np.tile(LABELS, 3), queries, 1.0)
    np.testing.assert_allclose(classifier.predict_proba(QUERIES), expected, atol=1e-7)

    again = clone(classifier).fit(IMAGES, LABELS)
    np.testing.assert_array_equal(again.coef_, classifier.coef_)
    drawn = [clone(classifier).set_params(random_state=np.random.RandomState(seed)) for seed in (3, 3, 4)]
    one, same, other = (c.fit(IMAGES, LABELS).coef_ for c in drawn)
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_scikit_learn_can_handle_it(model: Path) -> None:
    given = {"device": "cpu", "C": 2.0, "support_copies": 2, "augmentation": SOME, "random_state": 3}
    classifier = FewShotClassifier(model, **given)
    assert classifier.get_params() == given | {"model": model, "head": "auto", "max_iter": 1000, "threshold": None}
    assert clone(classifier.fit(IMAGES, LABELS)).get_params() == classifier.get_params()
    assert not hasattr(clone(classifier), "classes_")
    assert classifier.__sklearn_tags__().estimator_type == "classifier"
    assert "C=2.0" in repr(classifier)
    folds = cross_val_score(FewShotClassifier(model, device="cpu"), IMAGES, LABELS, cv=2)
    assert folds.shape == (2,)
    search = GridSearchCV(FewShotClassifier(model, device="cpu"), {"C": [0.1, 10.0]}, cv=2)
    assert search.fit(list(IMAGES), LABELS).predict(QUERIES).shape == (20,)


@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_it_has_to_be_fitted(model: Path, method: str) -> None:
    classifier = FewShotClassifier.load(model, "cpu")
    with pytest.raises(NotFittedError, match=r"^This FewShotClassifier instance is not fitted yet"):
        getattr(classifier, method)(QUERIES)
    with pytest.raises(NotFittedError):
        classifier.score(QUERIES, LABELS)
    assert classifier.transform(QUERIES).shape == (20, 8)


def test_a_fitted_one_keeps_its_embedding(model: Path, tmp_path: Path) -> None:
    """Whatever becomes of the file and the parameters, until it is fitted again."""
    moving = tmp_path / "psi.safetensors"
    moving.write_bytes(model.read_bytes())
    classifier = fitted(moving)
    expected = classifier.predict_proba(QUERIES)
    write_model(moving, seed=1)
    classifier.set_params(model=write_model(tmp_path / "other.safetensors", seed=2))
    copy = pickle.loads(pickle.dumps(classifier))
    for one in (classifier, copy):
        np.testing.assert_array_equal(one.predict_proba(QUERIES), expected)
    refitted = classifier.fit(IMAGES, LABELS).transform(QUERIES)
    np.testing.assert_array_equal(refitted, fitted(tmp_path / "other.safetensors").transform(QUERIES))


def test_classes_weigh_the_same_whatever_their_shots(model: Path) -> None:
    """An image that occurs several times is as good as once."""
    rows = np.array([0, 0, 0, 4, 8])
    some = FewShotClassifier.load(model, "cpu").fit(IMAGES[rows], LABELS[rows])
    assert some.predict(IMAGES[[0, 4, 8]]).tolist() == ["oak", "ash", "elm"]


FLOATS = (
    "expected uint8 (0 to 255), got float64, which does not tell whether white is 1 or 255; if it is 1, pass "
    "(255 * images).round().astype(np.uint8)"
)
SEVERAL = "expected several images, got one"
BAD_IMAGES: dict[str, tuple[Any, str]] = {
    "floats": (IMAGES / 255, FLOATS),
    "integers": (
        IMAGES.astype(np.int64),
        "expected uint8 (0 to 255), got int64; if all values are 0 to 255, pass images.astype(np.uint8)",
    ),
    "booleans": (IMAGES > 99, "expected uint8 (0 to 255), got bool; pass (255 * images).astype(np.uint8)"),
    "one colour image": (
        IMAGES[0],
        "expected a batch (n, h, w, c) or (n, h, w), got one image of shape (16, 16, 3); add the axis, images[None]",
    ),
    "one grey image": (
        IMAGES[0, ..., 0],
        "expected a batch (n, h, w, c) or (n, h, w), got one image of shape (16, 16); add the axis, images[None]",
    ),
    "channels first": (
        IMAGES.transpose(0, 3, 1, 2),
        "expected shape (n, h, w, c) with c = 1, 3 or 4, got (12, 3, 16, 16); if channels come second, "
        "images.transpose(0, 2, 3, 1)",
    ),
    "flattened": (IMAGES[0].reshape(-1), "expected shape (n, h, w, c) or (n, h, w), got (768,)"),
    "no pixels": (IMAGES[:, :0], "expected shape (n, h, w, c) or (n, h, w), got (12, 0, 16, 3)"),
    "no images": (IMAGES[:0], "expected at least one image, got none"),
    "an empty list": ([], "expected at least one image, got none"),
    "one path": ("a.png", f"{SEVERAL} path, 'a.png'; put it into a list, [image]"),
    "one Path": (Path("b/a.png"), f"{SEVERAL} path, 'b/a.png'; put it into a list, [image]"),
    "one PIL image": (Image.fromarray(IMAGES[0]), f"{SEVERAL} PIL image; put it into a list, [image]"),
    "a number": (3, "expected an array (n, h, w, c) or (n, h, w), or a list of arrays, PIL images or paths, got int"),
}
BAD_LISTS: dict[str, tuple[list[Any], str]] = {
    "a number among images": ([IMAGES[0], 3], "NAME[1]: expected an array, a PIL image or a path, got int"),
    "floats among images": ([IMAGES[0], IMAGES[1] / 255], f"NAME[1]: {FLOATS}"),
    "channels first among images": (
        [IMAGES[0].T],
        "NAME[0]: expected shape (h, w), or (h, w, c) with c = 1, 3 or 4, got (3, 16, 16)",
    ),
    "32 bits": (
        [Image.new("F", (16, 16))],
        "image 'NAME[0]': expected 8 or 16 bits per channel, got 32; save it with 8",
    ),
    "no such file": (
        ["nowhere.png"],
        "image 'nowhere.png': expected a readable image, got FileNotFoundError: [Errno 2] No such file or directory: "
        "'nowhere.png'; replace the file",
    ),
}


@pytest.mark.parametrize("case", BAD_IMAGES)
def test_images_that_are_refused(model: Path, case: str) -> None:
    given, message = BAD_IMAGES[case]
    classifier = fitted(model)
    for name, call, labels in (
        ("support images", clone(classifier).fit, [LABELS]),
        ("images", classifier.transform, []),
        ("query images", classifier.predict, []),
        ("query images", classifier.predict_proba, []),
    ):
        with pytest.raises(MelaError, match=f"^{re.escape(f'{name}: {message}')}$"):
            call(given, *labels)


@pytest.mark.parametrize("case", BAD_LISTS)
def test_images_of_a_list_that_are_refused(model: Path, case: str) -> None:
    given, message = BAD_LISTS[case]
    classifier = fitted(model)
    with pytest.raises(MelaError, match=f"^{re.escape(message.replace('NAME', 'query images'))}$"):
        classifier.predict(given)
    with pytest.raises(MelaError, match=f"^{re.escape(message.replace('NAME', 'support images'))}$"):
        classifier.fit([*given, IMAGES[0]], ["oak"] * len(given) + ["ash"])


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[Image.Image]:
    """A file that ends too early, which Pillow notices when the pixels are asked for."""
    path = tmp_path / "broken.png"
    Image.fromarray(np.random.default_rng(0).integers(256, size=(64, 64, 3)).astype(np.uint8)).save(path)
    path.write_bytes(path.read_bytes()[:2000])
    with Image.open(path) as image:
        yield image


def test_a_pipe_is_not_waited_for(model: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    message = rf"^image '{tmp_path}/pipe': expected a file, got a device or a pipe; give another path$"
    with pytest.raises(MelaError, match=message):
        FewShotClassifier.load(model, "cpu").fit([tmp_path / "pipe", IMAGES[0]], ["ash", "elm"])


def test_an_open_image_that_cannot_be_decoded(model: Path, broken: Image.Image) -> None:
    message = r"^image 'images\[0\]': expected a readable image, got OSError: .*; replace the file$"
    with pytest.raises(MelaError, match=message):
        FewShotClassifier.load(model, "cpu").transform([broken])


LEFT_OUT = "of 12 samples have none); fill it in, or leave these samples out"


@pytest.mark.parametrize(
    ("parameters", "labels", "message"),
    [
        ({}, ["oak", None] * 6, f"labels: expected a value for every sample, got None at position 1 (6 {LEFT_OUT}"),
        ({}, [1.0, 2.0, np.nan] * 4, f"labels: expected a value for every sample, got nan at position 2 (4 {LEFT_OUT}"),
        ({}, ["oak", np.nan] * 6, f"labels: expected a value for every sample, got nan at position 1 (6 {LEFT_OUT}"),
        ({}, ("oak", pd.NA) * 6, f"labels: expected a value for every sample, got <NA> at position 1 (6 {LEFT_OUT}"),
        (
            {},
            ["oak", 1] * 6,
            "labels: expected values of one type that can be sorted, got str at position 0 and int at position 1; "
            "convert all of them to text",
        ),
        ({}, LABELS[:11], "there are 12 support images, but 11 labels; give"),
        ({}, ["oak"] * 12, "labels: expected two different ones or more, got only oak; add images of another class"),
        ({"head": "svm"}, LABELS, "head: expected auto or logistic, got 'svm'; correct it"),
        ({"C": 0.0}, LABELS, "C: expected a finite number above 0, got 0.0"),
        ({"C": float("nan")}, LABELS, "C: expected a finite number above 0, got nan"),
        ({"max_iter": 0}, LABELS, "max_iter: expected an integer of at least 1, got 0"),
        ({"support_copies": 1.5}, LABELS, "support_copies: expected an integer of at least 1, got 1.5"),
        (
            {"support_copies": 5},
            LABELS,
            "support_copies=5 needs an augmentation",
        ),
        (
            {"max_iter": 1, "C": 1e6},
            LABELS,
            "max_iter: logistic regression did not converge in 1 iterations (C=1e+06); raise it",
        ),
    ],
)
def test_parameters_and_labels_that_are_refused(
    model: Path, parameters: dict[str, Any], labels: Any, message: str
) -> None:
    with pytest.raises(MelaError, match=f"^{re.escape(message)}"):
        FewShotClassifier(model, device="cpu", **parameters).fit(IMAGES, labels)


def test_quantities_are_no_labels(model: Path) -> None:
    with pytest.raises(ValueError, match=r"^Unknown label type: continuous"):
        FewShotClassifier(model, device="cpu").fit(IMAGES, np.linspace(0, 1, 12))


@pytest.mark.parametrize(
    ("file", "device", "message"),
    [
        ("nowhere.safetensors", "cpu", "no such file; run `dvc repro`, or the stage that makes it, first"),
        ("README.md", "cpu", "expected a safetensors file, got .*; train it again"),
        (None, "gpu", "device: expected auto, cpu, cuda or cuda:N, got 'gpu'"),
        (None, "cuda:99", r"runtime.device: expected a device of this machine \(\d+ CUDA devices\), got cuda:99; .*"),
    ],
)
def test_loading_tells_what_is_wrong(model: Path, file: str | None, device: str, message: str) -> None:
    path = ROOT / file if file else model
    with pytest.raises(MelaError, match=rf"^({re.escape(str(path))}: )?{message}$"):
        FewShotClassifier.load(path, device)
