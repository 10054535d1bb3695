"""Parameters: the files that come with the project are valid, and a wrong value is explained in one line."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from ruamel.yaml import YAML

from mela import blocks, params
from mela.errors import MelaError
from tests.helpers.project import ROOT, change

PRESETS = sorted((ROOT / "presets").glob("*.yaml"))
GLYPHS = ROOT / "presets" / "glyphs.yaml"
MISSING = object()
PEOPLE = {"train": 5, "val": 0, "test": 0, "ways": 2, "share": None}


def edited(tmp_path: Path, block: str, key: str | None, value: Any) -> Path:
    """A copy of the glyphs preset with one key (or, with key None, one block) set to `value`."""
    yaml = YAML()
    document = yaml.load(GLYPHS)
    inside, name = (document, block) if key is None else (document[block], key)
    if value is MISSING:
        del inside[name]
    else:
        inside[name] = value
    path = tmp_path / "params.yaml"
    yaml.dump(document, path)
    return path


def replaced(tmp_path: Path, old: str, new: str, source: Path = GLYPHS) -> Path:
    """A copy of the glyphs preset, or of another file, with one piece of text replaced."""
    text = source.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path = tmp_path / "params.yaml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def refusal(path: Path, check: Callable[[Path], object] = params.check_document) -> str:
    """The message without the file's name, which it must begin with."""
    with pytest.raises(MelaError) as caught:
        check(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


@pytest.mark.parametrize("path", [ROOT / "params.yaml", *PRESETS], ids=lambda path: path.stem)
def test_files_of_the_project_are_valid(path: Path) -> None:
    params.check_document(path)


def test_the_glyphs_preset_is_active() -> None:
    assert (ROOT / "params.yaml").read_bytes() == GLYPHS.read_bytes()


def test_every_preset_sets_every_block_in_the_same_order() -> None:
    for path in PRESETS:
        document = blocks.read_document(path)
        assert list(document) == [block.block for block in params.BLOCKS]
        # `use` is a word
        for block in set(params.BLOCKS) - {params.UseParams}:
            keys = [key for key in document[block.block] if block.optional or block.model_fields[key].is_required()]
            assert keys == list(blocks.read_document(GLYPHS)[block.block])


def steps_of_the_initial_embedding(path: Path) -> int:
    """Tasks that an initial embedding is trained on, repetitions included; presets take one a step."""
    embed, tasks = params.EmbedParams.read(path), params.TaskParams.read(path)
    assert embed.tasks_per_step == 1
    datasets = params.DataParams.read(path).datasets or [None]
    return embed.epochs * (embed.tasks_per_epoch or (tasks.train or 0) * len(datasets))


@pytest.mark.parametrize(
    ("name", "epochs", "milestones", "block"),
    [
        ("cifar_fs", 90, [45, 60], 2),
        ("fc100", 90, [45, 60], 2),
        ("mini_imagenet", 100, [60, 80], 5),
    ],
)
def test_presets_of_the_paper_have_the_schedules_of_its_authors(
    name: str, epochs: int, milestones: list[int], block: int
) -> None:
    """25 epochs over all tasks, one a step, decays at 17 and 22; then RFS's schedule for this data set."""
    path = ROOT / "presets" / f"{name}.yaml"
    embed, pretrain = params.EmbedParams.read(path), params.PretrainParams.read(path)
    assert (embed.epochs, embed.tasks_per_epoch, embed.tasks_per_step) == (25, None, 1)
    assert (embed.milestones, embed.decay, embed.ridge, embed.normalize) == ([17, 22], 0.1, 1e-3, False)
    assert steps_of_the_initial_embedding(path) == 75_000
    assert (pretrain.epochs, pretrain.milestones, pretrain.batch_size) == (epochs, milestones, 64)
    for training in (embed, pretrain):
        assert (training.learning_rate, training.momentum, training.weight_decay) == (0.05, 0.9, 5e-4)
    model = params.ModelParams.read(path)
    assert (model.backbone, model.width, model.drop_rate, model.drop_block) == ("resnet12", 64, 0.1, block)


@pytest.mark.parametrize("name", ["metadataset", "tiered_imagenet"])
def test_presets_with_more_tasks_have_as_many_steps(name: str) -> None:
    path = ROOT / "presets" / f"{name}.yaml"
    assert steps_of_the_initial_embedding(path) == 75_000
    assert params.ModelParams.read(path) == params.ModelParams.read(ROOT / "presets/mini_imagenet.yaml")


def test_algorithm_2_can_remove_clusters_with_every_preset() -> None:
    """Its threshold is above 0 in the first pass, in which all clusters have about as many tasks."""
    for path in PRESETS:
        tasks, labeler = params.TaskParams.read(path), params.LabelerParams.read(path)
        data = params.DataParams.read(path)
        if data.people is None and params.CompareParams.read(path).pruned:
            share = tasks.ways / labeler.n_clusters
            mean = share * (tasks.train or 0) * len(data.datasets or [None])
            assert mean > labeler.q * (mean * (1 - share)) ** 0.5, path


@pytest.mark.parametrize("name", ["cifar_fs", "fc100", "mini_imagenet"])
def test_presets_of_conv4_have_the_schedule_of_rfs(name: str) -> None:
    """And differ from those of ResNet-12 in the network, and in how long the initial embedding is trained."""
    expected = blocks.read_document(ROOT / "presets" / f"{name}.yaml")
    expected["model"] |= {"backbone": "conv4_rfs"}
    expected["embed"] |= {"epochs": 12, "milestones": [8, 10]}
    assert blocks.read_document(ROOT / "presets" / f"{name}_conv4.yaml") == expected


def test_mini_imagenet_has_the_values_of_the_paper() -> None:
    """Table 9, and what RFS does with images: their mean and deviation from 0 to 255, and how they are varied."""
    path = ROOT / "presets/mini_imagenet.yaml"
    model, augment = params.ModelParams.read(path), params.AugmentParams.read(path)
    assert model.mean == [round(value / 255, 4) for value in (120.396, 115.594, 104.540)]
    assert model.std == [round(value / 255, 4) for value in (70.682, 68.276, 72.545)]
    assert (augment.crop_padding, augment.flip, augment.jitter) == (8, True, 0.4)
    labeler = params.LabelerParams.read(path)
    assert (params.DataParams.read(path).image_size, labeler.n_clusters, labeler.q) == (84, 300, 6.5)


@pytest.mark.parametrize(
    ("name", "embed", "pretrain"),
    [
        ("cifar_fs", (10, [7, 9]), (30, [15, 20])),
        ("fc100", (10, [7, 9]), (30, [15, 20])),
        ("mini_imagenet", (7, [5, 6]), (20, [12, 16])),
    ],
)
def test_short_presets_differ_in_their_schedules_alone_and_say_so(
    name: str, embed: tuple[int, list[int]], pretrain: tuple[int, list[int]]
) -> None:
    whole, short = (ROOT / "presets" / f"{one}.yaml" for one in (name, f"{name}_short"))
    expected = blocks.read_document(whole)
    expected["embed"] |= {"epochs": embed[0], "tasks_per_epoch": 1000, "milestones": embed[1]}
    expected["pretrain"] |= {"epochs": pretrain[0], "milestones": pretrain[1]}
    assert blocks.read_document(short) == expected
    steps = [f"{steps_of_the_initial_embedding(path):,}" for path in (short, whole)]
    epochs = [params.PretrainParams.read(path).epochs for path in (short, whole)]
    said = " ".join(short.read_text(encoding="utf-8").partition("\n\n")[0].replace("#", " ").split())
    assert f"{steps[0]} steps of the initial embedding in place of {steps[1]}" in said
    assert f"{epochs[0]} epochs of pre-training in place of {epochs[1]}" in said
    assert f"{steps[1]} steps" in whole.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["cifar_fs", "fc100"])
