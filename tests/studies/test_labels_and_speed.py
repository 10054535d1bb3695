"""The bench's own arithmetic, and its three implementations against each other at a small size."""

import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mela.data.sampling import draw_with_replacement
from mela.errors import MelaError
from mela.io import schemas, store
from mela.io.feature_tables import write_features
from mela.reporting.environment import hardware
from stages.common import paths
from studies.labels import worth
from studies.labels.mixed_levels import concepts, draw_mixed_tasks, level_targets
from studies.labels.q_sweep import by_q
from studies.labels.quality import of_a_run
from studies.speed import labeler, scale
from studies.speed.measure import Timing, Usage, alternate, record
from studies.speed.pipeline import EXPERIMENTS, WITHOUT_TORCH, Round, stage_seconds, training_seconds
from tests.helpers.dvc import AFTER_LABEL
from tests.helpers.project import ROOT, STAGE_NAMES
from tests.helpers.starts import NEEDED


def test_record_gives_the_ratio_and_where_it_was_measured() -> None:
    row = record("a_vs_b", 3.0, 2.0, unit="s", n=5, tasks=7)
    assert (row["ratio"], row["tasks"], row["unit"], row["n"]) == (1.5, 7, "s", 5)
    assert row["hardware"] == hardware()
    assert {"python", "numpy", "scikit-learn", "torch"} == set(row["versions"])


def test_functions_take_turns_after_a_round_that_is_not_counted() -> None:
    calls: list[str] = []
    times = alternate(lambda: calls.append("a"), lambda: calls.append("b"), n=3)
    assert calls == ["a", "b"] * 4
    assert len(times) == 2
    assert all(0 <= taken.low <= taken.median <= taken.high < 1 for taken in times)


def test_record_tells_the_range_of_timings() -> None:
    row = record("a_vs_b", Timing.of([3.0, 1.0, 2.0]), 4.0, unit="s", n=3)
    assert (row["ours"], row["ours_range"], row["ratio"]) == (2.0, [1.0, 3.0], 0.5)
    assert "reference_range" not in row


def test_a_peak_shows_an_array() -> None:
    # 64 MB, written to so that it is really there
    assert 60e6 < Usage.of(lambda: np.ones(8_000_000)).peak < 80e6


def test_a_peak_shows_an_array_in_memory_that_was_freed_before() -> None:
    # blocks below the largest that glibc maps on their own, and one behind them that keeps their memory from the system
    blocks = [np.ones(3_000_000) for _ in range(8)]
    behind = [bytearray(100_000) for _ in range(100)]
    del blocks
    assert 60e6 < Usage.of(lambda: np.ones(8_000_000)).peak < 80e6
    assert len(behind) == 100


def test_usage_tells_memory_of_its_own_from_mapped_files(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(8_000_000))
    mapped = Usage.of(lambda: np.load(tmp_path / "a.npy", mmap_mode="r").sum())
    assert mapped.peak > 60e6
    assert mapped.own_peak < 10e6
    kept = []
    own = Usage.of(lambda: kept.append(np.ones(8_000_000)))
    assert 60e6 < own.own_peak < 80e6
    assert 0 < own.seconds < 5


def test_growth_is_told_against_the_size_before() -> None:
    usage = {"peak": 2_000_000, "own_peak": 1_000_000, "load": 0.0}
    found = {
        300: usage | {"seconds": 9.0, "cpu_seconds": 3.0},
        10: usage | {"seconds": 0.2, "cpu_seconds": 0.1},
        100: usage | {"seconds": 2.0, "cpu_seconds": 1.5},
    }
    rows = scale.rows_of("pack", found)
    assert [(row["name"], row["data"]) for row in rows] == [("scale_pack", str(n)) for n in (10, 100, 300)]
    assert [row["ratio"] for row in rows] == [1.0, 1.0, 1.5]
    assert [row["cpu_ratio"] for row in rows] == [1.0, 1.5, pytest.approx(0.667)]
    assert [(row["peak_mb"], row["own_peak_mb"]) for row in rows] == [(2.0, 1.0)] * 3


def test_each_step_of_the_scale_runs_on_what_those_before_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for name, value in {"DIMENSIONS": 12, "CLASSES": 8, "LABEL_IMAGES": 400, "J": 30}.items():
        monkeypatch.setattr(scale, name, value)
    for kind, steps, n in [("images", scale.IMAGE_STEPS, 400), ("tasks", scale.TASK_STEPS, 50)]:
        folder = tmp_path / f"{kind}-{n}"
        folder.mkdir()
        for step in steps.values():
            step(folder, n)
    assert np.load(tmp_path / "images-400" / "images.npy").shape == (400, 32, 32, 3)
    said = capsys.readouterr().out
    assert "label_merged: 8 clusters, 100.0% of tasks clustered" in said
    assert re.search(r"^label: \d+ clusters, 100.0% of tasks clustered$", said, flags=re.MULTILINE)
    assert not any((tmp_path / "elsewhere").iterdir()), "the results of a project are not its own"


