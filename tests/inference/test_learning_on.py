"""The classifier that learns on: images and classes come and go, and it is always that of all images so far."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

from mela import FewShotClassifier
from mela.data.augmentation import Augmentation
from mela.errors import MelaError
from mela.evaluation.heads import l2_normalize
from mela.evaluation.temperature_files import write_temperatures
from mela.inference.embedding import Embedding
from tests.helpers.classifier import some_images, write_model, write_rule

LABELS = np.array(["oak", "ash", "elm", "yew"]).repeat(4)
# four of each class that differ a little
IMAGES = some_images(4, 16, 16, 3).repeat(4, axis=0) // 8 * 7 + some_images(16, 16, 16, 3, seed=2) // 8
QUERIES = some_images(20, 16, 16, 3, seed=1)
ORDER = np.random.default_rng(3).permutation(16)
SOME = Augmentation(crop_padding=2, flip=True, jitter=0.4)


@pytest.fixture(scope="module", params=["logistic", "protonet", "feat"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "psi.safetensors"
    if request.param == "logistic":
        return write_model(path)
    write_rule(path, request.param)
    return path


@pytest.fixture
def logistic(tmp_path: Path) -> FewShotClassifier:
    return FewShotClassifier(write_model(tmp_path / "psi.safetensors"), device="cpu")


def of(model: Path) -> FewShotClassifier:
    return FewShotClassifier.load(model, "cpu")


def same(one: FewShotClassifier, other: FewShotClassifier) -> None:
    np.testing.assert_array_equal(one.classes_, other.classes_)
    np.testing.assert_allclose(one.predict_proba(QUERIES), other.predict_proba(QUERIES), atol=1e-6)


@pytest.mark.parametrize("cuts", [[], [1], [4, 5, 11], [8, 8, 12]])
def test_pieces_are_the_whole(model: Path, cuts: list[int]) -> None:
    """In any order, and with classes that come later."""
    classifier = of(model)
    for piece in np.split(ORDER, cuts):
        if len(piece):
            assert classifier.partial_fit(IMAGES[piece], LABELS[piece]) is classifier
    same(classifier, of(model).fit(IMAGES, LABELS))
    assert classifier.support_.shape[0] == len(classifier.targets_) == 16


def test_what_is_forgotten_was_never_there(model: Path) -> None:
    classifier = of(model).fit(IMAGES[ORDER], LABELS[ORDER])
    assert classifier.forget("elm") is classifier
    others = LABELS != "elm"
    same(classifier, of(model).fit(IMAGES[others], LABELS[others]))
    # and it can come back
    same(classifier.partial_fit(IMAGES[~others], LABELS[~others]), of(model).fit(IMAGES, LABELS))


def test_a_single_class_is_all_that_there_is(model: Path) -> None:
    classifier = of(model).partial_fit(IMAGES[:4], LABELS[:4])
    assert classifier.predict(QUERIES).tolist() == ["oak"] * 20
    np.testing.assert_array_equal(classifier.predict_proba(QUERIES), np.ones((20, 1)))
    same(classifier.partial_fit(IMAGES[4:], LABELS[4:]), of(model).fit(IMAGES, LABELS))
    for label in ("oak", "yew", "ash"):
        classifier.forget(label)
    assert classifier.predict(QUERIES).tolist() == ["elm"] * 20
    with pytest.raises(MelaError, match=r"^forget: 'elm' is the only class; fit anew$"):
        classifier.forget("elm")


def test_features_are_computed_once(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    for name in ("blocks", "seen"):
        original = getattr(Embedding, name)

        def counted(self: Embedding, pictures: Any, *others: Any, original: Any = original) -> Any:
            seen.append(len(pictures))
            return original(self, pictures, *others)

        monkeypatch.setattr(Embedding, name, counted)
    classifier = of(model).fit(IMAGES[:12], LABELS[:12])
    classifier.partial_fit(IMAGES[12:], LABELS[12:])
    classifier.forget("ash")
    assert seen == [12, 4]


def test_it_learns_on_after_a_pause_and_fit_begins_anew(model: Path, tmp_path: Path) -> None:
    moving = tmp_path / "psi.safetensors"
    moving.write_bytes(model.read_bytes())
    classifier = of(moving).fit(IMAGES[:12], LABELS[:12])
    classifier = pickle.loads(pickle.dumps(classifier))
    moving.unlink()
    same(classifier.partial_fit(IMAGES[12:], LABELS[12:]), of(model).fit(IMAGES, LABELS))
    same(classifier.set_params(model=model).fit(IMAGES[:8], LABELS[:8]), of(model).fit(IMAGES[:8], LABELS[:8]))


def test_each_piece_has_copies_of_its_own(logistic: FewShotClassifier) -> None:
    """The first are those of `fit`, and later ones are drawn otherwise."""
    logistic.set_params(support_copies=3, augmentation=SOME)
    whole = logistic.fit(IMAGES, LABELS).support_
    twice = logistic.partial_fit(IMAGES, LABELS).support_
    assert twice.shape == (32, 3, whole.shape[2])
    np.testing.assert_array_equal(twice[:16], whole)
    assert not np.array_equal(twice[16:], whole)


def test_numbers_are_labels_too(logistic: FewShotClassifier) -> None:
    logistic.partial_fit(IMAGES[:8], [7] * 4 + [3] * 4).partial_fit(IMAGES[8:12], [5] * 4)
    assert logistic.classes_.tolist() == [3, 5, 7]
    assert logistic.predict(IMAGES[:12]).tolist() == [7] * 4 + [3] * 4 + [5] * 4
    assert logistic.forget(5).classes_.tolist() == [3, 7]


def test_what_is_refused_leaves_it_as_it_was(logistic: FewShotClassifier) -> None:
    logistic.fit(IMAGES[:12], LABELS[:12])
    expected = logistic.predict_proba(QUERIES)
    for images, labels, error in (
        (IMAGES[:2], ["oak"], "there are 2 support images, but 1 labels; give one label for each image"),
        (
            IMAGES[:2],
            [1, 2],
            "labels: expected the type of the earlier ones, such as 'ash', got 1; convert them",
        ),
        (IMAGES[:2], ["oak", None], "labels: "),
        (IMAGES[:0], [], "support images: "),
    ):
        with pytest.raises(MelaError, match=f"^{error}"):
            logistic.partial_fit(images, labels)
        np.testing.assert_array_equal(logistic.predict_proba(QUERIES), expected)
    with pytest.raises(MelaError, match=r"^forget: 'fir' is unknown; expected one of 'ash', 'elm', 'oak'$"):
        logistic.forget("fir")
    with pytest.raises(MelaError, match=r"^forget: expected one label, got \['ash', 'elm'\]; call it for each$"):
        logistic.forget(["ash", "elm"])
    own = logistic.model
    with pytest.raises(
        MelaError, match=r"^partial_fit: expected the model of the earlier images \(.*\), got other; fit"
    ):
        logistic.set_params(model="other").partial_fit(IMAGES[12:], LABELS[12:])
    logistic.set_params(model=own)
    logistic.set_params(support_copies=2, augmentation=SOME)
    with pytest.raises(
        MelaError, match=r"^partial_fit: expected the head and the support_copies of the earlier images"
    ):
        logistic.partial_fit(IMAGES[12:], LABELS[12:])
    np.testing.assert_array_equal(logistic.predict_proba(QUERIES), expected)


def thresholds(path: Path, **by_shots: float) -> None:
    found = {setting: {"temperature": 0.5, "threshold": value} for setting, value in by_shots.items()}
    write_temperatures(path.with_name("temperatures.json"), {path: found}, C=1.0)


def test_images_of_none_of_the_classes(tmp_path: Path) -> None:
    path = write_model(tmp_path / "psi.safetensors")
    classifier = of(path).fit(IMAGES[:8], LABELS[:8])
    similar = classifier.similarity(IMAGES)
    features = l2_normalize(classifier.transform(IMAGES))
    means = [features[:4].mean(axis=0), features[4:8].mean(axis=0)]
    np.testing.assert_allclose(similar, cosine_similarity(features, means).max(axis=1), atol=1e-6)
    assert similar[:8].min() > similar[8:].max(), "the other eight are of other classes"
    between = (similar[:8].min() + similar[8:].max()) / 2
    thresholds(path, **{"1_shot": 2.0, "5_shot": float(between)})
    classifier = of(path).fit(IMAGES[:8], LABELS[:8])
    assert classifier.threshold_ == between, "that of the nearest number of shots"
    assert classifier.predict(IMAGES, unknown=True).tolist() == [*LABELS[:8], *[None] * 8]
    assert classifier.predict(IMAGES).dtype == LABELS.dtype
    # a class that is learned is unknown no longer, and a single one is enough
    assert (
        classifier.partial_fit(IMAGES[8:12], LABELS[8:12]).predict(IMAGES[8:], unknown=True)[:4].tolist() == ["elm"] * 4
    )
    alone = of(path).partial_fit(IMAGES[:4], LABELS[:4])
    assert alone.predict(IMAGES, unknown=True).tolist() == ["oak"] * 4 + [None] * 12
    easy = of(path).set_params(threshold=-1.0).fit(IMAGES[:8], LABELS[:8])
    assert None not in easy.partial_fit(IMAGES[8:12], LABELS[8:12]).predict(IMAGES, unknown=True)


def test_what_is_unknown_needs_a_threshold(logistic: FewShotClassifier, tmp_path: Path) -> None:
    path = tmp_path / "psi.safetensors"
    message = r"^unknown: expected a model with thresholds, .* got one without; rerun evaluate, keep "
    with pytest.raises(MelaError, match=message):
        logistic.fit(IMAGES, LABELS).predict(QUERIES, unknown=True)
    thresholds(path, **{"5_shot": 0.5})
    copies = of(path).set_params(support_copies=2, augmentation=SOME).fit(IMAGES, LABELS)
    with pytest.raises(MelaError, match=message):
        copies.predict(QUERIES, unknown=True)
    write_rule(path, "protonet")
    with pytest.raises(
        MelaError, match=r"^unknown: expected the logistic head, got the rule of protonet; set head to 'logi"
    ):
        of(path).fit(IMAGES, LABELS).predict(QUERIES, unknown=True)