def test_small_presets_say_how_much_shorter_they_are(name: str) -> None:
    whole, small = (ROOT / "presets" / f"{one}.yaml" for one in (name, f"{name}_cpu"))
    steps = [f"{steps_of_the_initial_embedding(path):,}" for path in (small, whole)]
    epochs = [params.PretrainParams.read(path).epochs for path in (small, whole)]
    said = f"{steps[0]} steps in place of {steps[1]}, {epochs[0]} epochs in place of {epochs[1]}."
    assert said in small.read_text(encoding="utf-8")


def test_the_documentation_has_the_steps_of_the_presets() -> None:
    lines = (ROOT / "docs/results/benchmarks.md").read_text(encoding="utf-8").splitlines()
    (names,) = (line for line in lines if re.fullmatch(r"\| \| glyphs \| omniglot_cpu \|.*cifar_fs_cpu \|", line))
    (row,) = (line for line in lines if line.startswith("| initial embedding, steps of one task |"))
    presets = [name.strip() for name in names.split("|")[2:-1]]
    found = [f"{steps_of_the_initial_embedding(ROOT / 'presets' / f'{name}.yaml'):,}" for name in presets]
    assert [cell.strip() for cell in row.split("|")[2:-1]] == found


@pytest.mark.parametrize("name", ["cifar_fs", "fc100"])
def test_the_benchmark_trains_the_large_network_as_the_preset_does(name: str) -> None:
    preset, large = ROOT / f"presets/{name}.yaml", ROOT / f"benchmark/data/{name}_resnet12.yaml"
    for block in (params.ModelParams, params.AugmentParams, params.EmbedParams, params.PretrainParams):
        assert block.read(preset) == block.read(large)


