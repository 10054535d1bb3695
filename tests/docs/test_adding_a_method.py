"""The page on adding a method followed in a copy of the project: its method, its change of the matrix, its claims."""

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier

from benchmark.matrix import Matrix
from mela.evaluation.rules import own_rule
from mela.methods import find_method, method_names
from mela.training.loop import Training
from mela.training.on_tasks import train_on_tasks
from tests.helpers.copies import ask, asked, copy_parts, module_at
from tests.helpers.docs import apply, blocks, write_files
from tests.helpers.embedding import IMAGES, WAYS, backbone, episodes, features, schedule
from tests.helpers.project import ROOT

pytestmark = pytest.mark.slow

PAGE = "docs/guides/adding-a-method.md"
TESTS = "tests/benchmark/test_benchmark_definition.py"
# packages of others that a fork begins with cannot be rewritten any more
REWRITTEN = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
DEFINITION = ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", REWRITTEN, TESTS]


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with what the page adds."""
    folder = tmp_path_factory.mktemp("methods") / "project"
    parts = ("mela", "stages", "benchmark", "studies", "tests", "dvc.yaml", "pyproject.toml")
    copy_parts(folder, *parts, without=("results",))
    assert write_files(PAGE, folder) == ["mela/methods/nearest.py"]
    diffs = [block.content for block in blocks(PAGE) if block.language == "diff" and "nearest" in block.content]
    assert [apply(diff, folder) for diff in diffs] == ["params.yaml"]
    return folder


def test_nothing_is_missing(changed: Path) -> None:
    ask(*DEFINITION, where=changed)
    ask(sys.executable, "-m", "ruff", "check", "--quiet", "mela/methods", where=changed)


def test_systems_follow_from_the_lists(changed: Path) -> None:
    """One more from nothing; in `tuned_methods` as well one for each embedding that it goes on from."""
    before = Matrix.read(ROOT / "benchmark/params.yaml")
    path = changed / "benchmark/both.yaml"
    text = (changed / "benchmark/params.yaml").read_text(encoding="utf-8")
    path.write_text(text.replace("tuned_methods: [", "tuned_methods: [nearest, "), encoding="utf-8")
    for name, more in (("params", 1), ("both", 1 + len(before.tuned_from))):
        command = ["python", "-m", "benchmark.matrix", "--lists", f"benchmark/{name}.yaml"]
        assert f"matrix: {len(before.systems) + more} systems on glyphs, " in ask(*command, where=changed)


def test_a_method_that_is_in_no_matrix_would_be_noticed(changed: Path, tmp_path: Path) -> None:
    shutil.copytree(changed, tmp_path / "copy")
    shutil.copy(ROOT / "benchmark/params.yaml", tmp_path / "copy/benchmark/params.yaml")
    ended = asked(*DEFINITION, "-k", "every_method_is_in_the_matrix", where=tmp_path / "copy")
    assert ended.returncode == 1
    assert "nearest" in ended.stdout


def nearest(folder: Path) -> Any:
    return module_at(folder / "mela/methods/nearest.py", "nearest").METHOD.build(backbone())


def test_it_is_the_nearest_neighbour(changed: Path) -> None:
    support, labels, query, _ = features()
    logits = nearest(changed).logits(support, labels, query, WAYS)
    for task in range(len(support)):
        neighbours = KNeighborsClassifier(1).fit(support[task].numpy(), labels[task].numpy())
        np.testing.assert_array_equal(logits[task].argmax(1), neighbours.predict(query[task].numpy()))
    assert torch.isfinite(logits).all()


def test_it_learns(changed: Path) -> None:
    learner = nearest(changed)
    training, test = episodes([([2, 2, 2], 4)] * 60), episodes([([2, 2, 2], 4)] * 90)
    how = Training(stage="methods", schedule=schedule(3, 0.02), seed=0)
    train_on_tasks(learner, IMAGES, training, how, tasks_per_epoch=None)
    assert own_rule(learner, IMAGES, test, [2])["accuracy"].mean() > 60


def test_the_page_tells_of_all_methods() -> None:
    text = (ROOT / "docs/results/methods.md").read_text(encoding="utf-8")
    rows = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("| `")}
    for name in method_names():
        method = find_method(name)
        assert f"| {method.sees} |" in rows[f"`{name}`"]
        assert method.source.replace(",", "").removesuffix(".")[-4:] in rows[f"`{name}`"]
        assert method.source.split()[0].rstrip(",") in rows[f"`{name}`"]
    assert rows.keys() == {f"`{name}`" for name in method_names()}
