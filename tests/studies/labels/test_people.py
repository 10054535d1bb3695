"""The study of images by people: what it changes in the presets, and which rows it makes of a run."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mela.errors import MelaError
from mela.io import schemas, store
from mela.io.feature_tables import write_features
from mela.io.look_files import write_looks
from mela.io.name_tables import TASK_SOURCES
from mela.params import PARAMS, ROUNDS, DataParams, EmbedParams, PretrainParams, check_document
from stages.common import paths
from stages.common.round_files import round_files
from studies import grid
from studies.labels import expected, people, rivals, sources
from tests.helpers.project import ROOT, change

RUN = ROOT / "results/metrics.json"
RAW = Path("raw/cifar100")
CELLS: list[tuple[str, float | None]] = [("fc100_people", None)]
CELLS += [(data, 0.25) for data in ("glyphs_people", "omniglot_people", "cifar_fs_people", "flowers_people")]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[Path, DataParams]:
    """The folders in which runs are started; each ends at once, with the results of the project's own run."""
    folders: dict[Path, DataParams] = {}

    def run(command: list[str], *, cwd: Path, env: dict[str, str], check: bool) -> None:
        assert command == [sys.executable, "-m", "mela", "run"]
        assert check
        path = cwd / "params.yaml"
        check_document(path)
        folders[cwd] = DataParams.read(path)
        assert folders[cwd].seed == EmbedParams.read(path).seed == PretrainParams.read(path).seed == 2
        assert (cwd / "stages/pretrain.py").is_file()
        (cwd / "results").mkdir()
        shutil.copy(RUN, cwd / "results")

    monkeypatch.setattr("subprocess.run", run)
    # such a run has trained in no rounds
    monkeypatch.setattr(people, "rows_of_rounds", lambda folder: [])
    monkeypatch.setattr(people, "row_of_task_classes", lambda folder: [])
    return folders


@pytest.mark.parametrize(("data", "share"), CELLS)
def test_a_row_for_each_kind_of_labels(asked: dict[Path, DataParams], tmp_path: Path, data: str, share: Any) -> None:
    rows = people.measure(data=data, share=share, seed=2, folder=tmp_path, root=RAW)
    assert [row["labels"] for row in rows] == list(people.LABELS)
    run = json.loads(RUN.read_text(encoding="utf-8"))
    for row in rows:
        own = run[row["labels"]]
        assert row["1_shot"] == own["1_shot"]["mean"]
        assert row["5_shot_ci95"] == own["5_shot"]["ci95"]
        assert row["5_shot_to_oracle"] == own["5_shot"].get("to_oracle")
        assert row["ari"] == own.get("ari")
    assert not any(folder.exists() for folder in asked), "the images of a run take much room"
    assert (ROOT / "mela/params.py").is_file(), "the project is linked, and not what is deleted"


@pytest.mark.parametrize(("data", "share"), CELLS)
def test_nothing_but_share_seed_and_root_differs_from_the_preset(
    asked: dict[Path, DataParams], tmp_path: Path, data: str, share: Any
) -> None:
    people.measure(data=data, share=share, seed=2, folder=tmp_path, root=RAW)
    preset = DataParams.read(ROOT / f"presets/{data}.yaml")
    own = people.people_of(data).model_copy(update={"share": share})
    expected = preset.model_copy(update={"people": own, "seed": 2, "root": str(RAW.resolve())})
    assert [*asked.values()] == [expected]


def test_what_an_interrupted_run_has_left_is_in_nobodys_way(asked: dict[Path, DataParams], tmp_path: Path) -> None:
    left = tmp_path / "fc100_people_none_2"
    left.mkdir()
    (left / "mela").symlink_to(ROOT / "mela")
    (left / "params.yaml").write_text("rubbish", encoding="utf-8")
    rows = people.measure(data="fc100_people", share=None, seed=2, folder=tmp_path, root=RAW)
    assert len(rows) == len(people.LABELS)
    assert [*asked] == [left]


def test_people_without_a_look_are_measured_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cells: list[tuple[str, float | None]] = []

    def measure(*, data: str, share: float | None, **_: Any) -> list[dict[str, Any]]:
        cells.append((data, share))
        return [{"labels": "merged", "ari": 0.5}]

    monkeypatch.setattr(people, "measure", measure)
    program, out = grid.program("labels.people"), tmp_path / "people.csv"
    for _ in range(2):
        program(data=["fc100_people", "glyphs_people"], share=[0.0, 1.0], seeds=1, out=out)
    assert cells == [("fc100_people", None), ("glyphs_people", 0.0), ("glyphs_people", 1.0)]
    rows = pd.read_csv(out, dtype=str, keep_default_na=False)
    assert rows["share"].to_list() == ["", "0", "1"]


