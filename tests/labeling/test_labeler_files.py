"""A fitted labeler on disk: it predicts as the one that was saved, and whatever is wrong with it is one line."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from sklearn.base import clone

from mela.errors import MelaError
from mela.io import feature_tables, schemas, store
from mela.labeling.labeler_files import ARRAYS, DESCRIPTION, load_labeler, save_labeler
from mela.labeling.learn_labeler import LearnLabeler
from mela.labeling.merge_labeler import MergeLabeler
from stages.common import paths
from tests.helpers.labelers import tasks
from tests.helpers.starts import modules_after

LABELERS = {
    "merged": MergeLabeler(soft=True),
    "pruned": LearnLabeler(n_clusters=30, soft=True),
    "merged, not soft": MergeLabeler(collisions="assign"),
    "pruned, not soft": LearnLabeler(n_clusters=30),
}


@pytest.mark.parametrize("kind", LABELERS)
def test_it_predicts_as_the_one_that_was_saved(kind: str, tmp_path: Path) -> None:
    labeler = clone(LABELERS[kind]).fit(*tasks(0))
    save_labeler(tmp_path, labeler)
    found = load_labeler(tmp_path)
    assert found.get_params() == labeler.get_params()
    new = tasks(1, n_tasks=30, shots=3)
    np.testing.assert_array_equal(found.predict(*new), labeler.predict(*new))
    np.testing.assert_array_equal(found.predict(new[0]), labeler.predict(new[0]))
    assert (labeler.predict(*new) >= 0).any()
    assert hasattr(found, "predict_proba") == labeler.soft
    if labeler.soft:
        np.testing.assert_array_equal(found.predict_proba(*new), labeler.predict_proba(*new))
        np.testing.assert_array_equal(found.predict_proba(new[0]), labeler.predict_proba(new[0]))


def test_names_that_count_are_kept_and_others_are_not(tmp_path: Path) -> None:
    X, y, groups = tasks(0)
    labeler = clone(LABELERS["merged"]).fit(X, y, groups)
    words = np.array(["ash", "birch", "elm", "fir", "oak", "yew"])[labeler.labels_]
    for place, names in enumerate([words, y.astype(str)]):
        labeler.fit(X, y, groups, names=names)
        save_labeler(tmp_path / str(place), labeler, order := np.array([3, 1, 5, 0, 2, 4]))
        found, clusters = load_labeler(tmp_path / str(place)), labeler.class_labels_
        own, again = labeler._told_by_names(clusters), found._told_by_names(np.argsort(order)[clusters])
        assert (own is None) == (again is None) == (place == 1)
        if own is not None and again is not None:
            rows = np.arange(len(clusters))
            np.testing.assert_array_equal(own(rows)[:, order], again(rows))
            said = ["Elm!", "ash", "maple"]
            by_words = found._told_by_words(said, 7), labeler._told_by_words(said, 6)
            assert by_words[0] is not None
            assert by_words[1] is not None
            told, before = (each(np.arange(3)) for each in by_words)
            np.testing.assert_array_equal(told[:, :6], before[:, order])
            of_words = labeler.labels_[[np.flatnonzero(words == word)[0] for word in ("elm", "ash")]]
            np.testing.assert_array_equal(order[told[:2].argmax(axis=1)], of_words)
            assert (told[2] == 0).all(), "nobody has written this"
            assert (told[:, 6] == 0).all(), "nobody has written anything there"
            with pytest.raises(
                MelaError, match=f"fitted to {len(clusters)} task classes with names, while these are 3"
            ):
                found._told_by_names(clusters[:3])
    # a fit that fails leaves no half of an earlier one
    labeler.fit(X, y, groups, names=words)
    with pytest.raises(MelaError, match="min_count"):
        labeler.set_params(min_count=10**6).fit(X, y, groups)
    save_labeler(tmp_path / "2", labeler)
    assert load_labeler(tmp_path / "2")._told_by_words(["ash"], 6) is None
    save_file(load_file(tmp_path / "0" / ARRAYS) | {"names.owners": np.zeros(3)}, tmp_path / "0" / ARRAYS)
    edited(sha256=hashlib.sha256((tmp_path / "0" / ARRAYS).read_bytes()).hexdigest())(tmp_path / "0")
    with pytest.raises(MelaError, match=r"names\.owners of the shape \(3,\) in place of"):
        load_labeler(tmp_path / "0")


def test_a_file_that_has_the_parameters_of_both_labelers_is_read(tmp_path: Path) -> None:
    labeler = clone(LABELERS["merged"]).fit(*tasks(0))
    save_labeler(tmp_path, labeler)
    about = store.read_json(tmp_path / DESCRIPTION)
    about["parameters"] |= {"merge": True, "n_clusters": 300, "q": 6.5, "guard": True}
    store.write_json(tmp_path / DESCRIPTION, about)
    found = load_labeler(tmp_path)
    assert found.get_params() == labeler.get_params()
    np.testing.assert_array_equal(found.predict(*tasks(1)), labeler.predict(*tasks(1)))


def test_samples_of_one_have_no_probabilities_before_and_after(tmp_path: Path) -> None:
    labeler = LearnLabeler(n_clusters=20, soft=True).fit(*tasks(0, shots=1))
    save_labeler(tmp_path, labeler)
    for each in (labeler, load_labeler(tmp_path)):
        with pytest.raises(MelaError, match=r"^predict_proba: .* each of its task classes has a single sample"):
            each.predict_proba(tasks(1)[0])


def test_clusters_get_new_numbers(tmp_path: Path) -> None:
    labeler = clone(LABELERS["merged"]).fit(*tasks(0))
    order = np.array([3, 1, 5, 0, 2, 4])
    save_labeler(tmp_path, labeler, order)
    new, found = tasks(1), load_labeler(tmp_path)
    np.testing.assert_array_equal(order[found.predict(*new)], labeler.predict(*new))
    np.testing.assert_allclose(found.predict_proba(*new), labeler.predict_proba(*new)[:, order], rtol=1e-12)
    np.testing.assert_array_equal(found.counts_, labeler.counts_[order])


def test_other_features_than_those_of_the_fit_are_refused(tmp_path: Path) -> None:
    save_labeler(tmp_path, clone(LABELERS["merged"]).fit(*tasks(0)))
    with pytest.raises(ValueError, match="3 features, but MergeLabeler is expecting 4"):
        load_labeler(tmp_path).predict(np.ones((2, 3)))


def test_a_generator_is_not_kept(tmp_path: Path) -> None:
    save_labeler(tmp_path, MergeLabeler(random_state=np.random.RandomState(0)).fit(*tasks(0)))
    assert load_labeler(tmp_path).random_state is None


@pytest.mark.slow
def test_the_same_again_is_the_same_bytes_and_no_pickle(tmp_path: Path) -> None:
    for name in ("one", "two"):
        save_labeler(tmp_path / name, clone(LABELERS["merged"]).fit(*tasks(0)))
    for file in (ARRAYS, DESCRIPTION):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    assert {path.name for path in (tmp_path / "one").iterdir()} == {ARRAYS, DESCRIPTION}
    loading = f"from mela.labeling.labeler_files import load_labeler\nload_labeler({str(tmp_path / 'one')!r})"
    assert "torch" not in modules_after(loading)


def edited(**changes: Any) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = folder / DESCRIPTION
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return edit


def changed_arrays(folder: Path) -> None:
    save_file(load_file(folder / ARRAYS) | {"centers": np.zeros((6, 4))}, folder / ARRAYS)


def signed(change: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]) -> Callable[[Path], None]:
    """Other arrays, and a description that names them."""

    def sign(folder: Path) -> None:
        save_file(change(load_file(folder / ARRAYS)), folder / ARRAYS)
        edited(sha256=hashlib.sha256((folder / ARRAYS).read_bytes()).hexdigest())(folder)

    return sign


PARTS = "expected the parts of a fitted labeler, got"
CASES: dict[str, tuple[Callable[[Path], None], str]] = {
    "no description": (lambda folder: (folder / DESCRIPTION).unlink(), r"labeler\.json: no such file; run `dvc repro`"),
    "no arrays": (lambda folder: (folder / ARRAYS).unlink(), r"arrays\.safetensors: no such file; run `dvc repro`"),
    "not JSON": (lambda folder: (folder / DESCRIPTION).write_text("{"), r"labeler\.json: expected JSON, got"),
    "another format": (
        edited(format="mela.labeler/9"),
        r"labeler\.json: expected a labeler of the format mela\.labeler/1, got 'mela\.labeler/9'; rerun",
    ),
    "a list as format": (edited(format=[1]), r"expected a labeler of the format mela\.labeler/1, got \[1\]"),
    "arrays of another run": (changed_arrays, r"arrays\.safetensors: expected the arrays that labeler\.json .* names"),
    "cut arrays": (
        lambda folder: (folder / ARRAYS).write_bytes((folder / ARRAYS).read_bytes()[:50]),
        r"arrays\.safetensors: expected the arrays that labeler\.json .* names, got others",
    ),
    "an array is missing": (
        signed(lambda arrays: {name: array for name, array in arrays.items() if name != "space.center"}),
        rf"{PARTS} none called 'space\.center'; rerun the stage that makes it",
    ),
    "an array of another shape": (
        signed(lambda arrays: arrays | {"memberships.sums": np.zeros((5, 2))}),
        rf"{PARTS} memberships\.sums of the shape \(5, 2\) in place of \(6, ",
    ),
    "a parameter of another kind": (edited(parameters=[]), f"{PARTS} .*; rerun the stage that makes it"),
    "no number": (edited(class_size="many"), f"{PARTS} could not convert string .*; rerun"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_refused(case: str, tmp_path: Path) -> None:
    spoil, message = CASES[case]
    save_labeler(tmp_path, clone(LABELERS["merged"]).fit(*tasks(0)))
    spoil(tmp_path)
    with pytest.raises(MelaError, match=rf"\A(?=.*{tmp_path})[^\n]*{message}[^\n]*\Z"):
        load_labeler(tmp_path)


@pytest.mark.parametrize(
    ("folder", "assignments", "fewest"),
    [(paths.MERGED_LABELER, paths.MERGED_TASKS, 51), (paths.PRUNED_LABELER, paths.PRUNED_TASKS, 11)],
)
def test_the_stage_saves_one_that_numbers_classes_as_its_labels_do(
    finished: Path, folder: Path, assignments: Path, fewest: int
) -> None:
    manifest = store.read_table(finished / paths.TRAIN, schemas.MANIFEST)
    image_ids, features = feature_tables.read_features(finished / paths.FEATURES)
    X = features[np.searchsorted(image_ids, manifest["image_id"])]
    found = load_labeler(finished / folder).predict(X, manifest["local_label"], manifest["task_id"])
    stage = store.read_table(finished / assignments, schemas.ASSIGNMENTS)
    expected = manifest.merge(stage, on=["task_id", "local_label"])
    assert expected["cluster"].nunique() >= fewest
    assert found.tolist() == expected["cluster"].where(expected["clustered"], -1).tolist()
