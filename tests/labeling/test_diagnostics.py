"""What is told about labels, from estimators fitted to small tasks."""

import copy
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array

from mela.labeling import diagnostics
from mela.labeling.image_labels import ImageLabels
from mela.labeling.learn_labeler import LearnLabeler
from mela.labeling.merge_labeler import MergeLabeler
from tests.helpers import labelers

tasks = partial(labelers.tasks, n_classes=10, ways=4, n_tasks=60, m=6, distance=3.0)


@pytest.fixture(scope="module")
def merged() -> MergeLabeler:
    return MergeLabeler().fit(*tasks(0))


@pytest.fixture(scope="module")
def pruned() -> LearnLabeler:
    return LearnLabeler(n_clusters=40, q=3).fit(*tasks(0))


def test_metrics(merged: MergeLabeler, pruned: LearnLabeler) -> None:
    names = {"tasks_clustered", "tasks_of_one_class", "pair_precision", "pair_precision_error"}
    assert set(diagnostics.label_metrics(merged)) == {*names, "consistency", "expected_ari"}
    assert set(diagnostics.label_metrics(pruned)) == names
    assert diagnostics.label_metrics(merged)["consistency"] == 100 * merged.consistency_
    assert diagnostics.label_metrics(merged)["expected_ari"] == merged.expected_ari_
    X, y, groups = tasks(0, distance=1.0)
    found = MergeLabeler().fit(X, y, groups)
    dropped = {group for group, label in zip(groups, found.labels_, strict=True) if label < 0}
    assert diagnostics.label_metrics(found)["tasks_clustered"] == pytest.approx(100 * (1 - len(dropped) / 60))
    assert 0 < len(dropped) < 60


def test_passes(merged: MergeLabeler, pruned: LearnLabeler) -> None:
    table = diagnostics.passes_table(pruned)
    names = ["pass", "clusters", "threshold", "kept", "tasks_clustered", "precision", "match", "match_error"]
    assert list(table.columns) == names
    assert table["pass"].tolist() == list(range(1, len(pruned.path_) + 1))
    assert table["kept"].tolist() == [step.kept for step in pruned.path_]
    np.testing.assert_allclose(table["precision"], [100 * step.precision for step in pruned.path_])
    np.testing.assert_allclose(table["tasks_clustered"], [100 * step.tasks_clustered for step in pruned.path_])
    assert list(diagnostics.passes_table(merged).columns) == names
    assert diagnostics.passes_table(merged).empty


def test_merges(merged: MergeLabeler, pruned: LearnLabeler) -> None:
    table = diagnostics.merges_table(merged)
    assert list(table.columns) == ["phase", "clusters", "log_odds", "made"]
    assert table["clusters"].iloc[0] == 50
    assert table.loc[table["made"], "clusters"].min() == len(merged.cluster_centers_) == 10
    second = table[table["phase"] == 2]
    assert (second.loc[second["made"], "log_odds"] > 0).all()
    assert second.loc[~second["made"], "log_odds"].iloc[0] <= 0
    assert (table.loc[table["made"], "log_odds"].groupby(table["phase"]).size() > 0).all()
    assert merged.n_iter_ == 240 - 10
    assert list(diagnostics.merges_table(pruned).columns) == ["phase", "clusters", "log_odds", "made"]
    assert diagnostics.merges_table(pruned).empty


