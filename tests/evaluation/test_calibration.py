"""Temperatures and the expected calibration error, against what is known of drawn labels and cases by hand."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

from mela.data.episodes import TaskGroup
from mela.errors import MelaError
from mela.evaluation.calibration import (
    Part,
    QueryOutputs,
    calibration_error,
    calibrations,
    fit_temperature,
    negative_log_likelihood,
)
from mela.evaluation.temperature_files import NAME, Temperatures, read_temperatures, write_temperatures


def drawn(seed: int, temperature: float, *, tasks: int = 40, ways: int = 5, queries: int = 75) -> Part:
    """Logits, and labels that are drawn with the probabilities that these have at a temperature."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(tasks, ways, queries)) * 0.3
    labels = (rng.random((tasks, 1, queries)) > softmax(logits / temperature, axis=1).cumsum(axis=1)).sum(axis=1)
    return logits, labels


@pytest.mark.parametrize("temperature", [0.1, 0.3, 1.0])
def test_the_temperature_of_drawn_labels_is_found(temperature: float) -> None:
    parts = [drawn(0, temperature), drawn(1, temperature, ways=3)]
    found = fit_temperature(parts)
    assert found == pytest.approx(temperature, rel=0.1)
    assert found is not None
    best = negative_log_likelihood(parts, found)
    assert all(best < negative_log_likelihood(parts, found * factor) for factor in (0.95, 1.05))


def test_new_tasks_are_calibrated_by_it() -> None:
    temperature = fit_temperature([drawn(0, 0.1)])
    assert temperature is not None
    new = [drawn(7, 0.1, tasks=200)]
    assert calibration_error(new) > 30
    assert calibration_error(new, temperature) < 2


def test_queries_without_a_mistake_make_nothing_certain() -> None:
    logits = np.full((4, 5, 10), -0.1)
    logits[:, 2] = 0.1
    found = fit_temperature([(logits, np.full((4, 10), 2))])
    assert found is not None
    certainty = float(softmax(logits / found, axis=1).max())
    # one query more, of which each class is the true one for a fifth: (40 + 1/5) / (40 + 1)
    assert certainty == pytest.approx((40 + 1 / 5) / 41, abs=1e-4)


def test_the_calibration_error_of_a_case_by_hand() -> None:
    """Two queries at 80%, one of them right, and two at 60%, both right."""
    shares = np.array([[0.8, 0.8, 0.6, 0.6], [0.2, 0.2, 0.4, 0.4]])
    labels = np.array([[0, 1, 0, 0]])
    expected = 100 * (abs(1 - 1.6) + abs(2 - 1.2)) / 4
    assert calibration_error([(np.log(shares)[None], labels)]) == pytest.approx(expected)
    # in a single bin they make good for each other
    assert calibration_error([(np.log(shares)[None], labels)], bins=1) == pytest.approx(100 * (3 - 2.8) / 4)


def test_certain_queries_are_in_the_last_bin() -> None:
    logits = np.array([[[1000.0], [0.0]]])
    assert calibration_error([(logits, np.array([[0]]))]) == 0
    assert calibration_error([(logits, np.array([[1]]))]) == 100


def group(positions: list[int], labels: list[list[int]]) -> TaskGroup:
    empty = np.zeros((len(positions), 0), dtype=np.int64)
    own = np.array(labels)
    return TaskGroup(
        positions=np.array(positions), ways=2, support=empty, support_labels=empty, query=own, query_labels=own
    )


def test_the_order_in_which_threads_come_changes_nothing() -> None:
    one, other = QueryOutputs(), QueryOutputs()
    kept = [(group([number], [[number % 2, 0]]), np.full((1, 2, 2), float(number))) for number in range(4)]
    for own, logits in kept:
        one.keep("1_shot", own, logits, -logits)
    for own, logits in reversed(kept):
        other.keep("1_shot", own, logits, -logits)
    for (a, b), (c, d) in zip(one.logits("1_shot"), other.logits("1_shot"), strict=True):
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, d)
    np.testing.assert_array_equal(
        [part[0] for part in one.cosines("1_shot")], [-part[0] for part in one.logits("1_shot")]
    )
    assert one.logits("5_shot") == one.cosines("5_shot") == []


