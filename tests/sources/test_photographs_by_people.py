"""Photographs that people take: who has which photograph, in which style, and of which subclass."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from mela.errors import MelaError
from mela.io.schemas import SPLITS
from mela.params import DataParams, PeopleParams
from mela.sources import benchmarks
from mela.sources.benchmarks import split_of_classes
from mela.sources.duplicate_images import recorded
from mela.sources.open import open_source
from mela.sources.photographs_by_people import photographs_by_people
from mela.sources.snapshots import snapshot
from mela.sources.source import ImageSource
from mela.sources.superclasses import superclass_of_classes
from tests.helpers.tasks_by_people import rows_of

PEOPLE = {"train": 6, "val": 20, "test": 30, "ways": 3, "share": 0.75}
FORM = {"images_per_class": 8, "shots": 3, "size": 16, "seed": 0}
CLASSES, PHOTOGRAPHS = 4, 20
# two subclasses of each of four superclasses
SUPERCLASSES = {f"{split}-{c}{part}": f"{split}-{c}" for split in SPLITS for c in range(CLASSES) for part in "ab"}
SHAPE = (20, 16)


def pixels(label: str, number: int) -> Image.Image:
    generator = np.random.default_rng([*label.encode(), number])
    return Image.fromarray(generator.integers(0, 256, (SHAPE[1], SHAPE[0], 3), dtype=np.uint8))


def photographs(parts: str = "", count: int = PHOTOGRAPHS) -> ImageSource:
    labels = [f"{split}-{c}{part}" for split in SPLITS for c in range(CLASSES) for part in parts or [""]]
    items = [(label, number) for label in labels for number in range(count)]
    return ImageSource(
        splits=[label.split("-")[0] for label, _ in items],
        sources=[f"{label}/{number:02d}.png" for label, number in items],
        classes=[label for label, _ in items],
        load=lambda image: pixels(*items[image]),
    )


def people(form: dict[str, Any] | None = None, source: ImageSource | None = None, **changes: Any) -> ImageSource:
    chosen = PeopleParams(**(PEOPLE | changes))
    own = source or photographs("ab" if chosen.subclasses else "")
    superclasses = SUPERCLASSES if chosen.subclasses else None
    return photographs_by_people(chosen, own, superclasses=superclasses, **(FORM | (form or {})))


def test_a_training_task_is_one_persons_and_shows_photographs_of_its_classes():
    rows = rows_of(people())
    train = rows[rows["split"] == "train"]
    assert (train.groupby("task_id")["person"].nunique() == 1).all()
    assert train["person"].nunique() == train["task_id"].nunique() == PEOPLE["train"]
    assert (rows["shown"] == rows["class"]).all()
    assert (rows["of"] == rows["split"]).all()
    assert (rows.groupby(["task_id", "local_label"])["class"].nunique() == 1).all()
    assert (rows.groupby("task_id")["class"].nunique() == PEOPLE["ways"]).all()


@pytest.mark.parametrize("train", [6, 20])
def test_no_photograph_returns_before_all_others_of_its_class_have_been_used(train):
    source = people(train=train)
    own = [path.split("/") for path in source.sources if path.startswith("train/")]
    for label in {label for _, _, label, _ in own}:
        given = [name for _, _, shown, name in own if shown == label]
        for start in range(0, len(given), PHOTOGRAPHS):
            assert len(set(given[start : start + PHOTOGRAPHS])) == len(given[start : start + PHOTOGRAPHS])
    names = [source.sources.index(one) for one in source.sources]
    assert names == list(range(len(source))), "a person has no photograph twice"


@pytest.mark.parametrize("split", ["val", "test"])
def test_queries_of_held_out_tasks_are_other_photographs_by_others(split):
    rows = rows_of(people())
    for _, task in rows[rows["split"] == split].groupby(["task_id", "local_label"]):
        support, query = (task[task["role"] == role] for role in ("support", "query"))
        assert (len(support), len(query)) == (3, 5)
        assert support["person"].nunique() == 1
        assert not set(query["person"]) & set(support["person"])
        assert task["image"].is_unique


@pytest.mark.parametrize("share", [0.75, None])
def test_a_persons_images_are_the_same_however_many_persons_there_are(share):
    few, many = people(share=share), people(share=share, train=9)
    for image in range(0, 6 * 24, 7):
        twin = many.sources.index(few.sources[image])
        assert few.load(image).tobytes() == many.load(twin).tobytes()
    assert few.load(0).tobytes() == people(share=share).load(0).tobytes()
    assert few.sources[:24] != people({"seed": 1}, share=share).sources[:24]


def test_the_files_alone_tell_in_which_order_they_are_given_out():
    first = photographs()
    order = np.random.default_rng(0).permutation(PHOTOGRAPHS)
    places = np.concatenate([c * PHOTOGRAPHS + order for c in range(len(first) // PHOTOGRAPHS)]).tolist()
    assert first.classes is not None
    other = ImageSource(
        splits=first.splits,
        sources=[first.sources[place] for place in places],
        classes=first.classes,
        load=lambda image: first.load(places[image]),
    )
    assert people(source=other).sources == people().sources
    assert people(source=other).load(5).tobytes() == people().load(5).tobytes()


def test_styled_photographs_are_squares_and_others_are_as_they_are():
    assert people().load(0).size == (16, 16)
    plain = people(share=None)
    for image in (0, 30, 100):
        _, _, label, name = plain.sources[image].split("/")
        assert plain.load(image).tobytes() == pixels(label, int(name[:2])).tobytes()


@pytest.mark.parametrize("channel", range(3))
def test_with_a_share_of_1_a_persons_photographs_have_one_balance_and_with_0_they_have_not(channel):
    def spread(share: float) -> float:
        white = ImageSource(
            splits=photographs().splits,
            sources=photographs().sources,
            classes=photographs().classes,
            load=lambda image: Image.new("RGB", SHAPE, (255, 255, 255)),
        )
        source = people(source=white, share=share)
        levels = [np.asarray(source.load(image))[..., channel].mean() for image in range(6 * 24)]
        return float(np.std(np.reshape(levels, (6, 24)), axis=1).mean())

    assert spread(1.0) < 0.5
    assert spread(0.0) > 10


@pytest.mark.parametrize("kept", [{"subclasses": True}, {"objects": True}])
def test_all_tasks_of_a_person_show_the_same_subclass_or_object(kept):
    rows = rows_of(people(tasks=6, share=None, **kept))
    train = rows[rows["split"] == "train"]
    assert train["task_id"].nunique() == 36
    assert train["image_id"].is_unique
    of_class = train.groupby(["person", "class"])
    assert (of_class["task_id"].nunique() > 1).any(), "else this shows nothing"
    shown = train["image"].str.partition("@")[0] if "objects" in kept else train["shown"]
    assert (shown.groupby([train["person"], train["class"]]).nunique() == 1).all()
    if "objects" in kept:
        numbers = train["image"].str.partition("@")[2].astype(int)
        assert (
            numbers.groupby([train["person"], train["class"]]).apply(sorted).map(lambda n: n == [*range(len(n))])
        ).all()


def test_a_persons_class_is_one_subclass_of_a_superclass():
    source = people(subclasses=True, share=None)
    rows = rows_of(source)
    assert (rows["shown"].map(SUPERCLASSES) == rows["class"]).all()
    train = rows[rows["split"] == "train"]
    assert (train.groupby(["person", "class"])["shown"].nunique() == 1).all()
    assert train["shown"].nunique() > train["class"].nunique()
    assert set(source.classes or ()) == {f"{split}-{c}" for split in SPLITS for c in range(CLASSES)}


@pytest.mark.parametrize("split", ["val", "test"])
def test_queries_are_of_other_subclasses_than_the_support(split):
    rows = rows_of(people(subclasses=True, share=None))
    shown = rows[rows["split"] == split].groupby(["task_id", "local_label", "role"])["shown"]
    assert (shown.nunique() == 1).all()
    roles = shown.first().unstack()
    assert (roles["support"] != roles["query"]).all()
    assert (roles["support"].map(SUPERCLASSES) == roles["query"].map(SUPERCLASSES)).all()


def test_subclasses_may_have_styles_as_well():
    styles, plain = people(subclasses=True), people(subclasses=True, share=None)
    assert styles.sources == plain.sources
    assert styles.load(0).tobytes() != plain.load(0).tobytes()


def objects(**changes: Any) -> ImageSource:
    return people(source=photographs(), objects=True, **changes)


@pytest.mark.parametrize("share", [1.0, None])
def test_a_person_has_one_object_of_a_class_and_never_the_same_picture_of_it_twice(share):
    source = objects(share=share)
    rows = rows_of(source)
    own = rows[rows["split"] == "train"].assign(object=rows["image"].str.split("@").str[0])
    assert (own.groupby(["person", "class"])["object"].nunique() == 1).all()
    given = own.groupby(["person", "class"], as_index=False)["object"].first()
    assert not given.duplicated(["class", "object"]).any(), "people have different objects as long as there are any"
    pictures = [source.load(image) for image in range(8)]
    assert len({picture.tobytes() for picture in pictures}) == 8
    # they show one thing: all are more alike than two objects are
    small = np.stack([np.asarray(picture.convert("RGB").resize((2, 2)), dtype=float).ravel() for picture in pictures])
    other = np.asarray(source.load(8).convert("RGB").resize((2, 2)), dtype=float).ravel()
    assert np.linalg.norm(small - small.mean(axis=0), axis=1).max() < np.linalg.norm(other - small.mean(axis=0))


@pytest.mark.parametrize("split", ["val", "test"])
def test_queries_show_other_objects_than_the_support_and_each_another_one(split):
    rows = rows_of(objects())
    for _, task in rows[rows["split"] == split].groupby(["task_id", "local_label"]):
        shown = {role: task.loc[task["role"] == role, "image"].str.split("@").str[0] for role in ("support", "query")}
        assert shown["support"].nunique() == 1
        assert shown["query"].is_unique
        assert not set(shown["query"]) & set(shown["support"])


def test_some_classes_of_each_split_can_be_used():
    some = people(classes=3)
    assert some.classes is not None
    chosen = set(some.classes)
    assert Counter(label.split("-")[0] for label in chosen) == dict.fromkeys(SPLITS, 3)
    assert chosen != set(people({"seed": 1}, classes=3).classes or ())
    assert people(classes=4).sources == people().sources
    # a split that nobody has tasks of may have none
    without = photographs()
    kept = [place for place, split in enumerate(without.splits) if split != "val"]
    assert without.classes is not None
    source = ImageSource(
        splits=[without.splits[place] for place in kept],
        sources=[without.sources[place] for place in kept],
        classes=[without.classes[place] for place in kept],
        load=lambda image: without.load(kept[image]),
    )
    assert len(set(people(source=source, classes=3, val=0).classes or ())) == 6


@pytest.mark.parametrize("size", [(40, 30), (30, 40), (24, 24)])
def test_a_snapshot_lies_inside_its_photograph(size):
    white = Image.new("RGB", size, (200, 200, 200))
    found = [snapshot(white, np.random.default_rng(seed)) for seed in range(200)]
    for picture in found:
        assert np.ptp(np.asarray(picture)) == 0, "nothing beside the photograph is seen"
        assert picture.size[0] == picture.size[1]
    sides, levels = [one.size[0] / min(size) for one in found], [one.getpixel((0, 0))[0] / 200 for one in found]
    assert (round(min(sides), 1), round(max(sides), 1)) == (0.8, 0.9)
    assert 0.845 <= min(levels) < 0.87
    assert 1.13 < max(levels) <= 1.155


def test_a_snapshot_turns_by_up_to_5_degrees_and_looks_somewhere_else():
    ramp = np.tile(np.arange(0, 240, 2, dtype=np.uint8), (120, 1))
    photograph = Image.fromarray(ramp)
    found = [np.asarray(snapshot(photograph, np.random.default_rng(seed)), dtype=float) for seed in range(300)]
    down, across = zip(*(map(np.mean, np.gradient(one[5:-5, 5:-5])) for one in found), strict=True)
    angles = np.degrees(np.arctan2(down, across))
    assert np.abs(angles).max() < 5.5
    assert angles.min() < -4 < 4 < angles.max()
    assert np.std([one.mean() for one in found]) > 3


def test_a_snapshot_of_black_and_white_has_shades_between_them():
    ink = Image.fromarray(np.indices((40, 40)).sum(axis=0) % 16 < 8)
    assert ink.mode == "1"
    found, grey = (np.asarray(snapshot(one, np.random.default_rng(0))) for one in (ink, ink.convert("L")))
    np.testing.assert_array_equal(found, grey)
    assert len(np.unique(found)) > 10


def test_on_paper_all_images_of_a_person_have_one_paper():
    black = replace(photographs(), load=lambda image: Image.new("1", (24, 20)))
    source = people(source=black, paper=True, objects=True, share=1.0)
    of_person = {}
    for image in range(6 * 24):
        colour = np.asarray(source.load(image)).mean(axis=(0, 1))
        of_person.setdefault(source.sources[image].split("/")[1], []).append(colour / colour.sum())
    own = [np.array(colours) for colours in of_person.values()]
    within = np.mean([part.std(axis=0).max() for part in own])
    between = np.std([part.mean(axis=0) for part in own], axis=0).min()
    assert between > 3 * within
    without = people(source=black, objects=True, share=1.0)
    assert not any(without.load(image).getextrema()[0][1] for image in range(5))


@pytest.mark.parametrize(
    ("form", "changes", "message"),
    [
        ({"images_per_class": 3}, {}, "data.images_per_class: expected more than tasks.shots = 3, .*, got 3"),
        (
            {"images_per_class": 21},
            {},
            "data.images_per_class: expected at most 20, the images of train class 'train-0', got 21",
        ),
        (
            {"images_per_class": 23},
            {"objects": True},
            "data.images_per_class: expected at most 22, the images of val class 'val-0' and 2 more of one object, .*",
        ),
        ({}, {"classes": 5}, "data.people.classes: expected at most 4, the train classes, got 5; lower it"),
        ({}, {"ways": 5}, "data.people.ways: expected at most 4, the number of train classes, got 5"),
        ({}, {"test": 2}, "data.people.test: expected 5 images by other persons of every class, got [0-4] of one; .*"),
        (
            {},
            {"val": 2, "subclasses": True},
            "data.people.val: expected 5 images by other persons of every class, got [0-4] of one; .*",
        ),
    ],
)
def test_what_cannot_be_given_out_is_refused_in_one_line(form, changes, message):
    with pytest.raises(MelaError, match=f"^{message}$"):
        people(form, **changes)


def test_photographs_that_two_classes_share_are_no_contradiction_of_people():
    """CIFAR-100 has such photographs; labels of one's own are refused then."""
    source = people()
    assert recorded(source) is source


