"""Several kinds of labels in one run: which are inferred and trained on, and which the results tell of."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch

from mela.errors import MelaError
from mela.io import schemas, store
from mela.io.name_tables import LISTING
from mela.io.text_tables import read_text_csv
from mela.models.files import is_trained, load_model
from mela.params import LABELS, PARAMS
from mela.reporting.summary import NAMES
from stages.common import paths
from stages.common.embedding_files import trained
from tests.helpers.commands import mela
from tests.helpers.folders import contents
from tests.helpers.pipeline import STAGES, listed
from tests.helpers.project import change, run_stages

# those that have files of their own for each kind of labels, and all that tell of those in use
OF_FILES = ("assign", "map", "report")
TELLING = ("confusions", *OF_FILES)


def model(labels: str) -> Path:
    return paths.MODELS / f"{labels}.safetensors"


def require_nothing_trained(labels: str) -> None:
    """The files of a training that was not, which all say so."""
    files = trained(labels)
    assert not is_trained(files.model)
    assert store.read_json(files.metrics) == {}
    assert files.curve.read_text("utf-8") == ",".join(schemas.CURVE.names) + "\n"
    with pytest.raises(
        MelaError, match=rf"{labels}\.safetensors: expected an embedding, got none, .* compare\.{labels} "
    ):
        load_model(files.model, torch.device("cpu"), store.open_images(paths.IMAGES))


def require_no_labels(name: str, steps: Path) -> None:
    """The files of labels that are off: each has the form that it always has, and nothing in it."""
    tables = {"": schemas.LABELS, "_soft": schemas.SOFT_LABELS, "_tasks": schemas.ASSIGNMENTS}
    for suffix, schema in tables.items():
        assert store.read_table(paths.LABELS / f"{name}{suffix}.parquet", schema).empty
    assert store.read_json(paths.LABELING / f"{name}.json") == {}
    assert store.read_json(paths.LABELERS / name / "labeler.json") == {}
    for file in (steps, *(paths.LABELING / f"{name}_{part}.csv" for part in ("sizes", "clusters"))):
        header, *rows = file.read_text(encoding="utf-8").splitlines()
        assert header
        assert rows == []


def measured() -> dict[str, set[str]]:
    """Which embeddings each part of the results is about."""
    found = store.read_json(paths.EVALUATE_METRICS)
    rows = store.read_table(paths.PER_TASK, schemas.ACCURACIES)
    temperatures = store.read_json(paths.TEMPERATURES)
    assert set(found["calibration"]) == set(rows["model"]) == set(found["accuracy"])
    assert all(f"{name}.safetensors" in str(temperatures) for name in found["accuracy"])
    return {key: set(found[key]) for key in ("accuracy", "gain", "to_oracle")}


@pytest.mark.slow
def test_pruning_that_is_off(copied: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = store.read_json(paths.EVALUATE_METRICS)
    change(PARAMS, {"compare.pruned": False})
    run_stages("label", "score_labels", "pretrain@pruned", "evaluate", "map", "report")
    said = capfd.readouterr().out
    assert "label: no labels, since `compare` has them off\n" in said
    assert "pretrain@pruned: not trained, since `compare` has it off\n" in said
    require_no_labels("pruned", paths.PASSES)
    require_nothing_trained("pruned")
    assert set(store.read_json(paths.SCORES)) == {"merged", "kmeans"}
    assert len(pd.read_csv(paths.PRUNED_PURITIES)) == 0
    assert measured() == {
        "accuracy": {"initial", "merged", "oracle"},
        "gain": {"merged", "oracle"},
        "to_oracle": {"merged"},
    }
    found = store.read_json(paths.EVALUATE_METRICS)
    assert all(found["accuracy"][name] == before["accuracy"][name] for name in found["accuracy"])
    assert set(store.read_json(paths.OVERVIEW)) == {"data", "true_classes", "initial", "merged", "kmeans", "oracle"}
    sweep = pd.read_csv(paths.SWEEP).iloc[0]
    assert sweep[["q", "n_clusters"]].tolist() == [6.5, 120]
    assert sweep.drop(["q", "n_clusters"]).isna().all()
    assert not (paths.REPORT / "passes.png").exists()
    assert (paths.REPORT / "merges.png").exists()
    ended = mela("summary")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "pruned" not in ended.stdout + (paths.REPORT / "summary.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_merging_that_is_off(copied: Path, capfd: pytest.CaptureFixture[str]) -> None:
    change(PARAMS, {"compare.merged": False, "use": "pruned"})
    cells = ("pretrain@merged", "pretrain@merged_soft")
    run_stages("label_merged", "score_labels", *cells, "evaluate", *TELLING)
    assert "label_merged: no labels, since `compare` has them off\n" in capfd.readouterr().out
    require_no_labels("merged", paths.MERGES)
    for labels in ("merged", "merged_soft"):
        require_nothing_trained(labels)
    assert set(store.read_json(paths.SCORES)) == {"pruned", "kmeans"}
    assert measured()["gain"] == {"pruned", "oracle"}
    assert "merged" not in (paths.REPORT / "summary.md").read_text(encoding="utf-8")
    assert not (paths.REPORT / "merges.png").exists()
    assert (paths.REPORT / "passes.png").exists()


@pytest.mark.slow
def test_soft_labels_alone_need_merging(copied: Path) -> None:
    """Its labels are there, and nothing is trained on those that say one class of each image."""
    before = {path: path.read_bytes() for path in (paths.MERGED_LABELS, paths.MERGED_SOFT, paths.MERGED_METRICS)}
    change(PARAMS, {"compare.merged": False, "compare.merged_soft": True, "use": "pruned"})
    run_stages("label_merged", "pretrain@merged", "pretrain@merged_soft", "evaluate")
    assert {path: path.read_bytes() for path in before} == before
    require_nothing_trained("merged")
    assert measured()["gain"] == {"merged_soft", "pruned", "oracle"}


@pytest.mark.slow
@pytest.mark.parametrize("labels", ["merged_soft", "kmeans"])
def test_further_labels_can_be_compared(copied: Path, labels: str) -> None:
    before, others = store.read_json(paths.EVALUATE_METRICS), contents(paths.MODELS)
    require_nothing_trained(labels)
    assert NAMES[labels] not in accuracies_of_the_report()
    change(PARAMS, {f"compare.{labels}": True})
    run_stages(f"pretrain@{labels}", "evaluate", "report")
    assert is_trained(model(labels))
    assert {"loss", "proposition1"} < set(store.read_json(trained(labels).metrics))
    assert len(pd.read_csv(trained(labels).curve)) == 2
    changed = {path for path, content in contents(paths.MODELS).items() if others[path] != content}
    assert changed == {path for path in others if Path(path).name in (model(labels).name, paths.TEMPERATURES.name)}
    found = store.read_json(paths.EVALUATE_METRICS)
    for key in ("accuracy", "gain", "to_oracle"):
        assert labels in found[key]
        assert {name: results for name, results in found[key].items() if name != labels} == before[key]
    assert NAMES[labels] in accuracies_of_the_report()


def accuracies_of_the_report() -> list[str]:
    """The kinds of labels in the first table."""
    table, _ = (paths.REPORT / "summary.md").read_text(encoding="utf-8").split("\n\n")
    return [line.split(" | ")[1] for line in table.splitlines()]


def test_one_training_after_another_measures_what_is_there(copied: Path) -> None:
    change(PARAMS, dict.fromkeys((f"compare.{name}" for name in LABELS if name != "merged"), False))
    run_stages("pretrain@pruned", "pretrain@oracle", "evaluate")
    assert measured() == {"accuracy": {"initial", "merged"}, "gain": {"merged"}, "to_oracle": set()}


def named_by_use(stage: str, use: str) -> set[Path]:
    """The files that a stage needs of the labels in use, which others do not have."""
    other = {"merged": "pruned", "pruned": "merged"}[use]
    return {Path(path) for path in {*listed(stage, "deps", use=use)} - {*listed(stage, "deps", use=other)}}


@pytest.mark.slow
@pytest.mark.parametrize("stage", OF_FILES)
@pytest.mark.parametrize("use", ["merged", "pruned"])
def test_results_are_of_the_labels_in_use(copied: Path, stage: str, use: str) -> None:
    """A stage reads what dvc.yaml lists for them and nothing of the others, and needs all of it."""
    change(PARAMS, {"use": use})
    needed = named_by_use(stage, use)
    assert len(needed) == {"assign": 2, "map": 2, "report": 7}[stage]
    for path in named_by_use(stage, {"merged": "pruned", "pruned": "merged"}[use]):
        path.unlink() if path.is_file() else shutil.rmtree(path)
    run_stages(stage)
    aside = copied.parent / "aside"
    for path in needed:
        path.rename(aside)
        with pytest.raises(MelaError, match=f"^{path}"):
            run_stages(stage)
        aside.rename(path)


@pytest.mark.slow
def test_what_is_told_of_pruned_labels(copied: Path) -> None:
    """Once they are used, and nothing is trained for it."""
    before = contents(paths.MODELS)
    change(PARAMS, {"use": "pruned"})
    clusters = {name: store.read_json(paths.LABELING / f"{name}.json")["clusters"] for name in ("merged", "pruned")}
    assert clusters["merged"] != clusters["pruned"]
    run_stages(*TELLING)
    assert contents(paths.MODELS) == before
    rows = read_text_csv(paths.LISTING, LISTING)
    assert rows["cluster"].max() + 1 == clusters["pruned"]
    points = pd.read_csv(paths.MAP)
    labels = store.read_table(paths.PRUNED_LABELS, schemas.LABELS)
    assert len(points.merge(labels, on=["image_id", "label"])) == len(points) > 0
    assert f"{clusters['pruned']} classes (there are 80) were found" in paths.PAGE.read_text(encoding="utf-8")


def test_every_stage_that_tells_of_labels_in_use_is_tested_here() -> None:
    assert {stage for stage in STAGES if "use" in listed(stage, "params")} == {*TELLING}
    assert {stage for stage in STAGES if any("${use}" in path for path in listed(stage, "deps", use="${use}"))} == {
        *OF_FILES
    }


def test_a_training_reads_its_own_labels_alone(copied: Path) -> None:
    before = model("pruned").read_bytes()
    for path in paths.LABELS.glob("*.parquet"):
        if path != paths.PRUNED_LABELS:
            path.unlink()
    others = [path for path in paths.MODELS.glob("*.safetensors") if path != paths.PRUNED]
    for path in (paths.PRUNED, *others):
        path.unlink()
    run_stages("pretrain@pruned")
    assert model("pruned").read_bytes() == before
    assert list(paths.MODELS.glob("*.safetensors")) == [paths.PRUNED]


def test_one_of_several_processes_says_that_nothing_is_trained(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(PARAMS, {"compare.pruned": False})
    before = contents(paths.MODELS)
    monkeypatch.setenv("RANK", "1")
    run_stages("pretrain@pruned")
    assert contents(paths.MODELS) == before
    monkeypatch.setenv("RANK", "0")
    run_stages("pretrain@pruned")
    assert not is_trained(model("pruned"))
