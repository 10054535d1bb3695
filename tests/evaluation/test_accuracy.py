"""The meta-test: which images count, what is averaged, and how sure the averages are."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import torch
from scipy import stats

from mela.data.augmentation import Augmentation
from mela.data.episodes import Episodes, FlatTasks
from mela.data.images import to_unit
from mela.errors import DivergedError, MelaError
from mela.evaluation import accuracy as evaluation
from mela.evaluation.heads import fit_head, l2_normalize
from mela.models.backbones import Backbone
from mela.models.features import extract_features, feature_batches
from tests.helpers.embedding import backbone as small_backbone
from tests.helpers.embedding import state_of

SOME = Augmentation(crop_padding=2, flip=True, jitter=0.4)
N_IMAGES = 60


def episodes(shapes: Sequence[tuple[Sequence[int], int]], *, first_id: int = 0) -> Episodes:
    """A task per (support images of each class, query images of every class); rows in random order."""
    rng = np.random.default_rng(0)
    rows = []
    for task, (shots, queries) in enumerate(shapes):
        labels = [label for label, k in enumerate(shots) for _ in range(k + queries)]
        roles = [role for k in shots for role in ["support"] * k + ["query"] * queries]
        images = rng.choice(N_IMAGES, len(labels), replace=False).tolist()
        drawn = [(first_id + task, *row) for row in zip(images, labels, roles, strict=True)]
        rows += [drawn[i] for i in rng.permutation(len(drawn))]
    return Episodes(pd.DataFrame(rows, columns=["task_id", "image_id", "local_label", "role"]))


def features(seed: int, count: int = N_IMAGES) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(count, 8)).astype(np.float32)


def lookup(*tables: npt.NDArray[np.float32]) -> evaluation.Lookup:
    """Of one table, or of several copies."""
    normalised = np.stack([l2_normalize(table) for table in tables], axis=1)
    return lambda ids: normalised[ids]


@pytest.mark.parametrize(
    ("shapes", "shots", "expected"),
    [
        ([([5, 5], 2)] * 2, [1, 5], {"1_shot": 1, "5_shot": 5}),
        ([([5, 5], 2)] * 2, [5, 1], {"5_shot": 5, "1_shot": 1}),
        ([([5, 5], 2), ([5, 4], 2)], [1, 5], {"1_shot": 1, "5_shot": 5, "all_shots": None}),
        ([([6, 6], 2)], [1, 5], {"1_shot": 1, "5_shot": 5, "all_shots": None}),
        ([([2, 2], 2)], [1], {"1_shot": 1, "all_shots": None}),
    ],
)
def test_settings(shapes: list[tuple[list[int], int]], shots: list[int], expected: dict[str, int | None]) -> None:
    assert evaluation.settings(FlatTasks.of(episodes(shapes)), shots) == expected


@pytest.mark.parametrize("solver", get_args(evaluation.Solver))
def test_every_task_and_setting_equals_a_plain_loop(solver: evaluation.Solver) -> None:
    tasks = episodes([([5, 5, 5], 4), ([1, 3, 6], 4), ([5, 5], 7)], first_id=10)
    table, copy, another = features(0), features(1), features(2)
    found = evaluation.evaluate_tasks(
        lookup(table), tasks, shots=[1, 5], C=2.0, max_iter=500, solver=solver, copies=lookup(copy, another)
    )

    expected = []
    for task in tasks:
        query = ~task.is_support
        own = [np.flatnonzero(task.is_support & (task.labels == label)) for label in np.unique(task.labels)]
        for name, k in [("1_shot", 1), ("5_shot", 5), ("all_shots", 10**6)]:
            if name != "all_shots" and min(map(len, own)) < k:
                continue
            rows = np.sort(np.concatenate([positions[:k] for positions in own]))
            ids, labels = task.image_ids[rows], task.labels[rows]
            for suffix, tables in [("", [table]), ("_2x", [copy, another])]:
                support = l2_normalize(np.vstack([t[ids] for t in tables]))
                head = fit_head(support, np.tile(labels, len(tables)), C=2.0, max_iter=500)
                predicted = head.predict(l2_normalize(table[task.image_ids[query]]))
                expected.append((task.task_id, name + suffix, 100 * (predicted == task.labels[query]).mean()))
    assert found.columns.tolist() == ["task_id", "setting", "accuracy"]
    names = ["1_shot", "1_shot_2x", "5_shot", "5_shot_2x", "all_shots", "all_shots_2x"]
    expected.sort(key=lambda row: names.index(row[1]))
    assert list(found.itertuples(index=False, name=None)) == expected
    assert len(found) == 3 * 3 * 2 - 2
    assert set(found.loc[found.task_id == 11, "setting"]) == {"1_shot", "1_shot_2x", "all_shots", "all_shots_2x"}


@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    tasks = episodes([([5, 5, 5], 4), ([1, 3, 6], 4), ([5, 5], 7)] * 8)
    arguments: dict[str, Any] = {"shots": [1, 5], "C": 2.0, "max_iter": 500, "copies": lookup(features(1), features(2))}
    expected = evaluation.evaluate_tasks(lookup(features(0)), tasks, **arguments)
    monkeypatch.setattr(evaluation, "BLOCK_BYTES", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    pd.testing.assert_frame_equal(evaluation.evaluate_tasks(lookup(features(0)), tasks, **arguments), expected)


def test_perfect_features_score_100_percent() -> None:
    tasks = episodes([([2, 2, 2], 3)])
    table = np.zeros((N_IMAGES, 8), dtype=np.float32)
    table[tasks[0].image_ids, tasks[0].labels] = 1
    found = evaluation.evaluate_tasks(lookup(table), tasks, shots=[1, 2], C=1.0, max_iter=100)
    assert found.to_dict("list") == {"task_id": [0, 0], "setting": ["1_shot", "2_shot"], "accuracy": [100.0, 100.0]}


@pytest.fixture
def two_threads() -> Iterator[None]:
    """As PyTorch counts them."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_threads_work_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block waits for another one: a single thread would wait in vain."""
    monkeypatch.setattr(evaluation, "BLOCK_BYTES", 1)
    (group,) = FlatTasks.of(episodes([([2, 2], 3)] * 4)).groups()
    together = threading.Barrier(2, timeout=10)

    def query(ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        if len(ids) == 1:
            together.wait()
        return lookup(features(0))(ids)

    found = evaluation.predictions(group, lookup(features(0)), query, C=1.0, max_iter=100, solver="batched")
    assert found.shape == group.query.shape


@pytest.mark.parametrize("solver", get_args(evaluation.Solver))
def test_no_convergence_names_the_key_and_the_task(solver: evaluation.Solver) -> None:
    rows = [(task, label, role) for task in range(7, 11) for label in range(3) for role in ("support", "query")]
    manifest = pd.DataFrame(rows, columns=["task_id", "local_label", "role"])
    tasks = Episodes(manifest.assign(image_id=np.arange(len(manifest))))
    table = np.zeros((len(manifest), 8), dtype=np.float32)
    learnable = np.flatnonzero(manifest["task_id"] == 9)
    table[learnable] = features(0, len(learnable))
    with pytest.raises(MelaError, match=r"^evaluate.max_iter: task 9, 1_shot: .* in 1 iterations \(C=50\); raise it$"):
        evaluation.evaluate_tasks(lookup(table), tasks, shots=[1], C=50.0, max_iter=1, solver=solver)


def backbone() -> Backbone:
    model = small_backbone("resnet12", channels=3, width=2, drop_rate=0.3, std=[0.3] * 3)
    with torch.no_grad():
        model.train()(torch.rand(64, 3, 16, 16, generator=torch.Generator().manual_seed(0)))
    return model


def pictures(count: int = N_IMAGES) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(0).integers(256, size=(count, 16, 16, 3)).astype(np.uint8)


def test_evaluating_a_model_looks_up_the_features_of_its_images() -> None:
    tasks, images, model = episodes([([3, 3, 3], 4)] * 3), pictures(), backbone()
    arguments = {"shots": [1, 3], "C": 1.0, "max_iter": 1000}
    # copies have no surroundings of other tasks' images
    around = replace(SOME, surroundings=0.5)
    found = evaluation.evaluate_model(model, images, tasks, **arguments, copies=3, augmentation=around, seed=5)

    generator = torch.Generator().manual_seed(5)
    tables = [extract_features(model, images, np.arange(N_IMAGES))]
    for _ in range(3):
        tables.append(np.full_like(tables[0], np.nan))
        support = tasks.support_ids()
        tables[-1][support] = extract_features(model, images, support, lambda batch: SOME(batch, generator))
    expected = evaluation.evaluate_tasks(lookup(tables[0]), tasks, **arguments, copies=lookup(*tables[1:]))
    pd.testing.assert_frame_equal(found, expected)
    assert set(found["setting"]) == {"1_shot", "3_shot", "1_shot_3x", "3_shot_3x"}

    plain = evaluation.evaluate_model(model, images, tasks, **arguments, copies=1, augmentation=SOME, seed=5)
    unaugmented = found[~found["setting"].str.endswith("_3x")].reset_index(drop=True)
    pd.testing.assert_frame_equal(plain, unaugmented)


def test_a_model_in_training_mode_is_evaluated_like_one_in_evaluation_mode() -> None:
    """Without dropout, and with the statistics of training, which stay as they are."""
    tasks, images = episodes([([3, 3, 3], 4)] * 3), pictures()
    arguments = {"shots": [1], "C": 1.0, "max_iter": 1000, "copies": 2, "augmentation": SOME, "seed": 5}
    model = backbone()
    expected = evaluation.evaluate_model(model.eval(), images, tasks, **arguments)
    model.train()
    before = state_of(model)
    pd.testing.assert_frame_equal(evaluation.evaluate_model(model, images, tasks, **arguments), expected)
    assert not any(module.training for module in model.modules())
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)


