"""The benchmark from end to end: the commands of its dvc.yaml, one after the other, on tiny tasks."""

import ast
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import typer
from PIL import Image
from ruamel.yaml import YAML
from safetensors.torch import load_file
from torch import Tensor

from benchmark import settings
from benchmark.comparison import read_heads, read_results, seeds_by_system
from benchmark.matrix import Matrix
from benchmark.places import CURVE, MODEL
from benchmark.report import systems_page
from benchmark.stages import evaluate_on_tasks as meta_test
from benchmark.stages import train_on_images as trained_on_images
from benchmark.stages import train_on_labels as trained_on_labels
from benchmark.stages import train_on_tasks as trained_on_tasks
from benchmark.systems import GROUPS
from mela.blocks import read_yaml
from mela.errors import DivergedError, MelaError
from mela.evaluation.heads import HEADS
from mela.io import schemas, store
from mela.learners.base import LabelLearner
from mela.methods import find_method
from mela.methods.moco import MoCo
from mela.params import MethodsParams
from stages import code as stage_of_code
from stages.code_hashes.hash_files import OF_BENCHMARK
from stages.code_hashes.reached_code import Code
from stages.common.checkpoints import checkpoint as stages_checkpoint
from studies.grid import program
from studies.training import trials
from studies.training.variants import VARIANTS
from tests.helpers import dvc
from tests.helpers.calls import Calls
from tests.helpers.cells import MATRIX, STAGES, filled, results, write_results
from tests.helpers.copies import ask, copy_parts, copy_project
from tests.helpers.matrix import write_matrix
from tests.helpers.project import ROOT, TINY, change

pytestmark = pytest.mark.slow

TRAINING = {"methods.epochs": 2, "methods.milestones": [1], "methods.tasks_per_epoch": 6}
TUNING = {"tuning.epochs": 1, "tuning.milestones": [], "tuning.tasks_per_epoch": 4}
MADE = ["images", "manifest", "listing", "settings", "embed", "extract", "label_kmeans", "label_oracle"]
# each of these is tested afterwards, by the stage that is named after it
TRAINED: list[tuple[str, dict[str, Any]]] = [
    ("tasks", {"method": "protonet"}),
    ("tasks", {"method": "anil"}),
    ("labels", {"method": "rfs", "labels": "merged"}),
    ("labels", {"method": "s2m2", "labels": "oracle"}),
    ("labels_pruned", {"labels": "pruned"}),
    ("distill", {"former": "rfs", "labels": "merged"}),
    ("distill", {"former": "rfs-distill", "labels": "merged"}),
    ("tuned", {"method": "finetune", "start": "merged-rfs"}),
    ("tuned", {"method": "leo", "start": "oracle-s2m2"}),
    ("unlabeled", {"method": "moco"}),
    ("unlabeled", {"method": "cmc"}),
]
CELLS = [*((stage, {}) for stage in [*MADE, "label_merged"]), ("label", {"labels": "pruned"})]
CELLS += [*(("score_inferred", {"labels": labels}) for labels in ("merged", "pruned"))]
CELLS += [*TRAINED, ("test_initial", {})]
CELLS += [(f"test_{stage.removeprefix('labels_')}", item) for stage, item in TRAINED]
# what these have called, once they have run
CALLED: list[tuple[str, dict[str, Any], set[str]]] = []
RAN = ["initial", "protonet", "anil", "merged-rfs", "oracle-s2m2", "pruned-rfs", "merged-rfs-distill"]
RAN += ["merged-rfs-distill-distill", "merged-rfs-finetune", "oracle-s2m2-leo", "moco", "cmc"]
RUNS = Path("benchmark/runs/tiny")
OF_SEED = RUNS / "seed3"
IMAGES = RUNS / "images.npy"


