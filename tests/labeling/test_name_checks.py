"""Names of tasks and labels that are missing, or that cannot be sorted, end in one line."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mela.errors import MelaError
from mela.labeling.merge_labeler import MergeLabeler
from mela.labeling.name_checks import require_names

X = np.random.default_rng(0).normal(size=(8, 3))
TASKS = [0, 0, 0, 0, 1, 1, 1, 1]
LABELS = ["a", "a", "b", "b"] * 2


def missing(name: str, value: str, position: int, count: int) -> str:
    samples = f"({count} of 8 samples have none)"
    return f"{name}: expected a value for every sample, got {value} at position {position} {samples}; fill it in, .*"


CASES = {
    "None": (["a", None, "b", "b"] * 2, missing("local labels", "None", 1, 2)),
    "None among numbers": ([0, 0, 1, 1, 0, 0, 1, None], missing("local labels", "None", 7, 1)),
    "NaN": ([0.0, 0.0, 1.0, np.nan, 0.0, 0.0, 1.0, 1.0], missing("local labels", "nan", 3, 1)),
    "NaN in a list of text": (["a", float("nan"), "b", "b"] * 2, missing("local labels", "nan", 1, 2)),
    "NaN among text": (np.array([*LABELS[:7], np.nan], dtype=object), missing("local labels", "nan", 7, 1)),
    "a nullable column": (pd.Series([0, 0, 1, None] * 2, dtype="Int64"), missing("local labels", "nan", 3, 2)),
    "a date that is none": (
        pd.to_datetime(pd.Series(["2020-01-01", None, "2020-01-02", "2020-01-02"] * 2)),
        missing("local labels", "NaT", 1, 2),
    ),
    "text and numbers": (
        np.array([1, "a", 2, "b"] * 2, dtype=object),
        "local labels: expected values of one type .*, got int at position 0 and str at position 1; convert .*",
    ),
    "numbers in a list of text": (
        ["a", 1, "b", 2] * 2,
        "local labels: expected values of one type .*, got str at position 0 and int at position 1; convert .*",
    ),
    "what cannot be sorted": (
        np.array([1j, {}, 2, 3] * 2, dtype=object),
        "local labels: expected values of one type .*, got complex at position 0 and dict at position 1; convert .*",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_wrong_local_labels(name: str) -> None:
    labels, message = CASES[name]
    message = message.replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(MelaError, match=f"^{message}$"):
        MergeLabeler().fit(X, labels, TASKS)
    with pytest.raises(MelaError, match=f"^{message.replace('local labels', 'tasks')}$"):
        MergeLabeler().fit(X, LABELS, labels)


def test_new_tasks_are_checked_too() -> None:
    labeler = MergeLabeler().fit(X, LABELS, TASKS)
    with pytest.raises(MelaError, match=r"^local labels: expected a value for every sample, got None at position 1 "):
        labeler.predict(X, ["a", None, "b", "b"] * 2, TASKS)


@pytest.mark.parametrize(
    "make", [list, np.array, pd.Series, lambda values: pd.Series(values, dtype="string"), pd.Categorical]
)
def test_names_of_any_kind_are_taken(make: Callable[[Any], Any]) -> None:
    require_names(np.asarray(make(LABELS)), "labels")
    require_names(np.asarray(make([0, 0, 1, 1])), "labels")
