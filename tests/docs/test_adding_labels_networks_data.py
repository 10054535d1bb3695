"""The page on adding labels, networks and data followed in a copy of the project, and a run with what it adds."""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from dvc.repo import Repo
from ruamel.yaml import YAML

from tests.helpers.copies import ask, copy_parts, module_at
from tests.helpers.docs import apply, blocks, commands, write_files
from tests.helpers.project import ROOT, TINY, change

pytestmark = pytest.mark.slow

PAGE = "docs/guides/adding-labels-networks-data.md"
RUN = """
from importlib import import_module
from mela.params import LABELS, ROUNDS
from mela.runtime.console import speak
speak()
inferred = ("label_merged", "label", "label_kmeans", "label_task_kmeans", "label_oracle")
for name in ("images", "names", "manifest", "corrections", "embed", "extract"):
    import_module(f"stages.{name}").main()
for number in ROUNDS:
    import_module("stages.round").main(number)
for name in inferred:
    import_module(f"stages.{name}").main()
for labels in LABELS:
    import_module("stages.pretrain").main(labels)
import_module("stages.evaluate").main()
"""


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with all that the page adds."""
    folder = tmp_path_factory.mktemp("changed") / "project"
    copy_parts(folder, "mela", "stages", "presets", "tests", "data/raw/glyphs")
    copy_parts(folder, "dvc.yaml", ".dvcignore", "pyproject.toml")
    shutil.copy(ROOT / "presets/glyphs.yaml", folder / "params.yaml")
    assert write_files(PAGE, folder) == ["stages/label_task_kmeans.py", "mela/sources/arrays.py"]
    changes = [apply(block.content, folder) for block in blocks(PAGE) if block.language == "diff"]
    of_labels = ["dvc.yaml", "evaluate.py", "params.py", "params.yaml", "summary.py"]
    assert sorted(changes) == sorted([*of_labels, "backbones.py", "params.py", "open.py", "params.py"])
    return folder


def experiments() -> list[dict[str, str]]:
    """What the commands of the page set."""
    found = [command for block in blocks(PAGE) if block.language == "sh" for command in commands(block)]
    assert found.pop(0) == "python -m pytest tests/stages/code_hashes/test_pipeline_definition.py"
    assert all(command.startswith("dvc exp run ") for command in found)
    return [dict(re.findall(r"-S ([\w.]+)=(\S+)", command)) for command in found]


def test_the_page_speaks_of_these_blocks_only() -> None:
    assert {block.language for block in blocks(PAGE)} == {"sh", "python", "diff"}
    assert sum(block.language == "python" for block in blocks(PAGE)) == 3
    of_data = ["data.image_size", "data.name", "data.root", "kmeans.n_clusters", "tasks.val", "tasks.ways"]
    assert [sorted(changes) for changes in experiments()] == [["compare.task_kmeans"], ["model.backbone"], of_data]


def definition(folder: Path) -> Any:
    """Return the tests of the pipeline's definition as the copy has them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("helpers/project", "helpers/pipeline", "stages/code_hashes/test_pipeline_definition"):
            full = f"tests.{name.replace('/', '.')}"
            # what stands there now comes back
            patch.setitem(sys.modules, full, sys.modules.get(full))
            module = module_at(folder / f"tests/{name}.py", full)
    assert folder == module.ROOT
    return module


def test_nothing_is_missing_in_the_pipeline(changed: Path) -> None:
    tests = definition(changed)
    tests.test_every_script_is_a_stage()
    tests.test_library_imports_no_stage()
    tests.test_stages_are_thin(changed / "stages/label_task_kmeans.py")
    for stage in tests.STAGES:
        tests.test_the_code_that_a_stage_depends_on_is_the_file_of_its_script(stage)
        tests.test_truth_is_seen_only_where_it_belongs(stage)
    for command in ("check", "format --check"):
        ask(sys.executable, "-m", "ruff", *command.split(), "--quiet", "mela", "stages", where=changed)


def test_dvc_knows_the_new_stage(changed: Path) -> None:
    with Repo.init(str(changed), no_scm=True) as repo:
        (stage,) = (stage for stage in repo.index.stages if stage.name == "label_task_kmeans")
        assert [out.def_path for out in stage.outs] == ["data/labels/task_kmeans.parquet"]


def test_a_line_that_is_missing_would_be_noticed(changed: Path) -> None:
    tests = definition(changed)
    tests.STAGES["label_task_kmeans"]["deps"].remove("data/code/label_task_kmeans.json")
    with pytest.raises(AssertionError):
        tests.test_the_code_that_a_stage_depends_on_is_the_file_of_its_script("label_task_kmeans")


def test_a_new_module_is_part_of_the_code_of_the_stages_that_reach_it(changed: Path) -> None:
    tests = definition(changed)
    of_arrays = {stage for stage in tests.STAGES if "mela.sources.arrays.arrays" in tests.reached(stage)}
    assert of_arrays == {"images", "names"}
    assert "mela.labeling.task_classes.class_means" in tests.reached("label_task_kmeans")


def test_all_of_it_at_once_runs(changed: Path) -> None:
    """Digits from a file of arrays, seen by the network of the page, and pre-training on its labels."""
    *_, digits = (block for block in blocks(PAGE) if block.language == "python")
    settings = {key: YAML(typ="safe").load(text) for some in experiments() for key, text in some.items()}
    tiny = {"tasks.train": 120, "embed.tasks_per_epoch": 40, "model.width": 32, "evaluate.support_copies": 1}
    others = {"compare.pruned": False, "compare.oracle": False}
    change(changed / "params.yaml", TINY | tiny | others | settings)
    said = ask(sys.executable, "-c", digits.content + RUN, where=changed)
    assert "images: 1797 of 16 x 16 x 1, 1083 train, 714 test" in said
    assert "label_merged: 6 clusters, 100.0% of tasks clustered" in said
    assert "label_task_kmeans: 6 clusters of 360 task classes" in said
    found = json.loads((changed / "results/evaluate/metrics.json").read_text(encoding="utf-8"))
    assert list(found["accuracy"]) == ["initial", "merged", "task_kmeans"]
    # three classes: a third would be right by chance
    assert found["accuracy"]["task_kmeans"]["5_shot"]["mean"] > 60


def test_a_change_that_does_not_fit_would_be_noticed(changed: Path) -> None:
    with pytest.raises(AssertionError, match="expected once what the page says, found 0 times: 'nothing of this'"):
        apply("--- mela/params.py\n@@\n nothing of this\n+more\n", changed)