def run_cell(stage: str, item: dict[str, Any]) -> None:
    """What a cell's command does, in this process."""
    words = shlex.split(filled(STAGES[stage]["cmd"], {"data": "tiny", "seed": 3} | item).removeprefix("cd .. && "))
    while "=" in words[0]:
        words.pop(0)
    assert words[:2] == ["python", "-m"]
    main = import_module(words[2]).main
    options = dict(zip([word.removeprefix("--").replace("-", "_") for word in words[3::2]], words[4::2], strict=True))
    paths = {name: Path(value) for name, value in options.items() if "/" in value}
    main(**options | paths | ({"seed": int(options["seed"])} if "seed" in options else {}))


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in which some cells of the benchmark have run on tiny glyphs, as the current directory."""
    folder = tmp_path_factory.mktemp("benchmark")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        preset = Path("benchmark/data/tiny.yaml")
        preset.parent.mkdir(parents=True)
        shutil.copy(ROOT / "benchmark/data/glyphs.yaml", preset)
        shutil.copy(ROOT / "benchmark/params.yaml", "benchmark/params.yaml")
        change(preset, TINY | TRAINING | TUNING)
        for stage, item in CELLS:
            with Calls() as calls:
                run_cell(stage, item)
            CALLED.append((stage, item, calls.names()))
        yield folder


@pytest.mark.usefixtures("ran")
def test_what_cells_call_is_what_they_are_said_to_reach() -> None:
    """The files of hashes that a cell lists, of its script and its method, name all that it calls.

    A cell that goes on from a model builds the model's method as well, but where that changes the model is due before.
    """
    starts, code = OF_BENCHMARK.starts(ROOT), Code(ROOT)
    assert len(CALLED) == len(CELLS)
    for stage, item, called in CALLED:
        files = [filled(name, {"data": "tiny", "seed": 3} | item) for name in STAGES[stage]["deps"] if "/code/" in name]
        if "start" in item:
            files.append(f"runs/code/methods/{item['start'].rpartition('-')[2]}.json")
        hashed = [code.reached(*starts[name.removeprefix("runs/code/").removesuffix(".json")]) for name in files]
        reached = {part for names in hashed for name in names for part in name.split(",")}
        assert sorted(called - reached) == [], (stage, item)


def test_everything_that_was_trained_is_measured_by_every_rule(ran: Path) -> None:
    results = read_results(ran / "benchmark/results", "tiny")
    assert seeds_by_system(results) == {system: {3} for system in RAN}
    for accuracies in results.values():
        assert accuracies.shape == (1, 12)
        assert accuracies.stack().between(0, 100).all()
    assert {setting for _, setting in results} == {"1_shot", "5_shot", "1_shot_2x", "5_shot_2x"}
    assert {setting for system, setting in results if system == "protonet"} == {"1_shot", "5_shot"}, (
        "its own rule takes no copies"
    )
    heads = read_heads(ran / "benchmark/results", "tiny")
    assert sorted(heads["system"].unique()) == sorted(RAN)
    assert set(heads["head"]) == {*HEADS, "own"}
    assert set(heads["tasks"]) == {12}
    table = heads.set_index(["system", "head", "setting"])["mean"]
    assert table["merged-rfs", "own", "5_shot"] == table["merged-rfs", "logistic", "5_shot"]
    own = results["protonet", "5_shot"].to_numpy().mean()
    assert table["protonet", "own", "5_shot"] == pytest.approx(own, abs=1e-3)


def test_all_seeds_meet_the_same_tasks_and_train_with_their_own(ran: Path) -> None:
    params = OF_SEED / "params.yaml"
    document = YAML(typ="safe").load(params.read_text(encoding="utf-8"))
    seeds = {block: values["seed"] for block, values in document.items() if "seed" in values}
    for block in ("embed", "labeler", "merging", "kmeans", "pretrain", "methods", "tuning"):
        assert seeds.pop(block) == 3
    assert set(seeds.values()) == {0}
    assert MethodsParams.read(params).epochs == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("methods:", "mehtods:", "mehtods: unknown block; expected one of "),
        ("  epochs:", "  epohcs:", r"embed.epohcs: unknown key; remove it or correct its name \(and 1 more"),
        ("  rate: 0.1", "  rate: 10", "tuning.rate: input should be less than or equal to 1, got 10"),
    ],
)
def test_parameters_of_a_data_set_are_checked_where_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    preset = Path("benchmark/data/glyphs.yaml")
    preset.parent.mkdir(parents=True)
    text = (ROOT / preset).read_text(encoding="utf-8")
    assert old in text
    preset.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(MelaError, match=rf"^benchmark/data/glyphs\.yaml: {message}"):
        settings.main(data="glyphs", seed=0)
    assert not Path("benchmark/runs").exists()


def test_tables_of_what_was_measured(ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path("benchmark/results")
    lists = {"label_methods": ["rfs", "s2m2"], "tuned_methods": ["finetune", "leo"], "image_methods": ["moco", "cmc"]}
    lists |= {"inferred": ["merged", "pruned"], "pruned": ["pruned"]}
    lists |= {"distill_from": ["rfs", "rfs-distill"], "tuned_from": ["merged-rfs", "oracle-s2m2"]}
    write_matrix(Path("benchmark"), task_methods=["protonet", "maml", "anil"], **lists)
    for system in ("protonet", "maml"):
        (folder / f"tiny/seed3/{system}.json").write_text(json.dumps({"seconds": 12.3, "memory_bytes": 5}))
    systems_page.main(page=Path("systems.md"))
    overview, page = (Path(name).read_text(encoding="utf-8") for name in ("systems.md", "systems/tiny.md"))
    summary, heads, scores = (pd.read_csv(f"systems/{name}.csv") for name in ("accuracies", "heads", "labels"))
    order = Matrix.read(Path("benchmark/params.yaml")).systems
    assert list(summary["system"].unique()) == sorted(RAN, key=order.index)
    one = summary[(summary["system"] == "protonet") & (summary["setting"] == "5_shot")].iloc[0]
    (line,) = (line for line in page.splitlines() if line.startswith("| ProtoNet |"))
    assert f"{one['mean']:.1f}±{one['ci95']:.1f} |" in line
    assert f"{one['difference']:+.1f}±{one['difference_ci95']:.1f} |" in line
    assert line.endswith("| 12 |"), "seconds"
    assert (one["seeds"], one["tasks"], one["seconds"]) == (1, 12, 12.3)
    assert f"{len(RAN)} of {len(order)} systems" in " ".join(page.split())
    assert "| MAML |" not in page, "it is not measured"
    assert "| K-means" not in page, "the matrix has no such labels"
    assert page.index(f"**{GROUPS['tasks']}**") < page.index("| ProtoNet") < page.index(f"**{GROUPS['oracle']}**")
    assert {*heads["system"]} == {*RAN}
    assert [*heads.columns[3:]] == [*HEADS]
    assert [*scores["labels"]] == ["merged", "pruned", "kmeans"]
    assert (scores["seed"] == 3).all()
    assert scores["true_classes"].tolist()[:2] == [80, 80]
    assert re.search(r"\| tiny \| K-means labels \|  \|  \|  \| \d+\.\d\d% \|", overview)
    mela = summary[summary["system"] == "merged-rfs"]
    assert (mela["difference"] == 0).all()


@pytest.mark.parametrize(
    ("script", "given"),
    [
        (trained_on_tasks, {"method": "protonet", "train": RUNS / "train.parquet"}),
        (trained_on_labels, {"method": "rfs", "labels": OF_SEED / "labels/merged.parquet"}),
        (trained_on_images, {"method": "moco", "listing": RUNS / "listing.parquet"}),
    ],
)
def test_trainings_are_not_shared_by_processes(ran: Path, script: ModuleType, given: dict[str, Any]) -> None:
    params = Path(shutil.copy(OF_SEED / "params.yaml", "shared.yaml"))
    change(params, {"runtime.processes": 2})
    with pytest.raises(MelaError, match=r"^runtime.processes: expected 1 in the benchmark, got 2; run cells"):
        script.main(**given, images=IMAGES, params=params, out=Path("never"))
    assert not Path("never").exists()


def test_errors_name_the_rate_of_the_method(ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MoCo, "learning_rate", 1e30)
    given = {"listing": RUNS / "listing.parquet", "params": OF_SEED / "params.yaml"}
    with pytest.raises(DivergedError, match=r"lower learning_rate of MoCo \(now 1e\+30\)$"):
        trained_on_images.main(method="moco", images=IMAGES, out=Path("never"), **given)


def test_methods_on_labels_learn_smoothed_labels_and_rotated_classes(ran: Path) -> None:
    found = {}
    for name, changes in {
        "plain": {},
        "rotated": {"rotated_classes": True},
        "smoothed": {"label_smoothing": 0.5},
    }.items():
        params, out = Path(shutil.copy(OF_SEED / "params.yaml", f"{name}.yaml")), Path(name)
        change(params, {f"pretrain.{key}": value for key, value in changes.items()})
        given = {"images": IMAGES, "labels": OF_SEED / "labels/merged.parquet", "params": params, "out": out}
        trained_on_labels.main(method="rfs", **given)
        loss = pd.read_csv(out / CURVE)["loss"].iloc[-1]
        found[name] = len(load_file(out / MODEL)["classifier.weight"]), loss
    count, loss = found["plain"]
    assert found["rotated"][0] == 4 * count
    assert found["smoothed"][0] == count
    assert found["smoothed"][1] > loss


def test_a_data_set_may_have_a_learning_rate_of_its_own(ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of the named method alone, and of its training from nothing alone."""
    params = Path("rated.yaml")
    shutil.copy(OF_SEED / "params.yaml", params)
    given = {"images": IMAGES, "train": RUNS / "train.parquet", "params": params}
    kept: list[list[Any]] = []

    def checkpoint(name: str, blocks: list[Any], *more: Any) -> Any:
        kept.append(blocks)
        return stages_checkpoint(name, blocks, *more)

    monkeypatch.setattr("benchmark.stages.method_training.checkpoint", checkpoint)

    def train(method: str, out: str, start: str | None = None) -> tuple[bytes, list[float]]:
        trained_on_tasks.main(method, out=Path(out), start=OF_SEED / start / MODEL if start else None, **given)
        return (Path(out) / MODEL).read_bytes(), pd.read_csv(Path(out) / CURVE)["learning_rate"].tolist()

    before = (OF_SEED / "protonet" / MODEL).read_bytes()
    own = read_yaml(params)["rates"]["protonet"]
    change(params, {"rates.anil": 0.0007, "rates.finetune": 0.0007})
    assert train("protonet", "same") == (before, [own, pytest.approx(own / 10)])
    started = (OF_SEED / "merged-rfs-finetune" / MODEL).read_bytes()
    assert train("finetune", "tuned", "merged-rfs")[0] == started, "it keeps the rate that it has anywhere"
    for rate, used in ((0.0007, 0.0007), (None, 0.003)):
        change(params, {"rates.protonet": rate})
        model, rates = train("protonet", f"rated {used}")
        assert model != before
        assert rates == [used, pytest.approx(used / 10)], "without one it is that of the method"
    told = [{"protonet": own}, {}, {"protonet": 0.0007}, {"protonet": None}]
    assert [blocks[-1].by_name for blocks in kept] == told, (
        "a training that was interrupted does not go on at another rate"
    )
    change(params, {"rates.protonet": 1e30})
    with pytest.raises(DivergedError, match=r"lower rates.protonet \(now 1e\+30\)$"):
        train("protonet", "never")