def test_tasks_with_training_images_are_refused() -> None:
    tasks = episodes([([2, 2], 2)] * 3)
    others = episodes([([2, 2], 2)] * 3, first_id=10)
    rows = tasks.rows()[1]
    assert set(others.image_ids().tolist()) & set(rows.tolist()), "ids are drawn from the same images"
    seen = np.intersect1d(tasks.image_ids(), others.image_ids())
    message = (
        rf"^test tasks: task \d+: expected images that no training task has, got image {seen[0]} \({len(seen)} imag"
    )
    with pytest.raises(MelaError, match=message):
        evaluation.require_unseen(tasks, others, "test tasks")
    shifted = pd.DataFrame({"task_id": [0], "image_id": [N_IMAGES + 1], "local_label": [0], "role": ["query"]})
    evaluation.require_unseen(tasks, Episodes(shifted), "test tasks")


def test_features_do_not_depend_on_the_batch() -> None:
    model, images = backbone(), pictures(520)
    model.train()
    before = state_of(model)
    together = extract_features(model, images, np.arange(520))
    assert together.shape == (520, 20)
    assert together.dtype == np.float32
    assert not model.training
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    ids = np.array([519, 3, 515])
    for some in (ids, ids[:1]):
        np.testing.assert_allclose(extract_features(model, images, some), together[some], rtol=1e-4, atol=1e-5)
    assert together.std(axis=0).max() > 0.01


