"""The benchmark's own dvc.yaml held against the code, as the pipeline's is, and what each kind of method may see."""

import math
import re
import shlex
from collections.abc import Iterable
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from benchmark.matrix import SEES
from benchmark.report.data_page import cell_of
from benchmark.systems import group, name_in_group, require, title
from mela import params
from mela.errors import MelaError
from mela.io import schemas
from mela.methods import find_method, method_names
from mela.reporting.published import SYSTEMS
from stages.code_hashes.hash_files import OF_BENCHMARK
from stages.code_hashes.reached_code import Code
from tests.helpers import pipeline
from tests.helpers.cells import CODE, HERE, MATRIX, STAGES, YAML_FILES, filled
from tests.helpers.project import ROOT

PARAMS: dict[str, Any] = YAML_FILES["params"]
listed = partial(pipeline.listed, stages=STAGES)
# whose labels, tasks or truth a stage may see
TRUTH = {"images", "manifest", "label_oracle", "score_inferred"}
# stages of a method, whose file they depend on
OF_A_METHOD = {"tasks", "tuned", "labels", "labels_pruned", "distill", "unlabeled"}
OF_A_METHOD |= {stage for stage in STAGES if stage.startswith("test_")} - {"test_initial"}
TRAINING_IMAGES = {"glyphs": 80 * 60, "omniglot": 1028 * 20, "cifar_fs": 64 * 600, "fc100": 60 * 600}
TRAINING_IMAGES |= {f"{name}_resnet12": TRAINING_IMAGES[name] for name in ("cifar_fs", "fc100")}
LABELS = {
    "label_merged",
    "label",
    "label_kmeans",
    "label_oracle",
    "score_inferred",
    "labels",
    "labels_pruned",
    "distill",
}


def script(stage: str) -> Path:
    found = re.search(r"python -m ([\w.]+)", STAGES[stage]["cmd"])
    assert found is not None
    return ROOT.joinpath(*found[1].split(".")).with_suffix(".py")


@cache
def reached() -> dict[str, set[str]]:
    """Names of the definitions that each script and each method reaches."""
    code = Code(ROOT)
    return {file: set(code.reached(*start)) for file, start in OF_BENCHMARK.starts(ROOT).items()}


def cells(stage: str) -> list[dict[str, Any]]:
    """Every combination of a stage's matrix."""
    matrix = {key: PARAMS[value[2:-1]] for key, value in STAGES[stage].get("matrix", {}).items()}
    return [dict(zip(matrix, values, strict=True)) for values in product(*matrix.values())]


@pytest.mark.parametrize("stage", STAGES)
def test_the_code_that_a_stage_depends_on_is_that_of_its_script_and_its_method(stage: str) -> None:
    found = [entry for entry in listed(stage, "deps") if entry.endswith(".py") or "/code/" in entry]
    module = script(stage).relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
    assert found[0] == f"runs/code/{script(stage).stem}.json"
    assert OF_BENCHMARK.starts(ROOT)[script(stage).stem] == (module, None)
    methods = {
        entry.removeprefix("runs/code/methods/").removesuffix(".json").removeprefix("${item.").removesuffix("}")
        for entry in found[1:]
    }
    if stage in OF_A_METHOD:
        own = {word for word in STAGES[stage].get("matrix", {}) if word == "method"}
        own = own or {"rfs" if stage.endswith("pruned") else "distill"}
        # a generation learns from the former, the first of which is no distillation
        assert methods == own | ({"rfs"} if stage == "distill" else set())
    else:
        assert not methods


def test_the_stage_in_front_writes_the_code_of_all_scripts_and_methods() -> None:
    """It runs always: DVC would find compiled files, too, in folders that are not below the benchmark."""
    assert {
        "desc": CODE["desc"],
        "cmd": "cd .. && python -m stages.code --benchmark",
        "always_changed": True,
        "outs": ["runs/code"],
    } == CODE
    assert OF_BENCHMARK.out == Path("benchmark/runs/code")
    starts = OF_BENCHMARK.starts(ROOT)
    assert {name for name in starts if name.startswith("methods/")} == {f"methods/{name}" for name in method_names()}
    assert starts["methods/maml"] == ("mela.methods.maml", "METHOD")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "stages"),
    [
        ("mela.labeling.learn_labeler.LearnLabeler", {"label"}),
        # `label` writes into the file of its labeler that this is no MergeLabeler
        ("mela.labeling.merge_labeler.MergeLabeler", {"label", "label_merged"}),
        ("mela.labeling.size_prior.evenness", {"label", "label_merged"}),
        ("mela.params.LabelerParams", {"label", "settings"}),
        ("mela.params.MergingParams", {"label_merged", "settings"}),
        ("mela.params.TuningParams", {"tasks", "tuned", "settings"}),
        ("mela.learners.ridge.ridge_query_losses", {"embed"}),
        ("mela.errors.MelaError", {*STAGES}),
    ],
)
def test_a_definition_touches_the_stages_that_reach_it_alone(name: str, stages: set[str]) -> None:
    assert {stage for stage in STAGES if name in reached()[script(stage).stem]} == stages