@pytest.fixture
def no_test_tasks(ran: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nobody can read the test tasks, and studies go on from the embeddings that are there."""
    monkeypatch.setattr(trials, "START_SEED", 3)
    aside = (RUNS / "test.parquet").rename("aside.parquet")
    yield
    aside.rename(RUNS / "test.parquet")


def study(name: str, out: Path | None = None, **options: Any) -> pd.DataFrame:
    """The table of a study of trainings, once it has run on the tiny data."""
    out = out or Path(f"{name}.csv")
    program(f"training.{name}")(data=["tiny"], out=out, **options)
    return pd.read_csv(out)


@pytest.mark.usefixtures("no_test_tasks")
def test_rates_and_scales_are_measured_on_validation_tasks_alone(capsys: pytest.CaptureFixture[str]) -> None:
    out = Path("rates.csv")
    rates_of = partial(program("training.method_rates"), data=["tiny"], rate=["adam:0.003"])
    some = ["sgd:0.01", "sgd:1e30", "adam:0.003"]
    rates_of(method=["protonet"], rate=some, out=out)
    rates_of(method=["protonet"], rate=["adam:0.001"], out=out)
    rates_of(method=["leo"], start=["merged-rfs"], longer=[2.0], out=out)
    rates_of(method=["metaoptnet_ridge", "feat"], scale=["0.5", "20"], out=out)
    for name in ("metaoptnet_svm", "r2d2", "frn"):
        rates_of(method=[name], scale=["1"], regularizer=["0.001", "1000"], out=out)
    rates_of(method=["frn"], scale=["1", "20"], out=out)
    for asked in (["logistic"], ["finetune"]):
        rates_of(method=asked, start=["merged-rfs"], longer=[0.0], out=out)
        rates_of(method=asked, start=["oracle-s2m2"], longer=[0.0], out=out)
    table = pd.read_csv(out)
    how = ["data", "method", "start", "longer", "optimizer", "rate", "scale", "regularizer"]
    assert table.columns[: len(how)].tolist() == how
    leo = table[table["method"] == "leo"].iloc[0, 1:7]
    assert leo.tolist() == ["leo", "merged-rfs", 2, "adam", 0.003, "nothing"]
    rates = table.loc[table["method"] == "protonet", ["optimizer", "rate"]].to_numpy().tolist()
    assert rates == [["adam", 0.001], ["adam", 0.003], ["sgd", 0.01], ["sgd", 1e30]]
    ridge = table[table["method"] == "metaoptnet_ridge"]
    assert ridge["scale"].tolist() == ["0.5", "20"]
    assert len(ridge[["1_shot", "5_shot"]].drop_duplicates()) == 2, "a scale is one to train with, not a name"
    assert set(ridge["regularizer"]) == {"50"}
    for name in ("metaoptnet_svm", "r2d2", "frn"):
        head = table[(table["method"] == name) & table["regularizer"].isin(["0.001", "1000"])]
        assert head["scale"].tolist() == ["1", "1"]
        assert len(head[["1_shot", "5_shot"]].drop_duplicates()) == 2, "nor is a regularizer"
    maps = table[(table["method"] == "frn") & (table["regularizer"] == "1")]
    assert maps["scale"].tolist() == ["1", "20"], "with its own regularizer, where none is asked for"
    assert len(maps[["1_shot", "5_shot"]].drop_duplicates()) == 2
    feat = table.loc[table["method"] == "feat", ["scale", "regularizer"]]
    assert feat.to_numpy().tolist() == [["nothing", "nothing"]], "it has none to try"
    untrained = table[table["longer"] == 0]
    assert untrained[["method", "start"]].to_numpy().tolist() == [
        [method, start] for method in ("finetune", "logistic") for start in ("merged-rfs", "oracle-s2m2")
    ]
    assert len(untrained[["1_shot", "5_shot"]].drop_duplicates()) == 4, "by a rule and an embedding of each"
    converged = table["5_shot"].notna()
    assert converged.sum() == len(table) - 1
    assert table.loc[~converged, "rate"].tolist() == [1e30], "it does not converge, and says so"
    assert "finite" in capsys.readouterr().out
    written = out.stat().st_mtime_ns
    rates_of(method=["protonet"], rate=some, out=out)
    assert out.stat().st_mtime_ns == written, "nothing is measured again"
    numbers = Path("numbers.csv")
    table[table["method"] == "metaoptnet_ridge"].to_csv(numbers, index=False)
    written = numbers.stat().st_mtime_ns
    rates_of(method=["metaoptnet_ridge"], scale=["0.5", "20"], out=numbers)
    assert numbers.stat().st_mtime_ns == written, "nor where all scales look like numbers"


@pytest.mark.usefixtures("no_test_tasks")
def test_rates_of_the_initial_embedding_are_measured_on_validation_tasks_alone() -> None:
    table = study("embed_rates", rate=["adam:0.003", "sgd:1e30"], ridge=[0.001, 50.0]).astype({"ridge": str})
    assert table.columns.tolist() == ["data", "base_learner", "optimizer", "rate", "ridge", "1_shot", "5_shot"]
    cells = [("ridge", "0.001"), ("ridge", "50"), ("task_heads", "-")]
    table = table.sort_values(["rate", "base_learner", "ridge"])
    assert [*table[["base_learner", "ridge"]].itertuples(index=False, name=None)] == cells * 2
    known, others = table["5_shot"][:3], table["5_shot"][3:]
    assert known.between(20, 100).all()
    assert known.nunique() == 3, "lambda_1 and the base learner are some to train with, not names"
    assert np.isnan(others).all(), "what does not converge says so"


@pytest.mark.usefixtures("no_test_tasks")
def test_longer_trainings_are_measured_on_validation_tasks_alone() -> None:
    table = study("label_lengths", method=["rfs", "mixup"], longer=[0.5, 2.0])
    assert table.columns.tolist() == ["data", "labels", "method", "longer", "1_shot", "5_shot", "training"]
    assert table[["method", "longer"]].to_numpy().tolist() == [["mixup", 0.5], ["mixup", 2], ["rfs", 0.5], ["rfs", 2]]
    assert table[["1_shot", "5_shot"]].stack().between(20, 100).all()
    short, long = table.loc[table["method"] == "rfs", "training"]
    assert short < long <= 100, "it is the length that differs"
    written = Path("label_lengths.csv").stat().st_mtime_ns
    study("label_lengths", method=["rfs"], longer=[0.5, 2.0])
    assert Path("label_lengths.csv").stat().st_mtime_ns == written, "nothing is measured again"


@pytest.mark.usefixtures("no_test_tasks")
def test_students_with_another_seed_are_measured_on_validation_tasks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[tuple[str, Tensor]] = []
    train = trials.train_on_labels

    def noted(learner: LabelLearner, *given: Any, **how: Any) -> Any:
        starts.append((type(learner).__name__, next(learner.parameters()).detach().clone()))
        return train(learner, *given, **how)

    monkeypatch.setattr(trials, "train_on_labels", noted)
    table = study("distill_seeds", seeds=2)
    assert table.columns.tolist() == ["data", "labels", "seed", "student", "1_shot", "5_shot"]
    assert table["student"].tolist() == ["other", "same", "teacher"] * 2
    assert table["seed"].tolist() == [0, 0, 0, 1, 1, 1]
    assert table[["1_shot", "5_shot"]].stack().between(20, 100).all()
    assert len(table["5_shot"].unique()) > 2
    trained = ["LabelLearner", "DistillLearner", "DistillLearner"]
    assert [name for name, _ in starts] == trained * 2, "one teacher for both"
    for teacher, same, other in (starts[:3], starts[3:]):
        assert torch.equal(teacher[1], same[1])
        assert not torch.equal(teacher[1], other[1])
    assert not torch.equal(starts[0][1], starts[3][1])


@pytest.mark.usefixtures("no_test_tasks")
def test_variants_are_measured_on_validation_tasks_alone() -> None:
    table = study("variants")
    assert table.columns.tolist() == ["data", "variant", "1_shot", "5_shot"]
    assert table["variant"].tolist() == sorted(VARIANTS)
    assert table[["1_shot", "5_shot"]].stack().between(20, 100).all()
    found = table.set_index("variant")[["1_shot", "5_shot"]]
    for name in ("anil", "metaoptnet_svm"):
        rate = f"adam:{find_method(name).learner.learning_rate}"
        rates = study("method_rates", method=[name], rate=[rate], out=Path("rates_of_methods.csv"))
    own = rates.set_index("method")[["1_shot", "5_shot"]]
    pd.testing.assert_frame_equal(found.loc[own.index], own, check_names=False, check_dtype=False)
    assert len(found.drop_duplicates()) == len(found)
    with pytest.raises(typer.BadParameter, match=r"--variant: expected metaoptnet_svm or .*, got 'anill'"):
        study("variants", variant=["anill"])


def test_the_tables_are_those_of_the_results() -> None:
    """What is in the repository: the page and its charts are made from the accuracies that lie beside it."""
    page = ROOT / "docs/results/systems.md"
    made = systems_page.written(MATRIX, ROOT / "benchmark/results", page)
    folder = page.with_suffix("")
    assert {page, *folder.iterdir()} == {*made.pages, *made.tables, *made.charts}
    for path, text in made.pages.items():
        assert text == path.read_text(encoding="utf-8"), f"run `make tables`: {path}"
    for path, rows in made.tables.items():
        pd.testing.assert_frame_equal(pd.read_csv(path), rows, check_dtype=False, check_names=False)
    for path, (_, rows) in made.charts.items():
        with Image.open(path) as picture:
            assert picture.info["Description"] == systems_page.fingerprint(rows), f"run `make tables`: {path}"
    sections = re.findall(r"^## .*?(?=^## |\Z)", made.pages[page], flags=re.MULTILINE | re.DOTALL)
    assert sum(section.count("\n| ") >= 8 for section in sections) == 4


def test_marks_are_those_of_what_is_due(tmp_path: Path) -> None:
    """What is in the repository, in a copy without models, as Git has it."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    for name in filter(None, names):
        if (ROOT / name).is_file() and not name.startswith(("docs/", "tests/")):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    ask("git", "init", "--quiet", where=tmp_path)
    ask("python", "-m", "benchmark.due", "--mark", where=tmp_path)
    made, kept = (folder / "benchmark/results/outdated.csv" for folder in (tmp_path, ROOT))
    assert made.read_text(encoding="utf-8") == kept.read_text(encoding="utf-8"), "run `make tables`"


def test_tables_of_uneven_measurements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other shots for one system, fewer tasks for more shots, and no MeLa to compare with."""
    monkeypatch.chdir(tmp_path)

    for system, tasks in {
        "initial": {"1_shot": 1200, "3_shot": 3},
        "protonet": {"1_shot": 1200},
        "frn": {"2_shot": 5},
    }.items():
        rows = pd.concat(results({system: [[50.0] * n]}).assign(setting=name) for name, n in tasks.items())
        write_results(Path(f"benchmark/results/odd/seed0/{system}.parquet"), rows)
    write_matrix(Path("benchmark"), data=["odd"], labels=["merged"])
    systems_page.main(page=Path("systems.md"))
    page = Path("systems/odd.md").read_text(encoding="utf-8")
    assert "on 3 to 1,200 test tasks" in page
    assert [line for line in page.splitlines() if line.startswith("| ")] == [
        "|  | 1-shot | 3-shot | 1-shot - MeLa | 3-shot - MeLa | seconds |",
        f"| **{GROUPS['tasks']}** | | | | | |",
        "| initial embedding | 50.0±0.0 | 50.0±0.0 |  |  |  |",
        "| ProtoNet | 50.0±0.0 | - |  |  |  |",
    ]
    assert pd.read_csv("systems/accuracies.csv")["tasks"].tolist() == [1200, 1200, 3]


def test_few_test_tasks(ran: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A setting that one task allows has no interval, and is left out; fewer than two tasks are an error."""
    rows = store.read_table(RUNS / "test.parquet", schemas.MANIFEST)
    params = shutil.copy(OF_SEED / "params.yaml", tmp_path / "params.yaml")
    own_file, heads_file = tmp_path / "own.parquet", tmp_path / "heads.csv"
    given = {"images": IMAGES, "train": RUNS / "train.parquet", "params": params, "model": OF_SEED / "protonet" / MODEL}
    first, second = rows["task_id"].unique()[:2]
    support = rows["role"] == "support"
    nth = rows[support].groupby(["task_id", "local_label"]).cumcount().reindex(rows.index, fill_value=0)

    def measure(chosen: pd.DataFrame) -> set[str]:
        store.write_table(tmp_path / "test.parquet", chosen, schemas.MANIFEST, stage="test", params={})
        meta_test.main(**given, test=tmp_path / "test.parquet", out=own_file, heads=heads_file)
        heads, own = store.read_csv(heads_file, schemas.HEADS), store.read_table(own_file, schemas.RESULTS)
        assert set(own["setting"]) == {name for name in heads["setting"] if not name.endswith("x")}
        return set(own["setting"])

    both = rows[rows["task_id"].isin([first, second])]
    assert measure(both) == {"1_shot", "5_shot"}
    capsys.readouterr()
    assert measure(both[(both["task_id"] == first) | (nth[both.index] == 0)]) == {"1_shot"}
    assert "meta_test: 5_shot is left out, since a single test task allows it" in capsys.readouterr().out
    own_file.unlink()
    with pytest.raises(MelaError, match=r"test.parquet: expected two test tasks or more, .* got 1; add some"):
        measure(rows[rows["task_id"] == first])
    change(params, {"evaluate.shots": [6]})
    with pytest.raises(MelaError, match=r"^evaluate.shots: expected what two test tasks allow, got 6, .* lower it"):
        measure(both)
    assert not own_file.exists()


def test_dvc_runs_a_cell_and_only_once(tmp_path: Path) -> None:
    """A project in the project: the pipeline does not know the benchmark, which finds the code beside it."""
    folder = tmp_path / "project"
    copy_project(folder)
    write_matrix(folder / "benchmark", data=["glyphs"])
    change(folder / "benchmark/data/glyphs.yaml", TINY | TRAINING | TUNING)
    cell = ["dvc", "--cd", "benchmark", "repro", "test_tasks@protonet-glyphs-0"]
    first = ask(*cell, where=folder)
    assert "Running stage 'tasks@protonet-glyphs-0'" in first
    assert (folder / "benchmark/results/glyphs/seed0/protonet.parquet").is_file()
    seconds = json.loads((folder / "benchmark/results/glyphs/seed0/protonet.json").read_text())["seconds"]
    assert seconds > 0
    assert dvc.ran(ask(*cell, where=folder)) == ["code"]
    (folder / "mela/methods/frn.py").write_text("METHOD = 'another method has changed'\n")
    assert dvc.ran(ask(*cell, where=folder)) == ["code"]
    assert "benchmark" not in ask("dvc", "stage", "list", where=folder)
    known = ask("git", "status", "--short", "--ignored=no", "--untracked-files=all", where=folder).splitlines()
    assert not [line for line in known if "runs/" in line]


def test_the_code_of_each_script_and_method_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_parts(tmp_path, "mela", "stages", "benchmark", without=("results", ".dvc"))
    monkeypatch.chdir(tmp_path)
    folder = Path("benchmark/runs/code")

    def written() -> dict[str, bytes]:
        stage_of_code.main(benchmark=True)
        return {path.relative_to(folder).with_suffix("").as_posix(): path.read_bytes() for path in folder.rglob("*.*")}

    before = written()
    for name in ("ridge", "mixing"):
        path = Path(f"mela/learners/{name}.py")
        tree = ast.parse(path.read_text())
        for statement in tree.body:
            if isinstance(statement, ast.FunctionDef):
                statement.body.append(ast.Pass())
        path.write_text(ast.unparse(tree))
    Path("mela/errors.py").write_text(Path("mela/errors.py").read_text() + "# a comment\n")
    Path("mela/methods/leo.py").unlink()
    after = written()
    assert set(before) - set(after) == {"methods/leo"}
    of_ridge = {"embed", "methods/r2d2", "methods/metaoptnet_ridge"}
    of_mixing = {"methods/mixup", "methods/s2m2"}
    changed = {name for name in after if before[name] != after[name]}
    assert changed >= of_ridge | of_mixing
    assert not changed & {"train_on_tasks", "train_on_labels", "methods/maml", "label"}


def test_no_cell_of_another_schema(tmp_path: Path) -> None:
    path = tmp_path / "glyphs/seed0/initial.parquet"
    rows = pd.DataFrame({"image_id": [1], "label": [2]})
    store.write_table(path, rows, schemas.LABELS, stage="test", params={})
    with pytest.raises(MelaError, match=r"initial.parquet: expected columns \(task_id: int64, setting"):
        read_results(tmp_path, "glyphs")
