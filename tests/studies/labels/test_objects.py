"""The study of people who have one object of each class: its photographs, its tasks, and the rows of a run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from mela.params import PARAMS, ROUNDS, AugmentParams, CompareParams, DataParams, RoundsParams
from mela.sources.task_folders import tasks
from studies.labels import objects
from studies.labels.signs import SIGNS, face
from studies.labels.solids import Part, Place, _followed, kind, object_of
from tests.helpers.project import TINY, change, run_stages


def shown(data: str, number: int, person: int, thing: int, count: int = 2) -> "np.ndarray":
    images = objects.DRAWN[data][0](number, np.random.default_rng(person), np.random.default_rng(thing), count)
    return np.stack([np.asarray(image) for image in images])


def far(images: "np.ndarray", others: "np.ndarray") -> float:
    """Return the share of pixels that differ by more than 30 of 255 levels."""
    return float((np.abs(images.astype(int) - others) > 30).any(axis=-1).mean())


@pytest.mark.parametrize("data", objects.DRAWN)
def test_photographs_are_of_their_object_and_place(data: str) -> None:
    own = shown(data, 1, 0, 0)
    assert own.dtype == np.uint8
    assert own.ndim == 4
    np.testing.assert_array_equal(shown(data, 1, 0, 0), own)
    assert (own[0] != own[1]).any(), "no two photographs are the same"
    # far beyond the noise of a camera
    assert far(shown(data, 26, 0, 0), own) > 0.1, "another kind"
    assert far(shown(data, 1, 0, 1), own) > 0.1, "another object"
    assert (shown(data, 1, 1, 0) != own).any() == (data == "solids"), "signs are nobody's own"


def test_rays_end_on_the_surface() -> None:
    """Of a ball of known size: distances, where rays meet it, and the directions in which it faces."""
    rng = np.random.default_rng(0)
    center = np.array([0.1, 0.0, 0.2])
    solid = replace(kind(0), parts=[Part(body=0, sizes=np.full(3, 0.5), center=center, axis=2, angle=0.7)])
    points = rng.normal(size=(50, 3))
    lengths = np.linalg.norm(points - center, axis=1)
    np.testing.assert_allclose(solid.distance(points), lengths - 0.5, atol=1e-4)
    origins, forward = Place.drawn(rng).rays(rng)
    hit, found = _followed(solid, origins, forward)
    between = center - origins
    past = np.linalg.norm(between - (between @ forward)[:, None] * forward, axis=1)
    clear = np.abs(past - 0.5) > 0.02
    np.testing.assert_array_equal(hit[clear], past[clear] < 0.5)
    assert 100 < hit.sum() < len(hit) - 100
    # rays that graze it may end right before it
    away = (found - center)[clear[hit]]
    np.testing.assert_allclose(np.linalg.norm(away, axis=1), 0.5, atol=0.01)
    np.testing.assert_allclose(
        solid.slope(found[clear[hit]]), away / np.linalg.norm(away, axis=1, keepdims=True), atol=0.03
    )


def test_objects_of_a_kind_are_alike() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(0, 0.5, (400, 3))
    kinds = [kind(number) for number in range(12)]
    of_each = np.array([[object_of(one, rng).distance(points) for _ in range(4)] for one in kinds])
    within = of_each.std(axis=1).mean()
    between = of_each.mean(axis=1).std(axis=0).mean()
    assert between > 2 * within


def test_all_signs_differ() -> None:
    faces = {face(number).tobytes() for number in range(len(SIGNS))}
    assert len(faces) == objects.signs.KINDS


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws that take a second."""
    numbers = {"TRAINING_TASKS": 12, "TEST_PEOPLE": 12, "TEST_TASKS": 6, "FEWEST": 7, "MOST": 8, "QUERIES": 4}
    for name, value in (numbers | {"TRAINING_CLASSES": 8, "TEST_CLASSES": 6}).items():
        monkeypatch.setattr(objects, name, value)


