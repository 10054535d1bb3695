"""docs/methods.md followed in a copy of the project: its method, its change of the matrix, and what it says of both."""

import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import ROOT
from shared_docs import blocks, write_files
from sklearn.neighbors import KNeighborsClassifier
from test_adding_a_method import apply
from test_embedding import IMAGES, backbone, episodes, schedule
from test_methods import WAYS, features

from bench.environment import for_clone
from benchmark.matrix import Matrix
from mela.meta_test import own_rule
from mela.meta_training import train_on_tasks
from mela.method import find_method, method_names
from mela.training import Training

PAGE = "docs/methods.md"


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with what the page adds."""
    folder = tmp_path_factory.mktemp("methods") / "project"
    for name in ("mela", "stages", "benchmark", "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "runs", "cache", "tmp")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in ("dvc.yaml", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    assert write_files(PAGE, folder) == ["mela/methods/nearest.py"]
    diffs = [block.content for block in blocks(PAGE) if block.language == "diff" and "nearest" in block.content]
    assert [apply(diff, folder) for diff in diffs] == ["params.yaml"]
    return folder


def test_nothing_is_missing(changed: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_benchmark_definition.py"]
    environment = for_clone(PYTHONPATH=str(changed))
    ended = subprocess.run(command, cwd=changed, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    check = [sys.executable, "-m", "ruff", "check", "--quiet", "mela/methods"]
    assert subprocess.run(check, cwd=changed, check=False).returncode == 0


def test_systems_follow_from_the_lists(changed: Path) -> None:
    """One more from nothing; in `tuned_methods` as well one for each embedding that it goes on from."""
    before = Matrix.read(ROOT / "benchmark/params.yaml")
    path = changed / "benchmark/both.yaml"
    text = (changed / "benchmark/params.yaml").read_text(encoding="utf-8")
    path.write_text(text.replace("tuned_methods: [", "tuned_methods: [nearest, "), encoding="utf-8")
    for name, more in (("params", 1), ("both", 1 + len(before.tuned_from))):
        command = [sys.executable, "-m", "benchmark.matrix", "--params", f"benchmark/{name}.yaml"]
        environment = for_clone(PYTHONPATH=str(changed))
        ended = subprocess.run(command, cwd=changed, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        assert f"matrix: {len(before.systems) + more} systems on glyphs, " in ended.stdout


def test_a_method_that_is_in_no_matrix_would_be_noticed(changed: Path, tmp_path: Path) -> None:
    shutil.copytree(changed, tmp_path / "copy")
    shutil.copy(ROOT / "benchmark/params.yaml", tmp_path / "copy/benchmark/params.yaml")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_benchmark_definition.py"]
    command += ["-k", "every_method_is_in_the_matrix"]
    environment = for_clone(PYTHONPATH=str(tmp_path / "copy"))
    ended = subprocess.run(command, cwd=tmp_path / "copy", env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "nearest" in ended.stdout


def nearest(folder: Path) -> Any:
    spec = spec_from_file_location("nearest", folder / "mela/methods/nearest.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.METHOD.build(backbone())


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
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    rows = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("| `")}
    for name in method_names():
        method = find_method(name)
        assert f"| {method.sees} |" in rows[f"`{name}`"]
        assert method.source.replace(",", "").removesuffix(".")[-4:] in rows[f"`{name}`"]
        assert method.source.split()[0].rstrip(",") in rows[f"`{name}`"]
    assert rows.keys() == {f"`{name}`" for name in method_names()}


def table_below(heading: str) -> list[list[str]]:
    """Cells of the header and of all rows."""
    section = (ROOT / PAGE).read_text(encoding="utf-8").split(heading)[1].split("\n##")[0]
    head, _, *rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [head, *rows]


@pytest.mark.parametrize(
    ("heading", "column", "attribute", "other", "others"),
    [
        ("### Scale of logits", "scale", "initial_scale", "regularizer", "regularizer"),
        ("### Regularizer", "regularizer", "regularizer", "scale", "initial_scale"),
    ],
)
def test_heads_are_those_that_were_tried(heading: str, column: str, attribute: str, other: str, others: str) -> None:
    """The tables are results/method_rates.csv, and what is bold is what methods have."""
    head, *lines = table_below(heading)
    names = {find_method(name).title: name for name in method_names()}
    shown = {}
    for first, *cells in lines:
        title, data = first.strip().rsplit(", ", 1)
        for value, cell in zip(head[1:], cells, strict=True):
            if cell.strip():
                key = ({"CIFAR-FS": "cifar_fs"}.get(data, data), names[title], value.strip())
                shown[key] = cell.strip(" *")
                assert ("**" in cell) == (float(value) == getattr(find_method(names[title]).learner, attribute)), key
    tried = pd.read_csv(ROOT / "results/method_rates.csv", dtype={"scale": str, "regularizer": str})
    tried = tried[(tried["start"] == "nothing") & (tried["optimizer"] == "adam") & (tried["rate"] == 0.003)]
    own = [getattr(find_method(name).learner, others, None) for name in tried["method"]]
    same = tried[other] == ["nothing" if value is None else f"{value:g}" for value in own]
    assert shown == {
        (row["data"], row["method"], row[column]): f"{row['1_shot']:.1f} / {row['5_shot']:.1f}"
        for _, row in tried[same & (tried[column] != "nothing")].iterrows()
    }


def test_rates_of_the_initial_embedding_are_those_that_were_tried() -> None:
    head, *lines = table_below("### Lambda and rate of the initial embedding")
    tried = pd.read_csv(ROOT / "results/embed_rates.csv").set_index(["data", "optimizer", "ridge"])
    settings = [("sgd", 0.001), ("sgd", 50), ("adam", 0.001), ("adam", 50)]
    for name, (optimizer, ridge) in zip(head[1:], settings, strict=True):
        assert optimizer.upper() in name.upper()
        assert f"λ₁ = {ridge:g}" in name
    assert {first.strip() for first, *_ in lines} == {"glyphs", "CIFAR-FS"}
    for first, *cells in lines:
        data = first.strip().lower().replace("-", "_")
        rows = [tried.loc[(data, *setting)] for setting in settings]
        assert [cell.strip() for cell in cells] == [f"{row['1_shot']:.1f} / {row['5_shot']:.1f}" for row in rows]