UNUSED = "expected labels that are trained on"
THREE = "expected three numbers (train, val, test)"
BAD = [
    ("labeler", "clusters", 3, "labeler.clusters: unknown key; remove it or correct its name"),
    ("labler", None, {"q": 1}, "labler: unknown block; expected one of augment, compare, data, embed,"),
    ("labeler", None, MISSING, "labeler: expected this block, found only data, tasks, model,"),
    ("labeler", None, None, "labeler.n_clusters: missing; expected a value (and 7 more in this block)"),
    ("labeler", None, 3, "labeler: input should be a valid dictionary or instance of LabelerParams, got 3"),
    ("labeler", None, [1], "labeler: input should be a valid dictionary or instance of LabelerParams, got [1]"),
    ("labeler", "q", MISSING, "labeler.q: missing; expected a value"),
    ("data", "table", "/mine/tasks.csv", "data: table: '/mine/tasks.csv' is no path below data.root"),
    ("data", "table", "../tasks.csv", "data: table: '../tasks.csv' is no path below data.root"),
    ("data", "name", "imagenet", "data.name: input should be 'glyphs', 'omniglot', 'cifar_fs', 'fc100', 'mini_"),
    ("data", "split_fractions", [0.5, 0.5], f"data: split_fractions: {THREE} that sum"),
    ("data", "split_fractions", [0.6, 0.3, 0.2], f"data: split_fractions: {THREE}"),
    ("data", "split_fractions", [0.0, 0.5, 0.5], "data: split_fractions: expected a training share above 0, got [0.0"),
    ("data", "split_fractions", [1.2, -0.2, 0.0], "data.split_fractions.0: input should be less than or equal to 1"),
    ("tasks", "train", None, "tasks: train: expected a number of tasks, got null; null means all that `replacement: f"),
    ("model", "backbone", "resnet18", "model.backbone: expected conv4, conv4_rfs, resnet12 or timm:<name>, got 'resn"),
    ("model", "mean", [0.5], "model: mean, std: expected both or neither to be null"),
    ("model", "std", [0.5], "model: mean, std: expected both or neither to be null"),
    ("embed", "milestones", [4], "embed: milestones: expected epochs below epochs=4, got [4]"),
    ("embed", "milestones", [3, 2], "embed: milestones: expected rising epochs, got [3, 2]"),
    ("embed", "milestones", [2, 2], "embed: milestones: expected rising epochs, got [2, 2]"),
    ("embed", "milestones", [0], "embed.milestones.0: input should be greater than or equal to 1, got 0"),
    ("embed", "base_learner", "svm", "embed.base_learner: input should be 'ridge' or 'task_heads', got 'svm'"),
    ("embed", "hinge", -1.0, "embed.hinge: input should be greater than or equal to 0, got -1.0"),
    ("pretrain", "epochs", 8, "pretrain: milestones: expected epochs below epochs=8, got [9, 12]"),
    ("pretrain", "scheduler", "linear", "pretrain: milestones: expected [] with scheduler: linear, which lowers the l"),
    ("pretrain", "scheduler", "steps", "pretrain.scheduler: input should be 'multistep', 'linear' or 'cosine', got 's"),
    ("pretrain", "label_smoothing", 1.0, "pretrain.label_smoothing: input should be less than 1, got 1.0"),
    ("evaluate", "shots", [], "evaluate.shots: list should have at least 1 item after validation, not 0, got []"),
    ("evaluate", "shots", [1, 0], "evaluate.shots.1: input should be greater than or equal to 1, got 0"),
    ("labeler", "merge", False, f"labeler: merge: merging has a block of its own now, `merging`; {params.CONVERT}"),
    (
        "pretrain",
        "labels",
        "mela",
        "pretrain: labels: the block `compare` says now which labels are trained on; `mela preset --c",
    ),
    (
        "data",
        "people",
        PEOPLE | {"subclasses": True},
        "data: people.subclasses: expected false with data.name: glyphs; only fc100 has whole superclasses in each spl",
    ),
    *(
        (
            "data",
            "people",
            PEOPLE | own,
            "data: people.objects, people.classes: expected none with data.name: glyphs, each",
        )
        for own in ({"objects": True}, {"classes": 30})
    ),
    (
        "data",
        "people",
        PEOPLE | {"paper": True},
        "data: people.paper: expected false with data.name: glyphs and people.share: None; only omniglot",
    ),
    ("data", "people", PEOPLE | {"share": 1.5}, "data.people.share: input should be less than or equal to 1, got 1.5"),
    ("merging", "q", 5.0, "merging.q: unknown key; remove it or correct its name"),
    ("compare", "mela", True, "compare.mela: unknown key; remove it or correct its name"),
    ("compare", "oracle", MISSING, "compare.oracle: missing; expected a value"),
    ("compare", None, MISSING, "compare: expected this block, found only data, tasks, model,"),
    *(("use", None, value, f"use: expected merged or pruned, got {value!r}") for value in ("oracle", True, ["merged"])),
    ("use", None, None, "use: expected merged or pruned, got"),
    ("use", None, MISSING, "use: expected this block, found only data, tasks, model,"),
    (
        "compare",
        "merged",
        False,
        f"use: {UNUSED}, got merged, for which compare.merged is false; turn it on, or use ot",
    ),
    ("runtime", "device", "gpu", "runtime.device: string should match pattern"),
    ("runtime", "device", "cuda:x", "runtime.device: string should match pattern"),
]
# what pydantic says that the input should be, of each key that has other values
INPUTS: dict[str, dict[str, list[Any]]] = {
    "a valid number": {"labeler.q": ["4.5", None, True]},
    "a finite number": {"labeler.q": [float("nan"), float("inf")]},
    "a valid integer": {"labeler.n_clusters": [300.0, True], "tasks.test": [None]},
    "a valid boolean": {"labeler.cumulative_weights": ["yes", 1], "compare.oracle": ["yes", 1, None]},
    "a valid string": {"data.root": [7]},
    "a valid list": {"data.split_fractions": [0.5]},
    "1 or 3": {"data.channels": [2]},
    "'drop' or 'assign'": {"labeler.collisions": ["keep"], "merging.collisions": ["keep"]},
    "'batched' or 'sklearn'": {"evaluate.solver": ["newton"]},
    f"less than {2**32}": {"labeler.seed": [2**32]},
    "less than or equal to 512": {"data.image_size": [513]},
    "less than 1": {"model.drop_rate": [1], "augment.jitter": [1.0], "embed.momentum": [1]},
    "greater than 0": {"embed.learning_rate": [0], "embed.decay": [0], "embed.ridge": [0], "evaluate.C": [0.0]},
    "greater than or equal to 0": {"labeler.q": [-0.1], "embed.weight_decay": [-1e-4]},
}
LEAST = [
    (0, ["labeler.seed", "merging.seed", "tasks.val", "augment.crop_padding", "embed.epochs"]),
    (1, ["labeler.min_count", "merging.min_count", "labeler.max_passes", "data.images_per_class", "pretrain.epochs"]),
    (1, ["tasks.shots", "tasks.queries", "tasks.train", "embed.tasks_per_epoch", "evaluate.support_copies"]),
    (2, ["labeler.n_clusters", "tasks.ways", "kmeans.n_clusters", "pretrain.batch_size"]),
    (16, ["data.image_size"]),
]
WRONG = [(key, value, wanted) for wanted, keys in INPUTS.items() for key, values in keys.items() for value in values]
WRONG += [(key, least - 1, f"greater than or equal to {least}") for least, keys in LEAST for key in keys]
BAD += [(*key.split("."), value, f"{key}: input should be {wanted}, got {value!r}") for key, value, wanted in WRONG]