def write_run(folder: Path) -> None:
    """Write what a run of glyphs by people leaves: features of two rounds. Those of the first are hardly of use."""
    rng = np.random.default_rng(0)
    classes = np.concatenate([rng.permutation(6)[:3] for _ in range(40)]).repeat(5)
    images = np.arange(600)
    roles = np.where(images % 5 < 2, "support", "query")
    rows = {"task_id": images // 15, "image_id": images, "local_label": images % 15 // 5, "role": roles}
    store.write_table(folder / paths.TRAIN, pd.DataFrame(rows), schemas.MANIFEST, stage="manifest", params={})
    truth = pd.DataFrame({"image_id": images, "class": classes.astype(str)})
    store.write_table(folder / paths.TRUTH, truth, schemas.TRUTH, stage="images", params={})
    store.write_table(
        folder / paths.TASK_SOURCES, pd.DataFrame(columns=TASK_SOURCES.names), TASK_SOURCES, stage="names", params={}
    )
    for number, spread in (("first", 0.3), ("second", 4.0)):
        centers = np.random.default_rng(1).normal(size=(6, 8)) * spread
        vectors = (centers[classes] + rng.normal(size=(600, 8))).astype(np.float32)
        files = round_files(number)
        assert files.looks is not None
        write_features(folder / files.features, [(images, vectors)], 8, stage="round", params={})
        write_looks(folder / files.looks, None)
    shutil.copy(ROOT / "presets/glyphs_people.yaml", folder / "params.yaml")


def test_labels_of_rounds_are_those_that_the_features_before_lead_to(tmp_path: Path) -> None:
    """Of the first round they are the task classes, which nobody needs to score."""
    write_run(tmp_path)
    second, third = people.rows_of_rounds(tmp_path)
    assert (second["labels"], third["labels"]) == ("second", "third")
    assert third == {"labels": "third", "true_classes": 6, "clusters": 6, "ari": 1.0}
    assert second["ari"] < 1


def test_a_run_that_is_kept_has_no_images(
    asked: dict[Path, DataParams], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def rounds(folder: Path) -> list[dict[str, Any]]:
        store.write_text(folder / paths.IMAGES, "many")
        store.write_text(folder / paths.TRUTH, "few")
        return []

    monkeypatch.setattr(people, "rows_of_rounds", rounds)
    people.measure(data="glyphs_people", share=1.0, seed=2, folder=tmp_path, root=RAW, keep=True)
    (own,) = asked
    assert own == people.run_folder(tmp_path, "glyphs_people", 1.0, 2)
    assert (own / paths.TRUTH).exists()
    assert not (own / paths.IMAGES).exists()


@pytest.mark.slow
def test_rivals_cluster_the_features_of_a_kept_run(tmp_path: Path) -> None:
    cell: dict[str, Any] = {"data": "glyphs_people", "share": 1.0, "seed": 0, "folder": tmp_path}
    with pytest.raises(MelaError, match=r"glyphs_people_1_0: there is no such run; .*--keep"):
        rivals.measure(features="last", **cell)
    run = people.run_folder(tmp_path, "glyphs_people", 1.0, 0)
    write_run(run)
    # as the rounds that are off pass it on
    shutil.copytree(run / paths.ROUND_FEATURES / "second", run / paths.ROUND_FEATURES / ROUNDS[-1])
    last = pd.DataFrame(rivals.measure(features="last", **cell))
    assert len(last) == 2 * len(rivals.RIVALS) + 2
    assert (last["true_classes"] == 6).all()
    told = last[last["method"].str.contains("told")]
    assert len(told) == 10
    assert (told["ari"] == 1).all()
    by_silhouette = last[last["method"].str.contains("silhouette")]
    assert (by_silhouette["ari"] > 0.5).all()
    assert last["ari"].iloc[-1] == 1
    # the initial embedding has other features
    shutil.copy(run / round_files("first").features, run / paths.FEATURES)
    initial = pd.DataFrame(rivals.measure(features="initial", **cell))
    assert (initial["ari"] < last["ari"]).all()


def test_what_merging_expects_is_compared_with_the_truth(tmp_path: Path) -> None:
    write_run(people.run_folder(tmp_path, "glyphs_people", 1.0, 0))
    found = expected.measure(data="glyphs_people", share=1.0, seed=0, features="second", folder=tmp_path)
    assert (found["true_classes"], found["clusters"], found["people_differ"], found["ari"]) == (6, 6, False, 1.0)
    assert found["expected_ari"] > 0.9
    vague = expected.measure(data="glyphs_people", share=1.0, seed=0, features="first", folder=tmp_path)
    assert vague["ari"] < 0.2
    assert vague["expected_ari"] is None or vague["expected_ari"] < 0.6


def test_clusters_are_found_with_sources_and_without(tmp_path: Path) -> None:
    write_run(tmp_path)
    shutil.copy(tmp_path / round_files("first").features, tmp_path / paths.FEATURES)
    shutil.copytree(tmp_path / paths.ROUND_FEATURES / "second", tmp_path / paths.ROUND_FEATURES / "third")
    known = pd.DataFrame({"task_id": np.arange(40), "source": np.arange(40) // 10}).astype({"source": str})
    store.write_table(tmp_path / paths.TASK_SOURCES, known, TASK_SOURCES, stage="names", params={})
    rows = pd.DataFrame(sources.rows_of_rounds(tmp_path))
    names = ["by initial", "by first", "by second", "by third"]
    assert rows["labels"].tolist() == [name for name in names for _ in range(2)]
    assert rows["sources"].tolist() == [True, False] * 4
    assert (rows["true_classes"] == 6).all()
    assert (rows["ari"][:4] < 1).all()
    assert (rows["ari"][4:] == 1).all()


def test_the_tasks_of_a_preset_are_divided_among_few_people(
    asked: dict[Path, DataParams], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sources, "rows_of_rounds", lambda _: [])
    rows = sources.measure(data="glyphs_people", people=10, seed=2, folder=tmp_path, root=RAW)
    ((own, data),) = asked.items()
    assert data.people is not None
    assert (data.people.train, data.people.tasks) == (10, 30)
    assert data.people.share == people.people_of("glyphs_people").share
    assert data.seed == 2
    assert [row["labels"] for row in rows] == [*people.LABELS]
    assert not own.exists()


def test_what_hdbscan_takes_for_noise_is_alone() -> None:
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(30, 2)) * 0.1, rng.normal(size=(30, 2)) * 0.1 + 9, [[100, 0], [0, 100]]])
    found = expected.scored(np.repeat([0, 1, 2, 3], [30, 30, 1, 1]), rivals.hdbscan(points))
    assert found == {"clusters": 4, "ari": 1.0}


def test_wrong_pairs_equal_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    starts = np.array([0, 3, 5, 9, 12])
    truth, clusters = rng.integers(4, size=12), rng.integers(-1, 3, size=12)
    task = [0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3]
    joined: dict[bool, list[bool]] = {True: [], False: []}
    for one in range(12):
        for other in range(one):
            if truth[one] != truth[other]:
                joined[task[one] == task[other]].append(clusters[one] == clusters[other] != -1)
    found = expected.wrong_pairs(clusters, truth, starts)
    assert found == pytest.approx((np.mean(joined[True]), np.mean(joined[False])))
    assert 0 < found[0] != found[1] > 0


def test_the_first_round_is_measured_as_the_others_are(finished: Path, tmp_path: Path) -> None:
    """The initial embedding in its place gives the accuracy of the initial embedding."""
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    assert people.row_of_task_classes(run) == []
    change(run / PARAMS, {"rounds.first": True})
    shutil.copy(run / paths.INITIAL, run / round_files("first").model)
    (row,) = people.row_of_task_classes(run)
    known = json.loads((run / paths.EVALUATE_METRICS).read_text(encoding="utf-8"))
    oracle = known["accuracy"]["oracle"]["1_shot"]["mean"]
    initial = known["accuracy"]["initial"]["1_shot"]
    assert (row["labels"], row["clusters"]) == ("task_classes", None)
    assert row["1_shot"] == pytest.approx(initial["mean"])
    assert row["1_shot_ci95"] == pytest.approx(initial["ci95"])
    assert row["1_shot_to_oracle"] == pytest.approx(initial["mean"] - oracle)
    assert row["true_classes"] == json.loads((run / paths.OVERVIEW).read_text(encoding="utf-8"))["true_classes"]
