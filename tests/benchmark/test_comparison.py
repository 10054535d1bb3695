"""Systems side by side: means, intervals and differences, of tasks and of seeds."""

from pathlib import Path

import numpy as np
import pytest

from benchmark.comparison import Measured, by_setting, measured, seeds_of, summarize_systems
from mela.errors import MelaError
from mela.evaluation.intervals import Interval
from tests.helpers.cells import results


def test_seeds_come_by_their_numbers_and_other_folders_do_not_count(tmp_path: Path) -> None:
    for name in ("seed10", "seed9", "seed-old", "seeds", "seed9 copy"):
        (tmp_path / name).mkdir()
    (tmp_path / "seed3").touch()
    assert seeds_of(tmp_path) == {9: tmp_path / "seed9", 10: tmp_path / "seed10"}
    assert seeds_of(tmp_path / "nothing") == {}


def test_differences_are_paired_by_task() -> None:
    rng = np.random.default_rng(0)
    hard = rng.normal(60, 15, size=400)
    noise = rng.normal(0, 1, size=(2, 3, 400))
    table = summarize_systems(
        by_setting(results({"one": (hard + noise[0]).tolist(), "other": (hard + 2 + noise[1]).tolist()})),
        ["one", "other"],
        ["1_shot", "5_shot"],
        "one",
    ).set_index("system")
    assert list(table["setting"]) == ["1_shot"] * 2
    assert table.loc["other", "difference"] == pytest.approx(2, abs=0.2)
    assert table.loc["other", "difference_ci95"] < 0.1 < 1 < table.loc["other", "ci95"]
    assert table.loc["one", "difference"] == table.loc["one", "difference_ci95"] == 0
    assert table.loc["one", "worst_seed"] < table.loc["one", "mean"] < table.loc["one", "best_seed"]
    assert tuple(table.loc["one", ["seeds", "tasks"]]) == (3, 400)


def test_differences_of_seeds_are_from_the_same_seed() -> None:
    """The other system has a seed less; the seeds that both have differ by 3 and by 5."""
    table = summarize_systems(
        by_setting(
            results({"one": [[50, 60], [70, 80], [90, 100]], "other": [[53, 63], [75, 85]], "third": [[49, 59]]})
        ),
        ["one", "other", "third"],
        ["1_shot"],
        "one",
    ).set_index("system")
    columns = ["difference_lowest_seed", "difference", "difference_highest_seed"]
    assert tuple(table.loc["other", columns]) == (3, 4, 5)
    assert tuple(table.loc["one", columns]) == (0, 0, 0)
    assert tuple(table.loc["third", columns]) == (-1, -1, -1)


def test_systems_that_share_no_seed_have_no_difference() -> None:
    found = results({"one": [[50, 60], [70, 80]], "other": [[53, 63]]})
    found.loc[found["system"] == "other", "seed"] = 7
    table = summarize_systems(by_setting(found), ["other"], ["1_shot"], "one")
    assert table.filter(like="difference").isna().all(axis=None)


def test_results_of_different_tasks_are_not_compared() -> None:
    with pytest.raises(MelaError, match=r"^results of one: expected all seeds on the same tasks, got others for 1"):
        measured(by_setting(results({"one": [[50, 60, 70], [50, 60]]})), "one", "1_shot")
    found = by_setting(results({"one": [[50, 60, 70]], "other": [[50, 60]]}))
    with pytest.raises(MelaError, match=r"^results: expected two systems on the same tasks, got 2 and 3 tasks"):
        summarize_systems(found, ["other"], ["1_shot"], "one")
    assert measured(found, "neither", "1_shot") is None


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [2, 3])
@pytest.mark.parametrize(
    ("of_seeds", "of_tasks", "left"),
    [(0.0, 0.0, 5.0), (0.3, 1.0, 5.0), (3.0, 1.0, 5.0), (3.0, 5.0, 5.0), (0.1, 5.0, 1.0)],
)
def test_intervals_over_tasks_and_seeds_hold_the_truth_95_times_of_100_or_more(
    seeds: int, of_seeds: float, of_tasks: float, left: float
) -> None:
    """Of training and testing anew: seeds and tasks have effects of their own, and each task chance in each seed."""
    rng = np.random.default_rng(0)
    held = np.zeros((1000, 3))
    for one in held:
        chance = rng.normal(0, left, (seeds, 200))
        differences = 3 + of_seeds * rng.normal(size=(seeds, 1)) + of_tasks * rng.normal(size=(1, 200)) + chance
        found = Measured(accuracies=differences, seeds=np.arange(seeds))
        assert found.anew is not None
        intervals = (found.interval, Interval.of(differences.mean(axis=1)), found.anew)
        one[:] = [abs(interval.mean - 3) <= interval.ci95 for interval in intervals]
    over_tasks, over_seeds, anew = held.mean(axis=0)
    assert anew > 0.94
    if of_seeds == 0:
        assert over_tasks == pytest.approx(0.95, abs=0.025)
    if of_seeds == 3:
        assert over_tasks < 0.5, "why it takes more than tasks"
        assert anew < 0.975, "and no wider than it takes"
    if left == 1:
        assert over_seeds < 0.85, "why it takes more than seeds"


def test_the_interval_over_tasks_and_seeds_of_a_small_table() -> None:
    """Means of tasks 2 and 4, of seeds 2.5 and 3.5: both intervals are those of two values, 12.706 standard errors."""
    found = Measured(accuracies=np.array([[1.0, 4.0], [3.0, 4.0]]), seeds=np.array([0, 1])).anew
    assert found is not None
    assert found.mean == 3
    assert found.ci95 == pytest.approx(12.7062 * np.hypot(1, 0.5), rel=1e-5)


def test_one_seed_says_nothing_of_others() -> None:
    assert Measured(accuracies=np.array([[50.0, 60.0]]), seeds=np.array([0])).anew is None