def test_without_validation_tasks_nothing_is_calibrated() -> None:
    test = QueryOutputs()
    test.keep(
        "1_shot", group([0], [[0, 1]]), np.array([[[1.0, 0.0], [0.0, 1.0]]]), np.array([[[0.9, 0.1], [0.2, 0.8]]])
    )
    found = calibrations(QueryOutputs(), test, [1, 5])
    before = 100 * (1 - 1 / (1 + np.exp(-1)))
    assert found["1_shot"]["temperature"] is None
    assert found["1_shot"]["ece"] == found["1_shot"]["ece_before"] == pytest.approx(before)
    assert found["1_shot"]["threshold"] is found["1_shot"]["refused"] is found["1_shot"]["found"] is None
    assert found["1_shot"]["auroc"] == 1
    assert set(found["5_shot"].values()) == {None}
    assert set(found["5_shot"]) == set(found["1_shot"])


def test_test_tasks_are_judged_with_the_temperature() -> None:
    validation, test = QueryOutputs(), QueryOutputs()
    for kept, seed in ((validation, 0), (test, 1)):
        logits, labels = drawn(seed, 0.1)
        for position in range(len(logits)):
            own = group([position], labels[[position]].tolist())
            kept.keep("1_shot", own, logits[[position]], logits[[position]])
    found = calibrations(validation, test, [1])["1_shot"]
    assert found["temperature"] == pytest.approx(0.1, rel=0.1)
    assert found["ece"] == calibration_error(test.logits("1_shot"), found["temperature"])
    assert found["ece"] < 2 < 10 < found["ece_before"]


def test_the_nearest_number_of_shots_counts() -> None:
    known = Temperatures(C=1.0, temperatures={1: 0.1, 5: 0.2, 20: 0.4})
    assert [known.of(shots, 1.0) for shots in (1, 2, 2.5, 5, 9, 11, 100)] == [0.1, 0.1, 0.2, 0.2, 0.2, 0.4, 0.4]
    assert known.of(1, 2.0) == 1
    assert Temperatures(C=1.0, temperatures={}).of(1, 1.0) == 1
    assert Temperatures(C=1.0, temperatures={}).threshold(1) is None
    strict = Temperatures(C=1.0, temperatures={}, thresholds={1: 0.5, 5: 0.6})
    assert [strict.threshold(shots) for shots in (1, 2, 3, 50)] == [0.5, 0.5, 0.6, 0.6]


def test_temperatures_belong_to_one_file(tmp_path: Path) -> None:
    model, other = tmp_path / "final.safetensors", tmp_path / "other.safetensors"
    model.write_bytes(b"weights")
    other.write_bytes(b"other weights")
    assert read_temperatures(model) is None
    found = {"1_shot": {"temperature": 0.25}, "5_shot": {"temperature": None, "threshold": 0.5}}
    write_temperatures(tmp_path / NAME, {model: found}, C=2.0)
    assert read_temperatures(model) == Temperatures(C=2.0, temperatures={1: 0.25}, thresholds={5: 0.5})
    assert read_temperatures(other) is None
    model.write_bytes(b"trained again")
    assert read_temperatures(model) is None


@pytest.mark.parametrize("content", ['{"SHA": {"C": 0}}', '{"SHA": 3}', '{"SHA": {"C": 1, "temperatures": {"a": 1}}}'])
def test_damaged_temperatures(tmp_path: Path, content: str) -> None:
    model = tmp_path / "final.safetensors"
    model.write_bytes(b"weights")
    write_temperatures(tmp_path / NAME, {model: {"1_shot": {"temperature": 0.25}}}, C=1.0)
    name = (tmp_path / NAME).read_text().split('"')[1]
    (tmp_path / NAME).write_text(content.replace("SHA", name))
    with pytest.raises(MelaError, match=r"temperatures.json: expected the temperatures of final.safetensors, got .*"):
        read_temperatures(model)