def test_changed_features() -> None:
    model, images = backbone(), pictures(4)
    mirrored = extract_features(model, images, np.arange(4), lambda batch: to_unit(batch).flip(3))
    expected = extract_features(model, images[:, :, ::-1], np.arange(4))
    np.testing.assert_allclose(mirrored, expected, rtol=1e-4, atol=1e-5)


def test_features_come_in_batches_that_leave_the_mode_of_the_caller_alone() -> None:
    model, images = backbone(), pictures(150)
    ids = np.arange(150)[::-1].copy()
    found = []
    for own, features in feature_batches(model, images, ids):
        assert not torch.is_inference_mode_enabled()
        found.append((own, features))
    assert len(found) > 1
    seen, features = map(np.concatenate, zip(*found, strict=True))
    np.testing.assert_array_equal(seen, ids)
    np.testing.assert_array_equal(features, extract_features(model, images, ids))


def test_features_that_are_not_finite_are_an_error() -> None:
    model, images = backbone(), pictures(8)
    with torch.no_grad():
        model.body[0].body[0].weight[0, 0, 0, 0] = torch.nan
    with pytest.raises(DivergedError, match=r"^features: image 6: expected finite values"):
        extract_features(model, images, np.array([6, 2]))


def test_only_the_image_that_is_not_finite_is_named() -> None:
    def spoil(batch: torch.Tensor) -> torch.Tensor:
        changed = to_unit(batch)
        changed[1] = torch.inf
        return changed

    with pytest.raises(DivergedError, match=r"^features: image 2: expected finite values"):
        extract_features(backbone(), pictures(8), np.array([6, 2, 3]), spoil)


