"""Glyphs that people draw: what a person's drawings share, and who draws which image of a task."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from mela.errors import MelaError
from mela.params import PeopleParams
from mela.sources.glyphs_by_people import glyphs_by_people
from mela.sources.person_traits import GRID, PersonTraits
from mela.sources.source import ImageSource
from tests.helpers.tasks_by_people import rows_of

PEOPLE = {"train": 6, "val": 80, "test": 150, "ways": 5, "share": 0.75}
FORM = {"images_per_class": 8, "shots": 3, "size": 16, "seed": 0}


def people(form: dict[str, Any] | None = None, **changes: Any) -> ImageSource:
    return glyphs_by_people(PeopleParams(**(PEOPLE | changes)), **(FORM | (form or {})))


def test_a_training_task_is_drawn_by_one_person_and_every_person_draws_one():
    rows = rows_of(people())
    train = rows[rows["split"] == "train"]
    assert (train.groupby("task_id")["person"].nunique() == 1).all()
    assert train["person"].nunique() == train["task_id"].nunique() == PEOPLE["train"]
    assert train["image_id"].is_unique


def test_a_person_may_have_several_training_tasks():
    one, several = people(), people(tasks=3)
    rows = rows_of(several)
    train = rows[rows["split"] == "train"]
    assert train["task_id"].nunique() == 18
    assert train["image_id"].is_unique
    names = train.groupby("person")["task"].unique().map(sorted).tolist()
    assert names == [[f"train/{p:04d}/{t}" for t in range(3)] for p in range(6)]
    assert (rows["source"] == rows["of"] + "/" + rows["person"]).where(rows["role"] == "support", True).all()
    assert (rows.groupby("task_id")["source"].nunique() == 1).all()
    # the first tasks are what all are if each person has one
    assert "source" not in rows_of(one)
    assert {*one.sources} < {*several.sources}
    image = one.sources[77]
    assert one.load(77).tobytes() == several.load(several.sources.index(image)).tobytes()


@pytest.mark.parametrize("split", ["val", "test"])
def test_queries_of_held_out_tasks_are_drawn_by_others(split):
    rows = rows_of(people())
    for _, task in rows[rows["split"] == split].groupby("task_id"):
        support, query = (task[task["role"] == role] for role in ("support", "query"))
        assert support["person"].nunique() == 1
        assert not set(query["person"]) & set(support["person"])
        assert query["image_id"].is_unique


def test_a_task_class_shows_one_class_and_classes_of_a_task_differ():
    rows = rows_of(people())
    assert (rows["shown"] == rows["class"]).all()
    assert (rows["of"] == rows["split"]).all()
    shown = rows.groupby(["task_id", "local_label"])["class"]
    assert (shown.nunique() == 1).all()
    assert (shown.first().groupby("task_id").nunique() == PEOPLE["ways"]).all()
    counts = rows.groupby(["task_id", "local_label"])["role"].value_counts().unstack()
    assert (counts["support"] == FORM["shots"]).all()
    assert (counts["query"] == FORM["images_per_class"] - FORM["shots"]).all()


def test_task_ids_are_consecutive_and_local_labels_say_nothing_of_the_class():
    source = people()
    assert source.tasks is not None
    assert sorted(source.tasks["task_id"].unique()) == list(range(6 + 80 + 150))
    first = rows_of(source).query("local_label == 0 and split == 'test'").groupby("task_id")["class"].first()
    assert first.nunique() > 20


def test_a_person_draws_the_same_however_many_there_are():
    few, many = people(), people(train=9)
    for image in range(0, PEOPLE["train"] * 40, 17):
        twin = many.sources.index(few.sources[image])
        assert few.load(image).tobytes() == many.load(twin).tobytes()
    assert few.load(0).tobytes() != people({"seed": 1}).load(0).tobytes()
    assert few.load(0).tobytes() == people().load(0).tobytes()


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_drawing_has_its_persons_traits_as_often_as_the_share_says(share):
    person = PersonTraits(traits=np.array([1, 2, 3, 4]), share=share)
    generator = np.random.default_rng(0)
    drawn = np.array([person.draw(generator) for _ in range(4000)])
    own = (drawn == person.traits).mean(axis=0)
    assert own == pytest.approx(share, abs=0.03)
    # the traits are drawn each for itself
    both = (drawn[:, 0] == 1) & (drawn[:, 1] == 2)
    assert both.mean() == pytest.approx(share**2, abs=0.03)


@pytest.mark.parametrize("share", [0.0, 0.75, 1.0])
def test_all_drawings_together_have_even_traits_whatever_the_share_is(share):
    generator = np.random.default_rng(0)
    persons = [PersonTraits(traits=generator.integers(GRID + 1, size=4), share=share) for _ in range(2000)]
    drawn = np.array([person.draw(generator) for person in persons])
    for trait in drawn.T:
        assert stats.kstest(trait, stats.uniform(0, GRID).cdf).pvalue > 1e-3


def test_with_a_share_of_1_a_persons_ink_is_equally_bright_and_with_0_it_is_not():
    def spread(share: float) -> float:
        source = people(share=share)
        bright = [np.sort(np.asarray(source.load(image)), axis=None)[-12:].mean() for image in range(6 * 40)]
        return float(np.std(np.reshape(bright, (6, 40)), axis=1).mean())

    assert spread(1.0) < 0.6 * spread(0.0)


@pytest.mark.parametrize(
    ("form", "changes", "message"),
    [
        ({"images_per_class": 3}, {}, "data.images_per_class: expected more than tasks.shots = 3, .*, got 3"),
        ({"size": 11}, {}, "data.image_size: expected at least 12 pixels, got 11"),
        ({}, {"ways": 21}, "data.people.ways: expected at most 20, the number of val classes, got 21"),
        ({}, {"test": 2}, "data.people.test: expected 5 images by other persons of every class, got 0 of one; .*"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_line(form, changes, message):
    with pytest.raises(MelaError, match=f"^{message}$"):
        people(form, **changes)


def test_without_held_out_people_there_are_training_tasks_alone():
    source = people(val=0, test=0)
    assert set(source.splits) == {"train"}
    assert len(source) == PEOPLE["train"] * PEOPLE["ways"] * FORM["images_per_class"]