def test_what_is_measured_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "ProcessPoolExecutor", None)
    (tmp_path / "read.json").write_text('{"seconds": 3.5}', encoding="utf-8")
    assert scale.once("read", tmp_path, 10) == {"seconds": 3.5}


WORTH = ("initial", "pruned", "oracle")


def test_labels_of_a_run_are_scored_against_its_own_truth(tmp_path: Path) -> None:
    run = tmp_path / "glyphs"
    for path in (paths.TRUTH, paths.TRAIN, paths.FEATURES):
        (run / path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "presets/glyphs.yaml", run / "params.yaml")
    ids, classes, noise = np.arange(80), np.arange(80) % 8, np.random.default_rng(0).normal(0, 0.01, (80, 8))
    truth = pd.DataFrame({"image_id": ids, "class": np.array([*"abcdefgh"])[classes]})
    # a run whose truth calls two classes one
    truth.loc[truth["class"] == "h", "class"] = "g"
    store.write_table(run / paths.TRUTH, truth, schemas.TRUTH, stage="images", params={})
    pools = {str(one): ids[classes == one] for one in range(8)}
    drawn = draw_with_replacement(pools, n_tasks=60, ways=3, shots=2, queries=3, seed=0, split="train")
    store.write_table(run / paths.TRAIN, drawn, schemas.MANIFEST, stage="manifest", params={})
    vectors = (np.eye(8)[classes] + noise).astype(np.float32)
    write_features(run / paths.FEATURES, [(ids, vectors)], 8, stage="extract", params={})
    found = of_a_run(data="glyphs", labeler="merged", projects=tmp_path)
    assert (found["true"], found["clusters"], found["accuracy"], found["tasks_clustered"]) == (7, 8, 100, 100)
    assert 0 < found["ari"] < 1