def measured(models: Mapping[str, Sequence[float]], setting: str) -> pd.DataFrame:
    """Return accuracies of models on the same tasks, whose rows come in another order for every model."""
    rng = np.random.default_rng(len(setting))
    rows = [
        (int(task), name, setting, values[task])
        for name, values in models.items()
        for task in rng.permutation(len(values))
    ]
    return pd.DataFrame(rows, columns=["task_id", "model", "setting", "accuracy"])


def plain(values: npt.NDArray[np.float64]) -> dict[str, float]:
    """Recompute a mean and its 95% interval by the formula of Student."""
    n = len(values)
    return {"mean": values.sum() / n, "ci95": stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / n**0.5}


MODELS = ("initial", "merged", "merged_soft", "pruned", "kmeans", "oracle")


@pytest.mark.parametrize("names", [MODELS, ("initial", "merged", "oracle"), ("initial", "pruned"), ("initial",)])
def test_differences_are_paired_by_task(names: tuple[str, ...]) -> None:
    """Tasks differ more than models do, so that intervals of differences are narrow."""
    rng = np.random.default_rng(0)
    tasks = rng.normal(60, 10, 30)
    of = {name: tasks + rng.normal(number, 1, 30) for number, name in enumerate(names)}
    other = {name: values[:20] / 2 for name, values in of.items()}
    summary = evaluation.summarize(pd.concat([measured(of, "5_shot"), measured(other, "all_shots")]))
    references = {"accuracy": None, "gain": "initial", "to_oracle": "oracle"}
    expected = {
        "accuracy": names,
        "gain": names[1:],
        "to_oracle": [name for name in names[1:] if name != "oracle"] if "oracle" in names else [],
    }
    assert summary.keys() == {"tasks", *expected}
    assert summary["tasks"] == {"5_shot": 30, "all_shots": 20}
    for key, models in expected.items():
        assert list(summary[key]) == list(models)
        for name in models:
            for setting, table in {"5_shot": of, "all_shots": other}.items():
                reference = references[key]
                values = table[name] if reference is None else table[name] - table[reference]
                assert summary[key][name][setting] == pytest.approx(plain(values))
    for key in ("gain", "to_oracle"):
        for name, found in summary[key].items():
            assert found["5_shot"]["ci95"] < 0.3 * summary["accuracy"][name]["5_shot"]["ci95"]


def test_settings_with_fewer_than_two_tasks_are_left_out() -> None:
    one = measured({"initial": [1.0], "merged": [3.0], "oracle": [4.0]}, "5_shot")
    two = measured({"initial": [1.0, 2.0], "merged": [3.0, 5.0], "oracle": [4.0, 5.0]}, "1_shot")
    summary = evaluation.summarize(pd.concat([two, one]))
    assert summary["tasks"] == {"1_shot": 2}
    models = {"accuracy": ["initial", "merged", "oracle"], "gain": ["merged", "oracle"], "to_oracle": ["merged"]}
    for key, names in models.items():
        assert list(summary[key]) == names
        assert all(list(settings) == ["1_shot"] for settings in summary[key].values())


def test_without_tasks_there_is_nothing() -> None:
    summary = evaluation.summarize(measured({"initial": [], "merged": []}, "5_shot"))
    assert summary == {"tasks": {}, "accuracy": {}, "gain": {}, "to_oracle": {}}
