"""dvc.yaml held against the code: a missing dependency gives stale results, a needless one reruns for nothing."""

import inspect
import re
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from mela.params import BLOCKS, LABELS, ROUNDS
from stages.code_hashes.hash_files import PIPELINE
from stages.code_hashes.parsed_modules import CODE_SUFFIXES
from stages.code_hashes.reached_code import Code
from stages.common import paths
from stages.common.round_files import round_files
from tests.helpers.pipeline import CODE, STAGES, imported_modules, listed
from tests.helpers.project import ROOT

MAY_SEE_TRUTH = {"images", "manifest", "label_oracle", "score_labels", "confusions"}
MAY_SEE_SOURCES = {"images", "manifest", "names"}
# which reads each module once
HASHES = Code(ROOT)


@cache
def reached(stage: str) -> set[str]:
    """Names of the definitions that a stage's script reaches."""
    return set(HASHES.reached(f"stages.{stage}"))


def test_every_script_is_a_stage() -> None:
    scripts = {path.stem for path in (ROOT / "stages").glob("*.py")} - {"code", "__init__"}
    assert scripts == set(STAGES)
    cells = {"pretrain": " ${item.labels}", "round": " ${key}"}
    assert all(STAGES[name]["cmd"] == f"python -m stages.{name}{cells.get(name, '')}" for name in STAGES)


def test_there_is_a_training_for_every_kind_of_labels() -> None:
    """Each depends on its own switch, so that turning one on runs no other again."""
    assert {name: stage["matrix"] for name, stage in STAGES.items() if "matrix" in stage} == {
        "pretrain": {"labels": list(LABELS)}
    }
    for part in ("deps", "params"):
        assert [entry for entry in STAGES["pretrain"][part] if "item" in entry] == [
            {"deps": "data/labels/${item.labels}.parquet", "params": "compare.${item.labels}"}[part]
        ]
    assert all(
        "${item.labels}" in out for out in [*STAGES["pretrain"]["outs"], *next(iter(STAGES["pretrain"]["plots"]))]
    )
    switches = {"label": ["pruned"], "label_merged": ["merged", "merged_soft"], "pretrain": list(LABELS)}
    assert switches == {
        name: [key.removeprefix("compare.") for key in listed(name, "params") if key.startswith("compare.")]
        for name in switches
    }
    assert [name for name in STAGES if "compare" in listed(name, "params")] == ["report"]


def test_each_round_reads_what_the_one_before_it_writes() -> None:
    """It depends on its own switch and no other, so that turning on the third trains the first two no more."""
    assert list(STAGES["round"]["foreach"]) == list(ROUNDS)
    written = ["data/features.parquet", "models/initial.safetensors"]
    for number in ROUNDS:
        assert [path for path in listed(f"round@{number}", "deps") if path in written] == written
        assert [key for key in listed(f"round@{number}", "params") if "rounds" in key] == [f"rounds.{number}"]
        own = round_files(number)
        assert own.looks is not None
        assert own.features.parent == own.looks.parent
        written = [own.features.parent.as_posix(), own.model.as_posix()]
        assert set(written) <= set(listed(f"round@{number}", "outs"))
    assert written[0] in listed("label_merged", "deps")
    assert set(written) <= set(listed("assign", "deps"))


@pytest.mark.parametrize("stage", STAGES)
def test_the_code_that_a_stage_depends_on_is_the_file_of_its_script(stage: str) -> None:
    code = [entry for entry in listed(stage, "deps") if entry.endswith(".py") or entry.startswith("data/code")]
    assert code == [f"data/code/{stage}.json"]
    assert PIPELINE.starts(ROOT)[stage] == (f"stages.{stage}", None)


def test_the_stage_in_front_reads_all_code_and_writes_all_files() -> None:
    assert CODE["cmd"] == "python -m stages.code"
    assert CODE["deps"] == ["mela", "stages"]
    assert CODE["outs"] == ["data/code"] == [PIPELINE.out.as_posix()]
    assert "params" not in CODE


def test_files_of_the_package_count_where_they_are_read() -> None:
    """The published splits decide what is training data; who reads them depends on them. So it is with the page."""
    files = {path.parent for path in (ROOT / "mela").rglob("*.*") if path.suffix not in CODE_SUFFIXES}
    readers = {"inference/model_card", "reporting/page/render", "review/server", "sources/benchmarks"}
    opens = re.compile(
        r"import resources|resources\.files\(\"([\w.]+)\"\)|(?:Package|FileSystem)Loader\(|Path\(__file__\)"
    )
    found = {
        path.relative_to(ROOT / "mela").with_suffix("").as_posix(): {name for name in names if name}
        for path in (ROOT / "mela").rglob("*.py")
        if (names := opens.findall(path.read_text("utf-8")))
    }
    # this one finds the presets and the project, which no stage reads
    assert set(found) == readers | {"cli/shipped_files"}
    opened = {ROOT.joinpath(*name.split(".")) for names in found.values() for name in names}
    assert {folder for folder in files if not any(folder.is_relative_to(one) for one in opened)} == set()
    reading = {stage: {name for name in reached(stage) if name.endswith(":files")} for stage in STAGES}
    assert {stage: names for stage, names in reading.items() if names} == {
        "images": {"mela.sources:files"},
        "names": {"mela.sources:files"},
        "report": {"mela.reporting.page:files"},
    }


