"""The stages one by one, on tiny data, without DVC."""

import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image
from scipy.stats import t as student

from mela import FewShotClassifier
from mela.blocks import Block
from mela.errors import MelaError
from mela.evaluation import accuracy as evaluation
from mela.evaluation.heads import fit_head
from mela.evaluation.temperature_files import Temperatures, read_temperatures
from mela.io import schemas, store
from mela.models.files import is_trained
from mela.params import BLOCKS, LABELS, PARAMS, RuntimeParams
from mela.reporting.summary import NAMES
from stages.common import paths
from tests.helpers.commands import mela
from tests.helpers.pipeline import listed
from tests.helpers.project import ROOT, STAGE_NAMES, change, run_stages

# what the preset compares, of which all models are
TRAINED = ("merged", "pruned", "oracle")
MODELS = [paths.INITIAL, *(paths.MODELS / f"{name}.safetensors" for name in LABELS)]


def metrics(stage: str, name: str = "metrics") -> dict[str, Any]:
    return json.loads(Path(f"results/{stage}/{name}.json").read_text(encoding="utf-8"))


def read(path: Path | str, schema: pa.Schema) -> pd.DataFrame:
    return store.read_table(Path(path), schema)


def alone(*arguments: str) -> None:
    """Run Python in an environment that has nothing else, and require that it ends well."""
    environment = {"PYTHONPATH": str(ROOT), "PATH": "", "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, *arguments], env=environment, check=True)


@pytest.mark.slow
def test_the_batched_meta_test_needs_no_scikit_learn(copied: Path) -> None:
    """Importing it takes longer than all heads together."""
    code = "import sys, stages.evaluate as stage\nstage.main()\nassert 'sklearn' not in sys.modules"
    alone("-c", code)


def test_metrics_have_the_promised_keys(copied: Path) -> None:
    label = {"clusters", "tasks_clustered", "pair_precision", "pair_precision_error"}
    counts = {"task_classes_merged", "task_classes_not_merged", "task_classes_left_out"}
    further = {"largest_weight", "certainty", "tasks_of_one_class"}
    for name, of_merging in {"merged": {"consistency", "expected_ari"}, "pruned": set()}.items():
        found = metrics("label", name)
        assert set(found) - {"remark"} == label | counts | further | of_merging
        assert sum(found[count] for count in counts) == 400
    scores = metrics("score_labels")
    of_images = {"clusters", "true_classes", "purity", "ari", "nmi"}
    of_tasks = of_images | {"accuracy", "accuracy_all_tasks", "tasks_clustered"}
    assert {name: set(found) for name, found in scores.items()} == {
        "merged": of_tasks,
        "pruned": of_tasks,
        "kmeans": of_images,
    }
    assert {found["true_classes"] for found in scores.values()} == {80}
    for name in ("merged", "pruned"):
        for key in ("clusters", "tasks_clustered"):
            assert metrics("label", name)[key] == scores[name][key], "one number, wherever it is read"
    for name in TRAINED:
        trained = metrics("pretrain", name)
        assert set(trained) == {"loss", "precision", "proposition1"}
        assert trained["proposition1"]["task_loss"] <= trained["proposition1"]["global_loss"]
    evaluation = metrics("evaluate")
    assert set(evaluation) == {"tasks", "accuracy", "gain", "to_oracle", "validation", "calibration"}
    assert evaluation["tasks"]["5_shot"] == 12
    models = {"accuracy": {"initial", *TRAINED}, "gain": {*TRAINED}, "to_oracle": {*TRAINED} - {"oracle"}}
    for key, names in models.items():
        for by_model in (evaluation[key], evaluation["validation"][key]):
            assert set(by_model) == names
            for results in by_model.values():
                assert set(results) == {"1_shot", "5_shot", "1_shot_2x", "5_shot_2x"}
                assert all(set(interval) == {"mean", "ci95"} for interval in results.values())


@pytest.mark.parametrize("split", ["test", "val"])
def test_accuracies_are_those_of_the_tasks_and_differences_are_paired(copied: Path, split: str) -> None:
    """Recomputed from the accuracy of each task."""
    per_task = read(paths.PER_TASK, schemas.ACCURACIES)
    rows = per_task[per_task["split"] == split]
    found = metrics("evaluate") if split == "test" else metrics("evaluate")["validation"]
    compared = 0
    for setting, n_tasks in found["tasks"].items():
        of_setting = rows[rows["setting"] == setting]
        wide = {name: of_model.set_index("task_id")["accuracy"] for name, of_model in of_setting.groupby("model")}
        assert set(wide) == {"initial", *TRAINED}
        for key, reference in {"accuracy": None, "gain": "initial", "to_oracle": "oracle"}.items():
            for name, results in found[key].items():
                # pandas pairs tasks by their numbers
                values = wide[name] if reference is None else wide[name] - wide[reference]
                assert len(values) == n_tasks == {"test": 12, "val": 4}[split]
                half = student.ppf(0.975, n_tasks - 1) * values.std(ddof=1) / np.sqrt(n_tasks)
                expected = {"mean": values.mean(), "ci95": half}
                assert results[setting] == pytest.approx(expected, rel=1e-9, abs=1e-9), (key, name)
                compared += 1
    assert compared == 4 * (4 + 3 + 2)


def test_probabilities_are_calibrated_on_validation_tasks_alone(copied: Path) -> None:
    found = metrics("evaluate")
    for values in (found["calibration"][name] for name in ("initial", *TRAINED)):
        assert set(values) == {"1_shot", "5_shot"}
        assert all(value["temperature"] > 0 for value in values.values())
    for name in ("initial", *TRAINED):
        assert metrics("")[name]["5_shot"]["ece"] == found["calibration"][name]["5_shot"]["ece"]
    before = paths.TEMPERATURES.read_bytes()
    tasks = pd.read_parquet(paths.TEST)
    # other test tasks judge the same temperatures
    others = tasks[tasks["task_id"] < tasks["task_id"].max()]
    store.write_table(paths.TEST, others, schemas.MANIFEST, stage="manifest", params={})
    run_stages("evaluate")
    assert paths.TEMPERATURES.read_bytes() == before
    assert metrics("evaluate")["calibration"] != found["calibration"]


def test_a_calibrated_model_predicts_the_same_with_other_probabilities(copied: Path) -> None:
    images, tasks = store.open_images(paths.IMAGES), pd.read_parquet(paths.TEST)
    task = tasks[tasks["task_id"] == tasks["task_id"].min()]
    support, query = (task[task["role"] == role] for role in ("support", "query"))

    def fitted() -> FewShotClassifier:
        return FewShotClassifier.load(paths.MERGED, "cpu").fit(images[support["image_id"]], support["local_label"])

    calibrated = fitted()
    temperature = metrics("evaluate")["calibration"]["merged"]["5_shot"]["temperature"]
    assert calibrated.temperature_ == temperature != 1
    paths.TEMPERATURES.unlink()
    plain = fitted()
    assert plain.temperature_ == 1
    queries = images[query["image_id"]]
    np.testing.assert_array_equal(calibrated.predict(queries), plain.predict(queries))
    powers = plain.predict_proba(queries) ** (1 / temperature)
    expected = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(calibrated.predict_proba(queries), expected, rtol=1e-6)


@pytest.mark.slow
def test_without_validation_tasks_there_are_no_temperatures(copied: Path) -> None:
    change(PARAMS, {"tasks.val": 0})
    run_stages("manifest", "evaluate", "report")
    found = metrics("evaluate")["calibration"]["merged"]["5_shot"]
    assert found["temperature"] is None
    assert found["ece"] == found["ece_before"] > 0
    assert "ece" not in metrics("")["merged"]["5_shot"]
    assert read_temperatures(paths.MERGED) == Temperatures(C=1.0, temperatures={})


def test_report_shows_the_run(copied: Path) -> None:
    summary = Path("results/report/summary.md").read_text(encoding="utf-8")
    for row in ("labels learned | accuracy, % | over initial", "tasks clustered, %", "5-shot | MeLa, merged |"):
        assert row in summary
    assert [name for name in NAMES if f"| {NAMES[name]} |" in summary] == ["initial", *TRAINED[:2], "kmeans", "oracle"]
    for name in ("accuracy", "merges", "passes", "curves", "sizes"):
        with Image.open(f"results/report/{name}.png") as picture:
            assert min(picture.size) > 300


def test_images_do_not_betray_their_class(copied: Path) -> None:
    """Sources list classes one after the other; the ids that stages see must not."""
    truth = read("data/truth.parquet", schemas.TRUTH).sort_values("image_id")["class"]
    same = (truth.to_numpy()[1:] == truth.to_numpy()[:-1]).mean()
    assert same < 0.05


def test_splits_share_no_image(copied: Path) -> None:
    split_of = read("data/images/index.parquet", schemas.INDEX).set_index("image_id")["split"]
    for split in ("train", "val", "test"):
        images = read(f"data/manifest/{split}.parquet", schemas.MANIFEST)["image_id"]
        assert set(split_of[images]) == {split}


@pytest.mark.slow
def test_the_same_again_gives_the_same_bytes(copied: Path) -> None:
    folders = ("data", "models", "results")
    before = {path: path.read_bytes() for folder in folders for path in Path(folder).rglob("*.*")}
    for folder in folders:
        shutil.rmtree(folder)
    run_stages()
    changed = [path for path, content in before.items() if path.read_bytes() != content]
    assert not changed


@pytest.mark.slow
def test_no_other_stage_needs_the_truth(copied: Path) -> None:
    """Without the truth at hand, all stages that may not see it give the same as before."""
    others = [stage for stage in STAGE_NAMES if "data/truth.parquet" not in listed(stage, "deps", "outs")]
    Path("data/truth.parquet").unlink()
    Path("data/images/index.parquet").unlink()
    before = {path: path.read_bytes() for path in MODELS}
    run_stages(*others)
    assert {path: path.read_bytes() for path in MODELS} == before


@pytest.mark.slow
def test_parameters_read_are_the_ones_declared(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every stage reads what dvc.yaml lists for it and nothing else, and some stage reads every key."""
    read: dict[str, set[str]] = defaultdict(set)
    stage = ""
    plain_get: Callable[[Any, str], Any] = Block.__getattribute__
    plain_dump = Block.model_dump

    def get(self: Block, name: str) -> Any:
        if name in type(self).model_fields:
            read[stage].add(f"{type(self).block}.{name}")
        return plain_get(self, name)

    def dump(self: Block, **options: Any) -> dict[str, Any]:
        if options.get("mode") != "json":  # a note in a file's metadata is no use of a parameter
            read[stage].update(f"{self.block}.{name}" for name in type(self).model_fields)
        return plain_dump(self, **options)

    monkeypatch.setattr(Block, "model_dump", dump)
    for block in BLOCKS:  # validation has its own look at the fields, which is no use of them either
        plain_read = block.read.__func__  # type: ignore[attr-defined]

        def quiet_read(cls: type[Block], *arguments: Any, plain_read: Any = plain_read) -> Block:
            with monkeypatch.context() as patch:
                patch.setattr(Block, "__getattribute__", plain_get)
                return plain_read(cls, *arguments)

        monkeypatch.setattr(block, "read", classmethod(quiet_read))
    monkeypatch.setattr(Block, "__getattribute__", get)

    for stage in STAGE_NAMES:
        run_stages(stage)
    stage = "round"
    change(PARAMS, {"rounds.first": True, "rounds.second": True})
    run_stages("round@first", "round@second")
    change(PARAMS, {"rounds.first": False, "rounds.second": False})
    # which asks for the second only where the first is off
    stage = "label_merged"
    change(PARAMS, {"compare.merged": False})
    run_stages(stage)
    stage = "images"
    for name in ("omniglot", "cifar_fs", "fc100", "folder", "tasks"):
        change(PARAMS, {"data.name": name, "data.root": "nowhere"})
        with pytest.raises(MelaError):
            run_stages("images")

    runtime = {f"runtime.{name}" for name in RuntimeParams.model_fields}
    everything = {f"{block.block}.{name}" for block in BLOCKS for name in block.model_fields}
    # the number of processes is read before a stage's own program starts
    assert set().union(*read.values()) == everything - {"runtime.processes"}
    for name in STAGE_NAMES:
        declared = listed(name, "params")
        unknown = [k for k in read[name] - runtime if not any(k == d or k.startswith(f"{d}.") for d in declared)]
        assert not unknown, f"{name} reads what it does not declare"
        unread = [d for d in declared if not any(k == d or k.startswith(f"{d}.") for k in read[name])]
        assert not unread, f"{name} declares what it does not read"


def test_seeds_matter(copied: Path) -> None:
    before = paths.INITIAL.read_bytes()
    change(PARAMS, {"embed.seed": 1})
    run_stages("embed")
    assert paths.INITIAL.read_bytes() != before


@pytest.mark.slow
def test_the_other_solver_of_the_meta_test(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path("results/evaluate/per_task.parquet")
    found = read(path, schemas.ACCURACIES)
    change(PARAMS, {"evaluate.solver": "sklearn"})
    spy = Mock(wraps=fit_head)
    monkeypatch.setattr(evaluation, "fit_head", spy)
    run_stages("evaluate")
    assert spy.call_count == len(found)
    wanted = read(path, schemas.ACCURACIES)
    pd.testing.assert_frame_equal(wanted.drop(columns="accuracy"), found.drop(columns="accuracy"))
    # the features of this model hardly differ, and scikit-learn stops early
    assert (wanted["accuracy"] - found["accuracy"]).abs().mean() < 1


@pytest.mark.parametrize("kind", ["merged", "pruned"])
def test_soft_labels_belong_to_the_labelled_images(copied: Path, kind: str) -> None:
    labels = read(f"data/labels/{kind}.parquet", schemas.LABELS)
    soft = read(f"data/labels/{kind}_soft.parquet", schemas.SOFT_LABELS)
    sums = soft.groupby("image_id")["weight"].sum()
    assert sums.index.tolist() == labels["image_id"].tolist()
    np.testing.assert_allclose(sums, 1, rtol=1e-12)
    largest = soft.groupby("image_id")["weight"].max()
    assert metrics("label", kind)["largest_weight"] == pytest.approx(100 * largest.mean())
    of_label = labels.merge(soft, on=["image_id", "label"])["weight"]
    assert of_label.sum() > 0.9 * largest.sum(), "labels and soft labels are numbered differently"


def test_soft_labels_that_do_not_add_up(copied: Path) -> None:
    table = read(paths.MERGED_SOFT, schemas.SOFT_LABELS)
    image = int(table["image_id"].iloc[0])
    table.loc[0, "weight"] = 0.3
    kept = table[(table["image_id"] != image) | (table.index == 0)]
    store.write_table(paths.MERGED_SOFT, kept, schemas.SOFT_LABELS, stage="label", params={})
    change(PARAMS, {"compare.merged_soft": True})
    before = paths.MERGED_SOFTLY.read_bytes()
    message = rf"merged_soft\.parquet: image {image}: .* \d+: 0\.3, .* sum to 1"
    with pytest.raises(MelaError, match=message):
        run_stages("pretrain@merged_soft")
    assert paths.MERGED_SOFTLY.read_bytes() == before


@pytest.mark.slow
def test_resnet12_without_replacement(project: Path) -> None:
    network = {"model.backbone": "resnet12", "model.width": 4, "embed.tasks_per_epoch": 3, "pretrain.epochs": 1}
    # a second kind of labels would be learned as the first one is
    network |= {"pretrain.milestones": [], "compare.pruned": False, "compare.oracle": False}
    change(PARAMS, network | {"tasks.replacement": False, "tasks.train": None})
    run_stages()
    assert is_trained(paths.MERGED)
    train = read("data/manifest/train.parquet", schemas.MANIFEST)
    assert train["image_id"].is_unique
    assert train["task_id"].nunique() == 16


def draw_tasks(root: Path, *given: str) -> None:
    """Tasks of mixed ways and shots over hidden classes, whose table has the columns that are named beside three."""
    generator = np.random.default_rng(0)
    rows = []
    for task in range(30):
        ways = int(generator.integers(2, 5))
        for label, hidden in enumerate(generator.choice(6, size=ways, replace=False)):
            for drawing in range(int(generator.integers(3, 8))):
                image = generator.integers(0, 60, (20, 24), dtype=np.uint8)
                image[3 * hidden : 3 * hidden + 3] = 220
                path = Path("pictures") / f"{task}-{label}-{drawing}.png"
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(image).save(root / path)
                split = "test" if task >= 24 else "train"
                rows.append((f"annotator {task}", "abcd"[label], path.as_posix(), split, f"row {3 * hidden}"))
    columns = ["task_id", "local_label", "path", "split", "class"]
    pd.DataFrame(rows, columns=columns)[[*columns[:3], *given]].to_csv(root / "tasks.csv", index=False)


OWN: dict[str, object] = {"data.name": "tasks", "data.root": "mine", "data.table": "tasks.csv", "tasks.shots": 2}
OWN |= {"embed.tasks_per_epoch": None, "compare.pruned": False}


@pytest.mark.slow
def test_own_tasks_without_truth(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draw_tasks(project / "mine", "split")
    change(PARAMS, OWN | {"kmeans.n_clusters": 6, "evaluate.shots": [1]})
    run_stages()
    scores = metrics("score_labels")
    assert {name: set(found) for name, found in scores.items()} == {key: {"clusters"} for key in ("merged", "kmeans")}
    labels = read("data/labels/merged.parquet", schemas.LABELS)
    assert labels["label"].nunique() == scores["merged"]["clusters"] > 1
    assert set(metrics("evaluate")["accuracy"]["merged"]) >= {"1_shot", "all_shots"}
    said = capsys.readouterr().out
    assert "no ground truth" in said
    assert "no ground truth" in mela("summary").stdout
    assert "true_classes" not in metrics("")
    assert is_trained(paths.MERGED)
    # the preset has it on, which needs no truth
    assert "pretrain@oracle: not trained, since there are no such labels\n" in said
    assert not is_trained(paths.ORACLE)
    assert metrics("evaluate")["to_oracle"] == {}
    assert set(metrics("evaluate")["accuracy"]) == {"initial", "merged"}


@pytest.mark.slow
def test_own_tasks_with_truth(project: Path) -> None:
    """A column of true classes is for scores and the labels ``oracle`` alone, and says nothing of the test tasks."""
    draw_tasks(project / "mine", "class")
    change(PARAMS, OWN | {"kmeans.n_clusters": 6, "evaluate.shots": [1]})
    run_stages()
    assert metrics("")["true_classes"] == 6
    assert metrics("score_labels")["merged"]["ari"] > 0
    truth = read("data/truth.parquet", schemas.TRUTH)
    oracle = read("data/labels/oracle.parquet", schemas.LABELS).merge(truth, on="image_id")
    assert oracle.groupby("label")["class"].nunique().eq(1).all()
    assert oracle["label"].nunique() == 6
    assert is_trained(paths.ORACLE)
    assert "oracle" in metrics("evaluate")["accuracy"]
    page = Path("results/report.html").read_text(encoding="utf-8")
    assert "new tasks (their classes may occur in training)" in page
    assert "classes that no training task has" not in page


@pytest.mark.slow
# two epochs may give images the same features of 8 dimensions, and k-means a cluster to each image
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_own_tasks_that_are_all_for_training(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draw_tasks(project / "mine")
    change(PARAMS, OWN | {"data.split_fractions": [1.0, 0.0, 0.0], "kmeans.n_clusters": 5000})
    run_stages()
    assert "kmeans.n_clusters=5000 is more than there are images" in capsys.readouterr().out
    assert (metrics("evaluate")["accuracy"], metrics("evaluate")["tasks"]) == ({}, {})
    assert "not measured" in Path("results/report/summary.md").read_text(encoding="utf-8")


def test_stage_takes_paths_as_arguments(copied: Path) -> None:
    shutil.move("data/truth.parquet", "elsewhere.parquet")
    alone("-m", "stages.label_oracle", "--truth", "elsewhere.parquet", "--labels", "mine.parquet")
    assert Path("mine.parquet").read_bytes() == Path("data/labels/oracle.parquet").read_bytes()


def test_summary_prints_the_run(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    ended = mela("summary")
    assert ended.returncode == 0, ended.stderr
    rows = [
        line.strip("| ").split(" | ") for line in paths.REPORT.joinpath("summary.md").read_text("utf-8").splitlines()
    ]
    printed = [re.split(r"\s*[│┃]\s*", line.strip("│┃ ")) for line in ended.stdout.splitlines()]
    shown = [row for row in rows if row[0] not in ("", "---")]
    # two tables with their heads: of four embeddings in four settings, and of three kinds of labels
    assert len(shown) == 1 + 4 * 4 + 1 + 3
    for row in shown:
        assert [cell.strip() for cell in row] in printed
    assert ended.stdout.splitlines()[-1] == "the run on a page, with pictures: results/report.html"
    Path("results/report.html").unlink()
    assert "page" not in mela("summary").stdout, "there is none"


def test_summary_of_two_runs_at_once(copied: Path) -> None:
    found = metrics("label", "pruned")
    store.write_json(paths.PRUNED_METRICS, found | {"tasks_clustered": found["tasks_clustered"] / 2})
    ended = mela("summary")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        "error: results/metrics.json: the report is of another run than the metrics of pruned, so one table would mix "
        "them; finish the run, with `dvc repro` or `mela run`\n"
    )


def test_summary_without_a_run(tmp_path: Path) -> None:
    ended = mela("summary", "--results", tmp_path)
    message = f"{tmp_path}/label/merged.json: no such file; run `dvc repro`, or the stage that makes it, first"
    assert (ended.returncode, ended.stderr) == (1, f"error: {message}\n")
