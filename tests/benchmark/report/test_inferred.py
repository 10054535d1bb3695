"""The table of inferred labels."""

from pathlib import Path

import pytest

from benchmark.report.inferred import inferred_labels, read_scores
from mela.errors import MelaError
from mela.io import store

SCORED = {
    "clusters": 1028,
    "true_classes": 1030,
    "tasks_clustered": 99.5,
    "accuracy": 99.0,
    "accuracy_all_tasks": 98.0,
    "purity": 99.984,
    "ari": 0.99966,
    "nmi": 0.99,
    "kmeans": {"purity": 51.04, "ari": 0.335, "nmi": 0.8},
}


def write(results: Path, data: str, seed: int, content: dict[str, object], name: str = "merged") -> Path:
    path = results / data / f"seed{seed}/labels-{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    store.write_json(path, content)
    return path


def test_labels_in_the_order_of_the_data_sets_and_of_the_labels(tmp_path: Path) -> None:
    """Without truth there is the number of classes alone; what is not asked for is left out."""
    write(tmp_path, "omniglot", 0, SCORED)
    write(tmp_path, "omniglot", 10, SCORED | {"clusters": 5, "purity": 99.0})
    write(tmp_path, "omniglot", 9, SCORED)
    write(tmp_path, "omniglot", 0, SCORED | {"clusters": 1000, "tasks_clustered": 93.0}, "pruned")
    write(tmp_path, "mine", 1, {"clusters": 7})
    write(tmp_path, "other", 0, SCORED)
    scores = read_scores(tmp_path, ["mine", "glyphs", "omniglot"], ["pruned", "merged"])
    assert scores["labels"].tolist() == ["merged", "pruned", *["merged"] * 3, *["kmeans"] * 3]
    assert scores["seed"].tolist() == [1, 0, 0, 9, 10, 0, 9, 10]
    assert scores["ari"].tolist()[1:] == [*[0.99966] * 4, *[0.335] * 3]
    assert [*inferred_labels(scores)] == [
        "|  | labels | classes found | tasks clustered | accuracy | purity |",
        "|---|---|---|---|---|---|",
        "| mine | MeLa (merged) | 7 |  |  |  |",
        "| Omniglot | MeLa (Algorithm 2, guarded) | 1,000 of 1,030 | 93.00% | 99.00% | 99.98% |",
        "| Omniglot | MeLa (merged) | 5–1,028 of 1,030 | 99.50% | 99.00% | 99.00–99.98% |",  # noqa: RUF001
        "| Omniglot | K-means labels |  |  |  | 51.04% |",
        "",
    ]


def test_nothing_is_scored(tmp_path: Path) -> None:
    assert [*inferred_labels(read_scores(tmp_path, ["glyphs"], ["merged"]))] == []


def test_a_score_that_is_missing_is_named(tmp_path: Path) -> None:
    without = {key: value for key, value in SCORED.items() if key != "purity"}
    path = write(tmp_path, "glyphs", 0, without)
    with pytest.raises(MelaError, match=rf"{path}: purity: field required, got none; rerun the stage"):
        read_scores(tmp_path, ["glyphs"], ["merged"])