def test_accuracies_of_a_run_are_paired_with_those_of_true_labels(tmp_path: Path) -> None:
    run = tmp_path / "glyphs"
    accuracies = {"initial": [10.0, 30.0], "merged": [0.0, 1.0], "pruned": [50.0, 70.0], "oracle": [56.0, 72.0]}
    rows = [
        {"task_id": task, "setting": "1_shot", "accuracy": value, "split": split, "model": model}
        for model, values in accuracies.items()
        for split, task, value in [*(("test", *one) for one in enumerate(values)), ("val", 0, 99.0)]
    ]
    (run / paths.PER_TASK).parent.mkdir(parents=True)
    store.write_table(run / paths.PER_TASK, pd.DataFrame(rows), schemas.ACCURACIES, stage="evaluate", params={})
    (run / paths.LABELS).mkdir(parents=True)
    for path, known in {paths.PRUNED_LABELS: [0, 1, 2, 2, 1, 0], paths.ORACLE_LABELS: range(6)}.items():
        labels = pd.DataFrame({"image_id": range(6), "label": known})
        store.write_table(run / path, labels, schemas.LABELS, stage="label", params={})
    found = {labels: worth.of_a_run(data="glyphs", labels=labels, projects=tmp_path) for labels in WORTH}
    assert [found[labels]["1_shot"] for labels in WORTH] == [20, 60, 64]
    assert [found[labels].get("1_shot_less_oracle") for labels in WORTH] == [-44, -4, None]
    assert [found[labels].get("classes") for labels in WORTH] == [None, 3, 6]
    assert found["pruned"]["1_shot_less_oracle_ci95"] == pytest.approx(12.706 * 2, abs=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ours_and_the_loop_agree(monkeypatch: pytest.MonkeyPatch, dtype: type) -> None:
    monkeypatch.setattr(labeler, "CLUSTERS", 40)
    monkeypatch.setattr(labeler, "DIMENSIONS", 12)
    points = labeler.class_points(60, dtype)
    assignments, centroids = labeler.blocked(points, points[:40].copy())
    wanted, moved = labeler.loop(points, points[:40].copy())
    assert assignments.tolist() == wanted.tolist()
    np.testing.assert_allclose(centroids, moved, rtol=0, atol=1e-5)
    assert points.dtype == dtype


ABOVE = {"ant": "insects", "bee": "insects", "cod": "fish", "eel": "fish"}
ABOVE |= {"fox": "beasts", "gnu": "herds", "oak": "trees", "yew": "trees"}
TRUTH = pd.DataFrame({"image_id": range(400), "class": np.repeat([*ABOVE], 50)})


def test_tasks_of_mixed_levels_share_no_image_and_no_fine_class() -> None:
    members = concepts(TRUTH, ABOVE)
    assert sorted(members) == ["ant", "bee", "cod", "eel", "fish", "fox", "gnu", "insects", "oak", "trees", "yew"]
    tasks = draw_mixed_tasks(TRUTH, ABOVE, n_tasks=300, ways=3, shots=2, queries=3, seed=0)
    assert (tasks.groupby(["task_id", "local_label"]).size() == 5).all()
    assert not tasks.duplicated(["task_id", "image_id"]).any()
    known = tasks.merge(TRUTH, on="image_id")
    assert all(fine in members[concept] for fine, concept in zip(known["class"], known["concept"], strict=True))
    assert (known.groupby(["task_id", "class"])["concept"].nunique() == 1).all(), "a class under two names in a task"
    share = tasks.drop_duplicates(["task_id", "local_label"])["concept"].isin(["fish", "insects", "trees"]).mean()
    assert 0.45 < share < 0.55, "the levels should be about as frequent"
    again = draw_mixed_tasks(TRUTH, ABOVE, n_tasks=2, ways=3, shots=2, queries=3, seed=0)
    pd.testing.assert_frame_equal(again, tasks[tasks["task_id"] < 2])


def test_shares_of_true_concepts() -> None:
    tasks = pd.DataFrame({"image_id": [3, 3, 3, 3, 5], "concept": ["oak", "trees", "oak", "oak", "trees"]})
    targets = level_targets(tasks)
    assert targets.image_ids.tolist() == [3, 5]
    assert targets.batch(np.array([0, 1])).tolist() == [[0.75, 0.25], [0, 1]]


def test_rows_of_the_grid_by_q() -> None:
    names = ["merged", "merged, colliding tasks assigned", "pruned q=4.5", "pruned q=6.5", "pruned q=6.5, no guard"]
    rows = by_q(pd.DataFrame({"labeler": names, "clusters": [64, 63, 80, 90, 5]}))
    assert rows[["mode", "q", "clusters"]].to_numpy().tolist() == [
        ["pruned", 4.5, 80],
        ["pruned", 6.5, 90],
        ["pruned, no guard", 6.5, 5],
        ["merged", 4.5, 64],
        ["merged", 6.5, 64],
    ]


PRINTED = [
    (1.0, "Stage 'extract' didn't change, skipping\n"),
    (1.5, "Running stage 'label':\n"),
    (1.5, "> python -m stages.label\n"),
    (3.0, "label: 203 clusters, 100.0% of tasks clustered\n"),
    (3.5, "Updating lock file 'dvc.lock'\n"),
    (4.0, "Running stage 'pretrain@pruned':\n"),
    (9.0, "pretrain@pruned: epoch 1/3: loss 4.7387, training accuracy 7.0%, learning rate 0.05\n"),
    (11.0, "pretrain@pruned: epoch 2/3: loss 2.9037, training accuracy 35.6%, learning rate 0.05\n"),
    (14.0, "pretrain@pruned: epoch 3/3: loss 1.6934, training accuracy 58.4%, learning rate 0.005\n"),
    (15.0, "pretrain@pruned: Proposition 1: 0.2566 over each task's classes <= 0.3026 over all\n"),
    (15.5, "Updating lock file 'dvc.lock'\n"),
]


def test_times_of_stages_and_of_training_come_from_what_dvc_prints() -> None:
    assert stage_seconds(PRINTED) == {"label": 2.0, "pretrain@pruned": 11.5}
    assert training_seconds(PRINTED) == 7.5, "the first of three epochs takes as long as the mean of the others"


def test_what_is_outside_of_training_and_of_stages() -> None:
    found = Round(total=17.0, training=7.5, stages=stage_seconds(PRINTED))
    assert (found.outside, found.dvc) == (9.5, 3.5)


@pytest.mark.parametrize("epochs", [0, 1])
def test_one_epoch_does_not_tell_how_long_it_took(epochs: int) -> None:
    lines = [line for line in PRINTED if "epoch" in line[1]][:epochs]
    with pytest.raises(MelaError, match=f"expected lines of at least two epochs, found {epochs}; raise"):
        training_seconds(lines)


def test_the_stages_measured_are_those_of_the_pipeline() -> None:
    assert set(AFTER_LABEL) in EXPERIMENTS.values()
    needs_torch = {stage for stage, needed in NEEDED.items() if "torch" in needed}
    assert set(WITHOUT_TORCH) == set(STAGE_NAMES) - needs_torch