def test_clusters_of_one_task_class_have_no_certainty() -> None:
    """Three labels of two images each; the second has a single task class, and its weight is 1 all the same."""
    flat = ImageLabels(image_ids=np.arange(6), labels=np.repeat([0, 1, 2], 2), order=np.arange(3))
    weights = csr_array(np.array([[0.5, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]))
    table = diagnostics.clusters_table(flat, weights, np.array([0, 0, 1, 2, 2, 2]))
    assert table["task_classes"].tolist() == [2, 1, 3]
    np.testing.assert_array_equal(table["certainty"], [75, np.nan, 100])


def test_merged_task_classes_are_counted() -> None:
    names = ["task_classes_merged", "task_classes_not_merged", "task_classes_left_out"]
    for labels, expected in (([0, 0, 1, -1, 2, 2, 2, 4, -1, -1], [5, 2, 3]), ([-1], [0, 0, 1])):
        assert diagnostics.merged_counts(np.array(labels)) == dict(zip(names, expected, strict=True))


def test_sizes(merged: MergeLabeler) -> None:
    table = diagnostics.sizes_table(merged)
    assert table["rank"].tolist() == list(range(1, 11))
    assert table["tasks"].tolist() == sorted(merged.counts_.tolist(), reverse=True)
    assert set(table["threshold"]) == {merged.min_count}


def test_nothing_to_remark(merged: MergeLabeler, pruned: LearnLabeler) -> None:
    assert diagnostics.remark(merged) is None
    assert diagnostics.remark(pruned) is None


def test_remark_on_thin_evidence() -> None:
    found = MergeLabeler(collisions="assign").fit(*tasks(0, n_classes=20, distance=0.5))
    assert found.consistency_ is not None
    assert found.consistency_ < diagnostics.THIN
    wanted = f"thin evidence: only {100 * found.consistency_:.0f}% of the task classes would find their cluster "
    assert (diagnostics.remark(found) or "").startswith(wanted)


def test_remark_on_doubtful_labels() -> None:
    """The weights tell what consistency does not."""
    X, y, groups = tasks(0, n_classes=40, distance=0.65)
    found = MergeLabeler(collisions="assign", soft=True).fit(X, y, groups)
    assert (found.consistency_ or 0) > diagnostics.THIN
    own = found.class_weights_.toarray()[np.arange(240), found.class_labels_]
    assert diagnostics.label_metrics(found)["certainty"] == pytest.approx(100 * own.mean())
    wanted = f"thin evidence: the labels have a probability of only {100 * own.mean():.0f}% on average, so expect many"
    assert (diagnostics.remark(found) or "").startswith(wanted)


def test_remark_on_pairs_within_tasks_that_share_clusters() -> None:
    found = MergeLabeler(collisions="assign").fit(*tasks(0, n_tasks=120, distance=0.8))
    assert (found.consistency_ or 0) > diagnostics.THIN
    quality = found.pair_quality_
    wanted = f"only {100 * quality.precision:.0f}% ± {100 * quality.precision_error:.0f}% of the pairs in one cluster"
    assert wanted in (diagnostics.remark(found) or "")


def test_remark_on_labels_of_which_little_is_expected(merged: MergeLabeler) -> None:
    found = copy.copy(merged)
    assert diagnostics.remark(found) is None
    found.expected_ari_ = 0.3
    wanted = "expected to be 0.30, so expect many wrong labels; more tasks, more samples per class or"
    assert wanted in (diagnostics.remark(found) or "")
    found.expected_ari_ = None
    assert diagnostics.remark(found) is None
    assert "expected_ari" not in diagnostics.label_metrics(found)


def test_remark_on_pruning_that_ran_away() -> None:
    found = LearnLabeler(n_clusters=40, q=0.5).fit(*tasks(0, distance=1.0))
    assert found.chosen_pass_ is not None
    assert found.chosen_pass_ < len(found.path_) - 1
    taken = f"took pass {found.chosen_pass_ + 1} of {found.n_iter_},"
    assert (diagnostics.remark(found) or "").startswith(f"pruning ran away to {found.path_[-1].kept} clusters; {taken}")


def test_remark_on_pruning_that_ran_away_in_the_first_pass() -> None:
    found = LearnLabeler(n_clusters=40, q=3, min_count=1000).fit(*tasks(0))
    assert found.chosen_pass_ == 0
    assert len(found.cluster_centers_) == 40
    assert (diagnostics.remark(found) or "").startswith("pruning ran away to 0 clusters; took pass 1 of 1,")


def test_remark_on_a_search_cut_short() -> None:
    found = LearnLabeler(n_clusters=40, q=1, max_passes=1).fit(*tasks(0))
    assert found.path_[-1].kept < 40
    assert diagnostics.remark(found) == "stopped at labeler.max_passes=1 while clusters were still being removed"