def test_all_packages_are_installed() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    folders = [path.parent.relative_to(ROOT) for path in ROOT.glob("mela/**/__init__.py")]
    # presets and the files of a project lie in the root, and an installed package has them inside
    assert sorted(settings["packages"]) == sorted([*(".".join(folder.parts) for folder in folders), "mela.project"])


@pytest.mark.parametrize("stage", STAGES)
def test_what_prepares_every_stage_is_part_of_its_code(stage: str) -> None:
    """The package's own file guards the process before the script runs."""
    common = {f"stages.common.{name}" for name in ("guard.guard", "orphans.watch", "run.run")}
    assert common | {"stages:statements"} <= reached(stage)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_reaches_the_blocks_of_parameters_that_it_lists(stage: str) -> None:
    """A new key in another block does not rerun it."""
    blocks = {block.block for block in BLOCKS if f"mela.params.{block.__name__}" in reached(stage)}
    listed_blocks = {key.split(".")[0] for key in listed(stage, "params")}
    assert blocks - {"runtime"} == listed_blocks


def test_labels_alone_depend_on_how_labels_are_inferred() -> None:
    inside = {
        stage for stage in STAGES if any(name.startswith("mela.labeling.learn_labeler.") for name in reached(stage))
    }
    # the last one places new tasks by what one of the others has fitted
    assert inside == {"label", "assign"}
    merging = {stage for stage in STAGES if any("mela.labeling.merge_labeler." in name for name in reached(stage))}
    # `label` writes into the file of its labeler that this is no MergeLabeler
    assert merging == {"round", "label_merged", "label", "assign"}


@pytest.mark.parametrize("stage", STAGES)
def test_paths_of_the_script_are_listed(stage: str) -> None:
    parameters = inspect.signature(import_module(f"stages.{stage}").main).parameters.values()
    defaults = {p.default.as_posix() for p in parameters if isinstance(p.default, Path)} - {"params.yaml"}
    # files named by the labels in use, or by a cell, are those that tests/stages/test_comparison.py takes away, and
    # tests/stages/test_round.py those of each round
    rounds = {(paths.ROUNDS / f"{number}.json").as_posix() for number in ROUNDS} if stage == "report" else set()
    plain = {stage: STAGES[stage] | {"matrix": {"labels": ["${item.labels}"]}}}
    if "foreach" in plain[stage]:
        plain[stage]["foreach"] = {"${key}": {"features": "${item.features}", "model": "${item.model}"}}
    files = listed(stage, "deps", "outs", "metrics", "plots", stages=plain, use="${use}")
    files = [file for file in files if not file.startswith("data/code")]
    assert sorted(file for file in files if "${" not in file) == sorted(defaults | rounds)


@pytest.mark.parametrize("stage", STAGES)
def test_truth_is_seen_only_where_it_belongs(stage: str) -> None:
    uses = "data/truth.parquet" in listed(stage, "deps", "outs")
    assert uses == (stage in MAY_SEE_TRUTH)
    if stage not in MAY_SEE_TRUTH:
        assert "TRUTH" not in (ROOT / "stages" / f"{stage}.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("stage", STAGES)
def test_names_of_raw_files_are_seen_only_where_tasks_are_made(stage: str) -> None:
    assert ("data/images/index.parquet" in listed(stage, "deps", "outs")) == (stage in MAY_SEE_SOURCES)


def test_no_stage_depends_on_the_machine() -> None:
    assert not any("runtime" in key for stage in STAGES for key in listed(stage, "params"))


def test_every_block_is_declared() -> None:
    declared = {key.split(".")[0] for stage in STAGES for key in listed(stage, "params")}
    assert declared == {block.block for block in BLOCKS} - {"runtime"}


def test_metrics_and_plots_are_kept_in_git() -> None:
    for stage in STAGES:
        for entry in [*STAGES[stage].get("metrics", []), *STAGES[stage].get("plots", [])]:
            assert next(iter(entry.values()))["cache"] is False


def test_dvc_remembers_the_runs_of_all_that_takes_long() -> None:
    """It does not where an output is neither a metric nor a plot and is not in the cache."""
    forgetful = {stage for stage in STAGES for out in STAGES[stage]["outs"] if isinstance(out, dict)}
    assert forgetful == {"map", "report"}


def test_only_the_few_figures_that_runs_are_compared_by_are_metrics() -> None:
    metrics = {stage: listed(stage, "metrics") for stage in STAGES if "metrics" in STAGES[stage]}
    assert metrics == {"report": ["results/metrics.json"]}


def test_every_plot_has_its_data_and_its_template() -> None:
    outs = {name for stage in STAGES for name in listed(stage, "outs")}
    plots = YAML(typ="safe").load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["plots"]
    used = {"linear"}
    for plot in plots:
        ((settings,),) = [plot.values()]
        assert set(settings["y"]) <= outs
        used.add(settings["template"])
    for stage in STAGES:
        for plot in STAGES[stage].get("plots", []):
            ((settings,),) = [plot.values()]
            assert {"title", "x", "y"} <= settings.keys()
            used.add(settings.get("template", "linear"))
    assert used == {path.stem for path in (ROOT / ".dvc/plots").iterdir()} | {"linear"}


SCRIPTS = sorted([*(ROOT / "stages").glob("*.py"), *(ROOT / "stages/common").glob("*.py")])


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_stages_are_thin(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 80


def test_library_imports_no_stage() -> None:
    for path in ROOT.glob("mela/**/*.py"):
        assert not any("stages" in file.parts for file in imported_modules(path)), path