@pytest.mark.parametrize("path", sorted((ROOT / "mela/methods").glob("[!_]*.py")), ids=lambda path: path.stem)
def test_a_method_is_one_short_file_that_no_other_needs(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < 150
    assert not [other for other in pipeline.imported_modules(path) if other.parent.name == "methods"], (
        "no stage lists it"
    )


@pytest.mark.parametrize("stage", STAGES)
def test_files_of_the_command_are_listed(stage: str) -> None:
    command = STAGES[stage]["cmd"]
    assert command.startswith("cd .. && ")
    words = shlex.split(command.replace("${item.", "{").replace("cd .. && ", ""))
    files = {word for word in words if word.startswith("benchmark/") and "." in word.rsplit("/", 1)[-1]}
    named = {f"benchmark/{name}".replace("${item.", "{") for name in listed(stage, "params")}
    files = {name for name in files if not name.startswith("MELA_USAGE=")}
    known = {f"benchmark/{name}".replace("${item.", "{") for name in listed(stage, "deps", "outs")}
    folders = tuple(f"{name}/" for name in known)
    assert {name for name in files - named - known if not name.startswith(folders)} == set()
    assert named <= files


@pytest.mark.parametrize("stage", STAGES)
def test_what_a_method_may_see(stage: str) -> None:
    """Tasks or labels; ground truth only where it is drawn from, scores, or is what the upper bound is made of."""
    files = listed(stage, "deps", "outs")
    assert any("truth.parquet" in file for file in files) == (stage in TRUTH)
    assert any("/labels/" in file for file in files) == (stage in LABELS)
    assert any("test.parquet" in file for file in files) == (stage == "manifest" or stage.startswith("test_"))
    if stage in ("labels", "distill"):
        assert not any("train.parquet" in file for file in files), "labels are all that it sees"
    if stage == "unlabeled":
        seen = {Path(file).name for file in listed(stage, "deps") if not file.startswith("runs/code/")}
        assert seen == {"images.npy", "listing.parquet"}, "images are all that it sees"
        assert schemas.LISTING.names == ["image_id"]
    for name, kind in SEES.items():
        assert {find_method(method).sees for method in PARAMS[name]} == {kind}


def test_params_of_a_stage_are_blocks() -> None:
    blocks = {block.block for block in (*params.BLOCKS, *params.EXTRA_BLOCKS)}
    for stage in STAGES.values():
        for entry in stage.get("params", []):
            ((file, names),) = entry.items()
            assert {name.split(".")[0] for name in names} <= (set(PARAMS) if file == "params.yaml" else blocks)


def test_a_method_on_tasks_depends_on_its_own_rate_alone() -> None:
    """So that a rate that is chosen for one makes no cell of another due."""
    named = {
        stage: [name for entry in content.get("params", []) for names in entry.values() for name in names]
        for stage, content in STAGES.items()
    }
    assert {stage for stage, names in named.items() if any(name.startswith("rates") for name in names)} == {"tasks"}
    assert [name for name in named["tasks"] if name.startswith("rates")] == ["rates.${item.method}"]


def models(stages: Iterable[str], kind: str) -> list[str]:
    """The files of models that the cells of some stages have under a heading."""
    files = ((file, cell) for stage in stages for cell in cells(stage) for file in listed(stage, kind))
    return [filled(file, cell) for file, cell in files if file.endswith("model.safetensors")]


def test_every_method_is_in_the_matrix_and_everything_trained_is_measured() -> None:
    every = {method for name, methods in PARAMS.items() if name.endswith("_methods") for method in methods}
    assert every | {"distill"} == set(method_names())
    trained = models(("embed", "tasks", "labels", "labels_pruned", "distill", "tuned", "unlabeled"), "outs")
    measured = models((stage for stage in STAGES if stage.startswith("test_")), "deps")
    assert sorted(trained) == sorted(measured)
    assert len(set(trained)) == len(trained)
    systems = {Path(file).parent.name for file in trained}
    assert systems == set(MATRIX.systems)
    assert len(MATRIX.systems) == len(systems)


@pytest.mark.parametrize("path", sorted((HERE / "data").glob("*.yaml")), ids=lambda path: path.stem)
def test_data_sets_have_all_parameters(path: Path) -> None:
    params.check_document(path)
    for block in params.EXTRA_BLOCKS:
        block.read(path)


@pytest.mark.parametrize("data", sorted(TRAINING_IMAGES))
def test_methods_on_tasks_see_as_many_images_as_both_trainings_of_mela(data: str) -> None:
    path = HERE / "data" / f"{data}.yaml"
    tasks, embed = params.TaskParams.read(path), params.EmbedParams.read(path)
    methods, tuning = params.MethodsParams.read(path), params.TuningParams.read(path)
    of_a_task = tasks.ways * (tasks.shots + tasks.queries)
    initial = embed.epochs * (embed.tasks_per_epoch or tasks.train or 0) * of_a_task
    both = initial + params.PretrainParams.read(path).epochs * TRAINING_IMAGES[data]
    assert methods.epochs * methods.tasks_per_epoch * of_a_task == pytest.approx(both, rel=0.03)
    assert methods.tasks_per_epoch <= (tasks.train or math.inf), "an epoch meets no task twice"
    assert tuning.epochs * tuning.tasks_per_epoch * of_a_task == pytest.approx(both / 3, rel=0.15)
    assert tuning.tasks_per_epoch <= (tasks.train or math.inf)


@pytest.mark.parametrize("data", ["cifar_fs", "fc100"])
def test_both_networks_meet_the_same_tasks(data: str) -> None:
    small, large = (HERE / "data" / f"{name}.yaml" for name in (data, f"{data}_resnet12"))
    for name in ("Data", "Task", "Evaluate", "Labeler", "Merging", "Compare", "KMeans"):
        block = getattr(params, f"{name}Params")
        assert block.read(small) == block.read(large)


def test_names_of_systems() -> None:
    for system in MATRIX.systems:
        require(system)
    assert title("merged-rfs") == "MeLa (merged)"
    assert title("oracle-s2m2-finetune") == "true labels + S2M2 + fine-tuned"
    assert title("merged-rfs-distill-distill") == "MeLa (merged) + distilled, generation 2"
    assert [name_in_group(name) for name in ("initial", "merged-rfs", "oracle-s2m2-finetune")] == [
        "initial embedding",
        "MeLa (merged)",
        "+ S2M2 + fine-tuned",
    ]
    known = {name: group(name) for name in ("initial", "maml", "merged-rfs-feat", "pruned-rfs", "kmeans-rfs", "moco")}
    assert [*known.values()] == ["tasks", "tasks", "mela", "mela", "kmeans", "images"]
    assert group("oracle-rfs") == "oracle"


def test_every_system_is_measured_by_the_stage_that_the_table_names() -> None:
    named = {
        filled(listed(stage, "outs")[0], cell): f"{stage}@{'-'.join(map(str, cell.values()))}"
        for stage in STAGES
        if stage.startswith("test_")
        for cell in cells(stage)
    }
    for system, data in product(MATRIX.systems, MATRIX.data):
        assert named[f"results/{data}/seed0/{system}.parquet"] == f"{cell_of(system, data)}-0"


@pytest.mark.parametrize("system", ["merged", "protonets", "merged-protonets", "initial-rfs"])
def test_systems_that_do_not_exist(system: str) -> None:
    with pytest.raises(MelaError, match=r"expected|choose one of"):
        require(system)


def test_comparisons_are_of_systems_and_none_comes_twice() -> None:
    asked = [pair for pairs in MATRIX.comparisons.values() for pair in pairs]
    assert {system for pair in asked for system in pair} <= set(MATRIX.systems)
    assert len({frozenset(pair) for pair in asked}) == len(asked) > 40


def test_published_figures_are_those_of_systems() -> None:
    """But for one, whose labels are merged here; it stands in no table."""
    assert set(SYSTEMS) - set(MATRIX.systems) == {"pruned_unguarded-s2m2-finetune"}
