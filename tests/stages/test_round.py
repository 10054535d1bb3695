"""Rounds of training before merging: what each learns from, and what becomes of one that is off."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mela.errors import MelaError
from mela.inference.classifier import FewShotClassifier
from mela.io import feature_tables, store
from mela.io.checked_tables import read_manifest
from mela.io.look_files import read_looks
from mela.io.name_tables import KEYS, LISTING, TASK_NAMES, TASK_SOURCES
from mela.io.text_tables import read_text_csv
from mela.labeling.labeler_files import load_labeler
from mela.labeling.merge_labeler import MergeLabeler
from mela.labeling.round_labels import labels_so_far
from mela.labeling.task_classes import TaskSamples, group_samples
from mela.labeling.unseen_tasks import NONE, place_labels
from mela.models.features import extract_features
from mela.models.files import load_model
from mela.params import PARAMS, ROUNDS
from mela.runtime.usage import kept
from mela.training.checkpoint import Checkpoint
from stages.common import paths
from stages.common.checkpoints import checkpoint
from stages.common.round_files import BEFORE_ROUNDS, pass_on, round_files
from tests.helpers.processes import python
from tests.helpers.project import change, run_stages


def told(number: str) -> dict[str, float]:
    found: dict[str, float] = json.loads((paths.ROUNDS / f"{number}.json").read_text(encoding="utf-8"))
    return found


def test_a_round_that_is_off_passes_on_what_it_gets(copied: Path) -> None:
    for number in ROUNDS:
        features, model, looks = round_files(number)
        assert looks is not None
        assert read_looks(looks, 7) is None
        assert features.read_bytes() == paths.FEATURES.read_bytes()
        assert model.read_bytes() == paths.INITIAL.read_bytes()
        assert told(number) == {}


@pytest.mark.slow
def test_rounds_train_one_after_the_other(copied: Path) -> None:
    change(PARAMS, {"rounds.first": True, "rounds.second": True})
    run_stages("round", "label_merged")
    assert told("first")["clusters"] == 400, "80 tasks of five classes"
    assert told("second")["clusters"] < 400
    assert {"match", "pair_precision", "loss"} <= told("second").keys()
    run_stages("report")
    table = re.findall(r'<table id="rounds">.*?</table>', Path("results/report.html").read_text(encoding="utf-8"), re.S)
    assert [re.findall(r"<td[^>]*>([^<]*)</td>", row)[:2] for row in table[0].split("</tr>")[1:-1]] == [
        ["first", "400"],
        ["second", f"{told('second')['clusters']}"],
    ]
    assert all(told(number) == {} for number in ROUNDS[2:])
    first, second, *_, last = (round_files(number) for number in ROUNDS)
    assert first.features.read_bytes() != second.features.read_bytes() == last.features.read_bytes()
    known, vectors = feature_tables.read_features(second.features)
    images = store.open_images(paths.IMAGES)
    np.testing.assert_allclose(
        vectors, extract_features(load_model(second.model, "cpu", images), images, known), atol=1e-5
    )
    # merging sees the last of them
    before = paths.MERGED_TASKS.read_bytes()
    change(PARAMS, {"rounds.second": False})
    run_stages(*(f"round@{number}" for number in ROUNDS[1:]), "label_merged")
    assert paths.MERGED_TASKS.read_bytes() != before


@pytest.mark.slow
def test_each_round_tells_what_it_took(copied: Path) -> None:
    ended = python("-m", "stages.round", "first")
    assert re.search(r"^round@first: [\d.]+ s, \d+ MiB of memory at most$", ended.stdout, flags=re.MULTILINE)
    assert kept(["round", "round@first"]).keys() == {"round@first"}


@pytest.mark.slow
def test_looks_that_training_varies_reach_the_next_labels(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(PARAMS, {"rounds.first": True, "rounds.second": True, "augment.jitter": 0.5})
    run_stages("round@first")
    looks = round_files("first").looks
    assert looks is not None
    measured = read_looks(
        looks, load_model(round_files("first").model, "cpu", store.open_images(paths.IMAGES)).dimensions
    )
    assert measured is not None
    assert np.trace(measured) > 0
    seen: list[object] = []

    def found(samples: TaskSamples, *rest: object) -> object:
        seen.append(samples.looks)
        return labels_so_far(samples, *rest)

    monkeypatch.setattr("stages.common.round_training.labels_so_far", found)
    run_stages("round@second")
    np.testing.assert_array_equal(seen, [measured])


@pytest.mark.slow
def test_a_checkpoint_is_of_the_labels_that_a_round_learns(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training that was cut off does not go on with labels that other parameters or sources give."""
    change(PARAMS, {"rounds.first": True, "rounds.second": True})
    run_stages("round@first")
    seen: list[str] = []

    def kept(*given: Any) -> Checkpoint:
        found = checkpoint(*given)
        seen.append(found.fingerprint)
        return found

    monkeypatch.setattr("stages.common.pretraining.checkpoint", kept)
    run_stages("round@second")
    run_stages("round@second")
    change(PARAMS, {"merging.min_count": 3})
    run_stages("round@second")
    known = pd.DataFrame({"task_id": np.arange(80), "source": np.arange(80) // 8}).astype({"source": str})
    store.write_table(paths.TASK_SOURCES, known, TASK_SOURCES, stage="names", params={})
    run_stages("round@second")
    assert seen[0] == seen[1]
    assert len({*seen}) == 3


@pytest.mark.parametrize("number", ROUNDS)
def test_the_report_reads_every_round(copied: Path, number: str) -> None:
    (paths.ROUNDS / f"{number}.json").unlink()
    with pytest.raises(MelaError, match=rf"rounds/{number}\.json"):
        run_stages("report")


def test_looks_go_through_a_round_that_is_off_and_damaged_ones_are_refused(copied: Path) -> None:
    change(PARAMS, {"rounds.first": True, "augment.jitter": 0.5})
    run_stages("round")
    first, last = (round_files(number).looks for number in (ROUNDS[0], ROUNDS[-1]))
    assert first is not None
    assert last is not None
    assert first.read_bytes() == last.read_bytes()
    np.save(last, np.eye(3))
    with pytest.raises(MelaError, match=r"sixth/looks\.npy: .*\(3, 3\).*rerun the stage round"):
        run_stages("label_merged")


def test_of_several_processes_the_first_passes_on(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = round_files("first")
    assert files.looks is not None
    for file in files:
        file.unlink()
    monkeypatch.setenv("RANK", "1")
    pass_on("first", BEFORE_ROUNDS)
    assert not any(file.exists() for file in files)
    monkeypatch.setenv("RANK", "0")
    pass_on("first", BEFORE_ROUNDS)
    assert all(file.exists() for file in files)


def test_the_last_round_is_the_embedding_of_held_out_tasks(people_copied: Path) -> None:
    """In the stage, and in the recipe of docs/guides/faq.md for new tasks."""
    before = paths.LISTING.read_text(encoding="utf-8")
    change(PARAMS, {"rounds.first": True})
    run_stages("round", "label_merged", "assign")
    assert paths.LISTING.read_text(encoding="utf-8") != before
    table = read_text_csv(paths.LISTING, LISTING)
    manifest = read_manifest(paths.TEST)
    of_image = store.read_table(paths.TASK_NAMES, TASK_NAMES).merge(manifest, on=KEYS, validate="one_to_many")
    images = store.open_images(paths.IMAGES)[of_image["image_id"].to_numpy()]
    labeler = load_labeler(paths.MERGED_LABELER)
    listed = table[table["split"] == "test"].set_index(["task", "label"])["cluster"].fillna(NONE).astype(int)

    def placed(model: Path) -> pd.Series:
        features = FewShotClassifier.load(model).transform(images)
        found = place_labels(labeler, features, of_image["label"], of_image["task"])
        return found.set_index(["task", "label"])["cluster"][listed.index]

    pd.testing.assert_series_equal(placed(paths.MERGED_EMBEDDING), listed, check_dtype=False)
    assert (placed(paths.INITIAL) != listed).any()
    paths.MERGED_EMBEDDING.unlink()
    with pytest.raises(MelaError, match=r"sixth\.safetensors"):
        run_stages("assign")


def test_features_of_your_own_leave_no_round(copied: Path) -> None:
    change(PARAMS, {"rounds.first": True, "extract.features": "mine.npy"})
    with pytest.raises(MelaError, match=r"rounds\.first.*mine\.npy"):
        run_stages("round@first")


def test_a_round_needs_the_one_before_it(copied: Path) -> None:
    change(PARAMS, {"rounds.second": True})
    with pytest.raises(MelaError, match=r"rounds.*second.*first"):
        run_stages("round@first")


def test_there_is_no_seventh_round(copied: Path) -> None:
    ended = python("-m", "stages.round", "seventh", folder=copied)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert all(number in ended.stderr for number in ("seventh", *ROUNDS))


def samples() -> TaskSamples:
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(6, 4)) * 4
    truth = np.concatenate([rng.permutation(6)[:3] for _ in range(40)])
    features = centers[truth].repeat(5, axis=0) + rng.normal(size=(600, 4))
    return group_samples(features, np.arange(600), np.arange(40).repeat(15), np.tile([0, 1, 2], 40).repeat(5))


def test_labels_of_the_first_round_are_the_task_classes() -> None:
    flat, found = labels_so_far(samples(), np.arange(1000, 1600), None)
    assert found == {"clusters": 120}
    np.testing.assert_array_equal(flat.image_ids, np.arange(1000, 1600))
    np.testing.assert_array_equal(flat.labels, np.arange(120).repeat(5))


def test_labels_of_the_others_are_merged() -> None:
    flat, found = labels_so_far(samples(), np.arange(600), MergeLabeler())
    assert found["clusters"] == 6
    assert found["match"] > 0
    assert len(np.unique(flat.labels)) == 6