def test_each_split_of_fc100_has_whole_superclasses():
    superclasses = superclass_of_classes()
    assert Counter(Counter(superclasses.values()).values()) == {5: 20}
    splits: dict[str, set[str]] = {}
    for label, split in split_of_classes("fc100").items():
        splits.setdefault(superclasses[label], set()).add(split)
    assert len(splits) == 20
    assert Counter(split for own in splits.values() for split in own) == {"train": 12, "val": 4, "test": 4}


def write_cifar(root: Path, labels: list[str], count: int) -> None:
    for label in labels:
        for part in ("train", "test"):
            (root / part / label).mkdir(parents=True)
        for number in range(count):
            pixels(label, number).save(root / "train" / label / f"{number:03d}.png")


def params(root: Path, **changes: Any) -> DataParams:
    plain = {"table": None, "image_size": 16, "channels": 3, "images_per_class": 8, "rotations": False, "seed": 0}
    return DataParams(root=str(root), split_fractions=[0.6, 0.2, 0.2], **(plain | changes))


@pytest.mark.parametrize("subclasses", [False, True])
def test_fc100_by_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subclasses: bool) -> None:
    superclasses = superclass_of_classes()
    chosen = ("fish", "insects", "people", "trees", "vehicles_1", "vehicles_2")
    split_of = {name: split for name, split in split_of_classes("fc100").items() if superclasses[name] in chosen}
    write_cifar(tmp_path, sorted(split_of), 8)
    monkeypatch.setattr(benchmarks, "split_of_classes", lambda name: split_of)
    monkeypatch.setattr(benchmarks, "CIFAR_IMAGES_PER_CLASS", 8)
    own = {"train": 4, "val": 0, "test": 0, "ways": 2, "share": None, "subclasses": subclasses}
    source = open_source(params(tmp_path, name="fc100", people=PeopleParams(**own)), shots=3)
    assert source.classes is not None
    shown = [path.split("/")[3] for path in source.sources]
    assert source.classes == [superclasses[label] if subclasses else label for label in shown]
    assert source.tasks is not None
    assert source.tasks["task_id"].nunique() == 4


def test_a_folder_of_classes_by_people(tmp_path: Path) -> None:
    lines = ["split,class"]
    for split in SPLITS:
        for c in range(CLASSES):
            (tmp_path / f"{split}-{c}").mkdir()
            lines.append(f"{split},{split}-{c}")
            for number in range(10):
                pixels(f"{split}-{c}", number).save(tmp_path / f"{split}-{c}" / f"{number}.png")
    (tmp_path / "splits.csv").write_text("\n".join(lines), encoding="utf-8")
    data = params(tmp_path, name="folder", table="splits.csv", people=PeopleParams(**PEOPLE))
    source = open_source(data, shots=3)
    rows = rows_of(source)
    assert rows.groupby("split")["task_id"].nunique().to_dict() == {"test": 30, "train": 6, "val": 20}
    assert source.load(0).size == (16, 16)