@pytest.mark.usefixtures("few")
def test_tasks_are_by_people_with_one_object_each(tmp_path: Path) -> None:
    for name in ("one", "same"):
        objects.draw_tasks(tmp_path / name, "signs", 3)
    table = pd.read_csv(tmp_path / "one/tasks.csv")
    pd.testing.assert_frame_equal(table, pd.read_csv(tmp_path / "same/tasks.csv"))
    for path in table["path"].unique():
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "same" / path).read_bytes()
    table["object"] = table["path"].str.rsplit("/", n=1).str[0]
    training, tested = table[table["split"] == "train"], table[table["split"] == "test"]
    assert training["task_id"].nunique() == 12
    assert not training["path"].duplicated().any()
    assert training.groupby(["task_id", "local_label"])["object"].nunique().eq(1).all()
    assert training.groupby("task_id")["class"].nunique().eq(objects.WAYS).all()
    assert training.groupby("class")["object"].nunique().max() > 1
    assert tested["task_id"].nunique() == 6
    assert not set(tested["class"]) & set(training["class"])
    by_label = tested.groupby(["task_id", "local_label"])
    assert by_label["class"].nunique().eq(1).all()
    for _, own in by_label:
        support, query = (set(own.loc[own["role"] == role, "object"]) for role in ("support", "query"))
        assert len(support) == 1
        assert query
        assert not support & query, "queries show other objects"
    assert table.groupby("object")["class"].nunique().eq(1).all()
    # and the project reads it
    source = tasks(tmp_path / "one", table=tmp_path / "one/tasks.csv", shots=5, split_fractions=(1.0, 0.0, 0.0), seed=0)
    assert source.classes is not None
    assert set(source.classes) == set(table["class"])


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_a_run_from_end_to_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What `mela data check` writes for the photographs is run, on fewer steps, and gives a row for each embedding."""
    monkeypatch.setitem(objects.DRAWN, "solids", (small, objects.solids.KINDS))
    asked: list[tuple[str, ...]] = []
    plain = objects.run_module

    def run(folder: Path, *words: str) -> None:
        asked.append(words)
        if words[1:] != ("run",):
            plain(folder, *words)
            return
        assert DataParams.read(folder / PARAMS).seed == 1
        assert RoundsParams.read(folder / PARAMS) == RoundsParams(**dict.fromkeys(ROUNDS, "centered"))
        assert AugmentParams.read(folder / PARAMS).surroundings == 0.5
        assert CompareParams.read(folder / PARAMS).oracle
        short = {key: value for key, value in TINY.items() if not key.startswith(("data.", "tasks.", "rounds."))}
        change(
            folder / PARAMS,
            short
            | {"embed.tasks_per_epoch": None}
            | dict.fromkeys([f"rounds.{number}" for number in ROUNDS[2:]], False),
        )
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            run_stages()

    monkeypatch.setattr(objects, "run_module", run)
    rows = pd.DataFrame(objects.measure(data="solids", surroundings=0.5, seed=1, folder=tmp_path))
    assert [words[:2] for words in asked] == [("mela", "data"), ("mela", "run")]
    assert rows["labels"].tolist() == ["initial", "first", "second", "merged", "oracle"]
    assert rows["true_classes"].eq(8).all()
    assert rows[["1_shot", "1_shot_ci95", "5_shot_ci95"]].notna().all(axis=None)
    assert rows.set_index("labels")["ari"].isna().to_dict() == {
        "initial": True,
        "first": True,
        "second": False,
        "merged": False,
        "oracle": True,
    }
    assert not any(tmp_path.iterdir())


def small(number: int, person: np.random.Generator, thing: np.random.Generator, count: int) -> list[Image.Image]:
    """Images in the colour of their kind."""
    colour = np.random.default_rng(number).uniform(0, 200, 3)
    noise = [thing.uniform(0, 50, (28, 28, 3)) for _ in range(count)]
    return [Image.fromarray((colour + one).astype(np.uint8)) for one in noise]