@pytest.mark.parametrize(("block", "key", "value", "message"), BAD)
def test_a_wrong_value_is_explained(tmp_path: Path, block: str, key: str | None, value: Any, message: str) -> None:
    assert refusal(edited(tmp_path, block, key, value)).startswith(message)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  q: 5.0  ", "  q: 5.0\n  q: 5.5", 'found duplicate key "q" with value "5.5"'),
        ("kmeans:  ", "labeler:\n  q: 1\nkmeans:", 'found duplicate key "labeler"'),
        ("  q: 5.0  ", "  q: [5.0", "expected YAML, got "),
        ("  q: 5.0  ", "\tq: 5.0", "expected YAML, got "),
        ("  q: 5.0  ", "  q: 2024-13-45", "expected YAML, got "),
        ("  q: 5.0  ", "  q: !!int four", "expected YAML, got "),
        ("  q: 5.0  ", "  q: !!python/object/apply:os.getcwd []", "expected YAML, got "),
        ("  q: 5.0  ", "  q: 4,5", "labeler.q: input should be a valid number, got '4,5'"),
        ("  q: 5.0  ", "  3: 5.0", "labeler."),
        ("labeler:  ", "3:\n  q: 1\nlabeler:", "3: unknown block; expected one of "),
    ],
)
def test_wrong_text_is_explained(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert message in refusal(replaced(tmp_path, old, new))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected blocks such as `labeler:`, got NoneType"),
        (b"- a\n- b\n", "expected blocks such as `labeler:`, got list"),
        (b"just text\n", "expected blocks such as `labeler:`, got str"),
        (b"{}", "data: expected this block, found only nothing"),
        (b"\xff\xfe\xfa", "expected text in UTF-8, got "),
        (b"a: 1\n---\nb: 2\n", "expected YAML, got "),
    ],
)
def test_a_file_that_is_no_mapping(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "params.yaml"
    path.write_bytes(content)
    assert refusal(path).startswith(message)


@pytest.mark.parametrize("check", [params.check_document, params.LabelerParams.read, blocks.read_document])
def test_a_missing_file(tmp_path: Path, check: Callable[[Path], object]) -> None:
    message = refusal(tmp_path / "none.yaml", check)
    assert message == "no such file; run from the project's root, or write it with `mela preset glyphs`"


@pytest.mark.parametrize(
    ("text", "value"), [("1e-3", 0.001), ("1.5E-3", 0.0015), ("2", 2.0), ("0.5", 0.5), ("+1.0e+1", 10.0)]
)
def test_numbers_are_read_as_numbers(tmp_path: Path, text: str, value: float) -> None:
    found = params.EmbedParams.read(replaced(tmp_path, "ridge: 0.001  ", f"ridge: {text}  ")).ridge
    assert isinstance(found, float)
    assert found == value


@pytest.mark.parametrize(
    ("block", "key", "value", "model"),
    [
        ("tasks", "val", 0, params.TaskParams),
        ("model", "drop_rate", 0, params.ModelParams),
        ("data", "split_fractions", [1.0, 0, 0], params.DataParams),
        ("embed", "milestones", [], params.EmbedParams),
        ("embed", "milestones", [1, 3], params.EmbedParams),
        ("embed", "tasks_per_epoch", None, params.EmbedParams),
        ("labeler", "q", 0, params.LabelerParams),
        ("labeler", "seed", 2**32 - 1, params.LabelerParams),
        ("pretrain", "decay", 1, params.PretrainParams),
        ("compare", "pruned", False, params.CompareParams),
        ("evaluate", "shots", [1], params.EvaluateParams),
        ("runtime", "device", "cuda:12", params.RuntimeParams),
    ],
)
def test_values_at_the_limits_are_allowed(tmp_path: Path, block: str, key: str, value: Any, model: Any) -> None:
    assert getattr(model.read(edited(tmp_path, block, key, value)), key) == value


def test_null_training_tasks_need_no_replacement(tmp_path: Path) -> None:
    path = replaced(tmp_path, "replacement: true", "replacement: false")
    replaced(tmp_path, "train: 3000 ", "train: null ", path)
    assert params.TaskParams.read(path).train is None


def test_a_stage_reads_its_own_block_only(tmp_path: Path) -> None:
    path = edited(tmp_path, "pretrain", "epochs", -1)
    assert params.LabelerParams.read(path).n_clusters == 300
    assert refusal(path, params.PretrainParams.read).startswith("pretrain.epochs: ")


def test_the_schedule_is_the_arguments_of_the_optimiser() -> None:
    expected = {"epochs": 4, "learning_rate": 0.05, "momentum": 0.9, "weight_decay": 0.0005}
    expected |= {"milestones": [3], "decay": 0.1, "scheduler": "multistep", "nesterov": False, "decay_norms": True}
    assert params.EmbedParams.read(GLYPHS).schedule() == expected


def test_all_blocks_are_checked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every stage does it at its start, so the file is read a single time."""
    reads, read = [], blocks.read_yaml
    monkeypatch.setattr(blocks, "read_yaml", lambda path: reads.append(path) or read(path))
    params.check_document(GLYPHS)
    assert reads == [GLYPHS]


def test_mistakes_of_other_blocks_are_counted(tmp_path: Path) -> None:
    path = replaced(tmp_path, "  q: 5.0  ", "  qq: 5.0  ")
    replaced(tmp_path, "  C: 1.0 ", "  C: 0.0 ", path)
    assert refusal(path) == (
        "labeler.qq: unknown key; remove it or correct its name (and 1 more in this block, 1 more in other blocks)"
    )


def test_missing_blocks_are_counted_and_come_last(tmp_path: Path) -> None:
    path = edited(tmp_path, "data", None, MISSING)
    assert refusal(path).startswith("data: expected this block, found only tasks, ")
    replaced(tmp_path, "C: 1.0 ", "C: 0.0 ", path)
    assert refusal(path) == "evaluate.C: input should be greater than 0, got 0.0 (and 1 more in other blocks)"
    path.write_text("{}", encoding="utf-8")
    assert refusal(path) == "data: expected this block, found only nothing (and 14 more in other blocks)"


def test_blocks_of_the_benchmark_are_checked_where_they_are(tmp_path: Path) -> None:
    path = edited(tmp_path, "methods", None, {"epochs": 1})
    assert refusal(path).startswith("methods.momentum: missing; expected a value (and ")


@pytest.mark.parametrize("used", ["merged", "pruned"])
def test_labels_in_use_are_a_word_and_lead_to_their_model(tmp_path: Path, used: str) -> None:
    path = edited(tmp_path, "use", None, used)
    params.check_document(path)
    assert (params.UseParams.read(path).labels, params.UseParams.read(path).content()) == (used, used)
    assert params.UseParams.model(path) == Path(f"models/{used}.safetensors")
    assert YAML(typ="safe").load(params.parameters_text(path))["use"] == used


def test_without_parameters_the_model_is_that_of_merged_labels(tmp_path: Path) -> None:
    assert params.UseParams.model(tmp_path / "none.yaml") == Path("models/merged.safetensors")


def test_labels_that_are_compared_may_be_used_alone(tmp_path: Path) -> None:
    path = edited(tmp_path, "compare", None, dict.fromkeys(params.LABELS, False) | {"pruned": True})
    assert refusal(path).startswith(f"use: {UNUSED}, got merged, ")
    replaced(tmp_path, "use: merged", "use: pruned", path)
    params.check_document(path)


def test_every_kind_of_labels_can_be_compared() -> None:
    assert tuple(params.CompareParams.model_fields) == params.LABELS


def test_all_blocks_are_known_and_only_those_of_the_benchmark_are_extra() -> None:
    known = [block for block in blocks.known_blocks() if block.__module__ == "mela.params"]
    assert len(known) == len(set(known))
    assert {block for block in known if not block.extra} == set(params.BLOCKS)
    assert {block for block in known if block.extra} == set(params.EXTRA_BLOCKS)


def names_of(model: type[BaseModel]) -> set[str]:
    """The names of all keys of a block, and of the blocks in it."""
    inside = [kind for field in model.model_fields.values() for kind in re.findall(r"\w+Params", str(field.annotation))]
    return set(model.model_fields).union(*(names_of(getattr(params, kind)) for kind in inside))


def test_no_key_has_a_name_that_the_run_cache_leaves_out() -> None:
    """DVC takes `size` and `nfiles` in parameters for those of files, and outputs of other values for the same."""
    names = set[str]().union(*map(names_of, (*params.BLOCKS, *params.EXTRA_BLOCKS)))
    # of a block, of one in it, and of one in a list
    assert {"image_size", "share", "table"} <= names
    assert "share" in names_of(params.PeopleParams)
    assert not names & {"size", "nfiles"}


def test_a_run_of_a_former_version_has_todays_names() -> None:
    today = params.read_document(ROOT / "params.yaml")
    data = {"size" if key == "image_size" else key: value for key, value in dict(today["data"]).items()}
    found = params.by_todays_names(today | {"data": data})
    assert found == today == params.by_todays_names(today)
    assert [*found["data"]] == [*dict(today["data"])]
    assert params.by_todays_names({"use": "merged"}) == {"use": "merged"}


def test_people_have_no_images_of_tasks(tmp_path: Path) -> None:
    path = replaced(tmp_path, "name: glyphs ", "name: tasks ", ROOT / "presets/glyphs_people.yaml")
    assert refusal(path) == "data: people: expected none with data.name: tasks, which come from people already"


def test_what_people_have_in_common_is_said_and_is_part_of_what_images_are_made_from() -> None:
    by_people = ("glyphs_people", "omniglot_people", "omniglot_on_paper", "cifar_fs_people", "fc100_people")
    names = ("glyphs", *by_people, "flowers_people")
    found = {name: params.DataParams.read(ROOT / f"presets/{name}.yaml") for name in names}
    people = {name: data.made_from().get("people") for name, data in found.items()}
    assert people["glyphs"] is None
    assert people["glyphs_people"] == {"train": 300, "val": 60, "test": 600, "ways": 5, "share": 0.75}
    assert people["fc100_people"] == {
        "train": 150,
        "val": 60,
        "test": 600,
        "ways": 4,
        "share": None,
        "subclasses": True,
    }
    assert people["omniglot_people"] == {
        "train": 120,
        "val": 300,
        "test": 600,
        "ways": 5,
        "share": 1.0,
        "objects": True,
        "classes": 40,
    }
    drawn = people["omniglot_people"]
    assert people["flowers_people"] == {key: drawn[key] for key in drawn if key != "classes"} | {"train": 200}
    assert people["omniglot_on_paper"] == people["omniglot_people"] | {"paper": True}
    assert found["omniglot_on_paper"].described == "omniglot by people (share 1, one object each, ink on paper)"
    assert found["omniglot_people"].described == "omniglot by people (share 1, one object each)"
    assert found["flowers_people"].described == "vgg_flower by people (share 1, one object each)"
    assert found["cifar_fs_people"].described == "cifar_fs by people (share 0.75)"
    assert found["fc100_people"].described == "fc100 by people (one subclass each)"
    plain = params.PeopleParams(**PEOPLE)
    assert found["fc100_people"].model_copy(update={"people": plain}).described == "fc100 by people"


@pytest.mark.parametrize("key", ["hinge", "consistency"])
def test_further_losses_are_those_of_ridge_regression(key: str, tmp_path: Path) -> None:
    path = edited(tmp_path, "embed", key, 0.5)
    assert params.EmbedParams.read(path).how()[key] == 0.5
    change(path, {"embed.base_learner": "task_heads"})
    assert refusal(path).startswith(
        f"embed: {key}: expected 0 with base_learner: task_heads, got 0.5; remove it, since"
    )


def test_a_network_of_timm_has_another_head(tmp_path: Path) -> None:
    path = edited(tmp_path, "model", "residual_head", True)
    assert params.ModelParams.read(path).residual_head
    change(path, {"model.backbone": "timm:resnet18"})
    assert refusal(path).startswith(
        "model: residual_head: expected false with the backbone timm:resnet18, got true; rem"
    )


def test_nesterov_needs_momentum(tmp_path: Path) -> None:
    path = edited(tmp_path, "pretrain", "nesterov", True)
    assert params.PretrainParams.read(path).schedule()["nesterov"]
    path.write_text(path.read_text(encoding="utf-8").replace("momentum: 0.9", "momentum: 0.0"), encoding="utf-8")
    assert refusal(path).startswith("pretrain: nesterov: expected false with momentum: 0, which it needs; raise mom")
