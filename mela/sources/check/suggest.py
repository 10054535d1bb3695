"""Suggest parameters for a user's data: a preset with other values where the findings ask for them."""

import io
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml.comments import CommentedMap

from mela.errors import MelaError
from mela.io.commented_yaml import commented_yaml
from mela.io.schemas import SPLITS
from mela.params import EXTRA_BLOCKS, ROUNDS, RatesParams, check_document, dividing_batches
from mela.sources.check.brightness import jitter_for
from mela.sources.check.inspect import Classes, Findings, Tasks

SIDES = (28, 32, 64)
WAYS, SHOTS, QUERIES = 5, 5, 15
MEASURED = (1, 5, 10)
# what people's photographs of a thing differ in; mirroring may change what it is, a sign or a letter
PHOTOGRAPHS = {
    "augment.flip": False,
    "augment.rotation": 20.0,
    "augment.zoom": 0.35,
    "augment.tint": 0.45,
    "augment.blur": 0.5,
    "augment.surroundings": 1.0,
}
# comments of keys that presets lack
NOTES = {
    "augment.rotation": "degrees to either side",
    "augment.zoom": "share by which images grow or shrink",
    "augment.tint": "share by which each channel may change",
    "augment.blur": "share of the images that are blurred",
    "augment.surroundings": "share whose surroundings are another image's",
}
# of the preset glyphs: steps of the initial training, times that an image occurs in training tasks, images that the
# final training sees, tasks of an epoch
STEPS, OCCURRENCES, SEEN, TASKS_PER_EPOCH = 600, 60, 70_000, 150


def suggest(findings: Findings) -> dict[str, Any]:
    """Suggest values for dotted keys of ``params.yaml``, such as ``data.image_size``.

    With errors, these are the least demanding values, so that the stages end with one of these errors.
    """
    layout, pictures = findings.layout, findings.pictures
    side = _side(findings)
    values: dict[str, Any] = {
        "data.name": layout.name,
        "data.root": layout.root.as_posix(),
        "data.table": layout.table,
        "data.image_size": side,
        "data.channels": 3 if pictures.coloured else 1,
        "augment.crop_padding": side // 16,
        "augment.flip": pictures.coloured,
        "augment.jitter": 0.4 if pictures.coloured else 0.0,
    }
    if findings.errors:
        return values | {"tasks.ways": 2, "tasks.shots": 1, "tasks.queries": 1, "tasks.val": 0, "tasks.test": 0}
    if findings.tasks is not None:
        return values | _of_tasks(findings.tasks, coloured=pictures.coloured)
    assert findings.classes is not None
    return values | _of_classes(findings.classes)


def _side(findings: Findings) -> int:
    """Return the largest side that half of the images have, within what two CPU cores can train on."""
    shorter = sorted(min(size) for size in findings.pictures.sizes.elements())
    middle = shorter[len(shorter) // 2] if shorter else SIDES[0]
    return max((side for side in SIDES if side <= middle), default=SIDES[0])


def _of_tasks(tasks: Tasks, *, coloured: bool) -> dict[str, Any]:
    table, images = tasks.table, tasks.training_images
    training = table[table["split"] == "train"]
    n_tasks, task_classes = len(training), int(training["ways"].sum())
    fewest = sorted(table["fewest"])
    shots = SHOTS if tasks.support else _shots(fewest[len(fewest) // 2])
    classes = max(2, min(len(tasks.label_names), images))
    possible = table["support"] if tasks.support else table["support"].clip(upper=shots)
    per_epoch = min(n_tasks, STEPS)
    # what the images of a task share is known where each image is of one task
    images_in_one_task = int(training["images"].sum()) == images
    return {
        **(PHOTOGRAPHS | {"augment.jitter": jitter_for(tasks.brightness or 0.0)} if coloured else {}),
        # the initial embedding learns how each person's images appear, and each round of training minds it less
        **{f"rounds.{number}": "centered" if images_in_one_task else True for number in ROUNDS},
        # each further training takes as long again
        "compare.pruned": False,
        "compare.oracle": tasks.true_classes > 1,
        "use": "merged",
        "tasks.shots": shots,
        "evaluate.shots": _measured([int(value) for value in possible[table["split"] == "test"]]),
        **_of_trainings(per_epoch, float(training["images"].mean()), images),
        **({"embed.tasks_per_epoch": None} if per_epoch == n_tasks else {}),
        **_of_labels(classes, task_classes),
    }


def _measured(support: list[int]) -> list[int]:
    """Return the usual numbers of shots that two test tasks allow, and the most they allow if that is below 5."""
    most = sorted(support)[-2] if len(support) > 1 else 1
    return [k for k in MEASURED if k <= most] + ([most] if 1 < most < SHOTS else [])


def _of_classes(classes: Classes) -> dict[str, Any]:
    sizes = {split: classes.sizes(split) for split in SPLITS}
    drawn = {split: own for split, own in sizes.items() if len(own) > 1 and min(own.values()) > 1}
    images = sum(sizes["train"].values())
    ways = min([WAYS, *map(len, drawn.values())])
    fewest = min([SHOTS + QUERIES, *(min(own.values()) for own in drawn.values())])
    shots = _shots(fewest)
    train = _within(round(OCCURRENCES * images / (ways * fewest)), 50, 3000)
    per_epoch = min(TASKS_PER_EPOCH, train)
    return {
        "tasks.ways": ways,
        "tasks.shots": shots,
        "tasks.queries": max(1, fewest - shots),
        "tasks.train": train,
        "tasks.val": 200 if "val" in drawn else 0,
        "tasks.test": 600 if "test" in drawn else 0,
        "evaluate.shots": sorted({1, shots}),
        **_of_trainings(per_epoch, ways * fewest, images),
        **_of_labels(max(2, len(sizes["train"])), ways * train),
    }


def _of_labels(classes: int, task_classes: int) -> dict[str, Any]:
    return {"labeler.n_clusters": max(2, min(4 * classes, task_classes)), "kmeans.n_clusters": classes}


def _of_trainings(tasks: int, of_a_task: float, images: int) -> dict[str, Any]:
    """Return how long to train, given the tasks of an epoch, images of a task, and images for the final training.

    Methods of the benchmark train on as many images as both trainings, or on a third of that on top.
    """
    initial = _within(math.ceil(STEPS / tasks), 4, 25)
    final = _within(SEEN // images, 15, 40)
    both = max(3, initial + round(final * images / (tasks * of_a_task)))
    third = max(1, round(both / 3))
    return {
        "embed.epochs": initial,
        "embed.milestones": [math.ceil(0.75 * initial)],
        "embed.tasks_per_epoch": tasks,
        "pretrain.epochs": final,
        "pretrain.milestones": [round(0.6 * final), round(0.8 * final)],
        "methods.epochs": both,
        "methods.milestones": _milestones(both),
        "methods.tasks_per_epoch": tasks,
        "tuning.epochs": third,
        "tuning.milestones": _milestones(third),
        "tuning.tasks_per_epoch": tasks,
    }


def _milestones(epochs: int) -> list[int]:
    return sorted({round(0.75 * epochs), round(0.9 * epochs)} & set(range(1, epochs)))


def _shots(images: int) -> int:
    """Return half of the images of a label, at most 5."""
    return _within(images // 2, 1, SHOTS)


def _within(value: int, least: int, most: int) -> int:
    return max(least, min(value, most))


def fill_preset(preset: str, values: Mapping[str, Any], *, title: str) -> str:
    """Return the text of a preset with other values, its comments kept but for those at its head.

    Values of blocks that only the benchmark has are left out unless the preset is its own.

    Parameters
    ----------
    preset : str
    values : mapping
        Values by dotted key.
    title : str
        A comment for the head.
    """
    yaml = commented_yaml()
    document = yaml.load(re.sub(r"\A(#.*\n|\s*\n)*", "", preset))
    extra = set() if is_of_benchmark(preset) else {block.block for block in EXTRA_BLOCKS}
    if dividing_batches(document):
        # a round that is centered takes whole batches
        values = {key: True if value == "centered" else value for key, value in values.items()}
    for key, value in values.items():
        block, _, name = key.partition(".")
        if block in extra:
            continue
        if not name:
            document[block] = value
            continue
        document.setdefault(block, CommentedMap())
        if isinstance(value, list) and name in document[block]:
            # keeps [1, 5] on one line
            document[block][name][:] = value
        else:
            document[block][name] = value
        if key in NOTES:
            document[block].yaml_add_eol_comment(NOTES[key], name, column=29)
    # what the preset has of other data
    for name in ("datasets", "boxes", "people"):
        if f"data.{name}" not in values and "data.name" in values:
            document["data"].pop(name, None)
    # of these the preset's were chosen on the validation tasks of another data set
    for name in document.get(RatesParams.block) or {}:
        document[RatesParams.block][name] = None
    written = io.StringIO()
    yaml.dump(document, written)
    return f"# {title}\n\n{written.getvalue()}"


def read_preset(path: Path) -> str:
    """Return the text of a preset whose blocks are all valid.

    Raises
    ------
    MelaError
        There is none, or it is not right.
    """
    if not path.is_file():
        raise MelaError(
            f"{path}: no such preset to start from; name one of presets/, or the path of a file, by --preset"
        )
    check_document(path)
    text = path.read_text(encoding="utf-8")
    for block in EXTRA_BLOCKS if is_of_benchmark(text) else ():
        block.read(path)
    return text


def is_of_benchmark(preset: str) -> bool:
    """Tell whether a preset has blocks that only the benchmark of methods has."""
    return any(re.search(rf"^{block.block}:", preset, flags=re.MULTILINE) for block in EXTRA_BLOCKS)


def changed_lines(preset: str, filled: str) -> str:
    """Return the lines of a filled preset that differ from the preset's, under the names of their blocks."""
    known, lines, block = set(preset.splitlines()), [], ""
    for line in filled.splitlines():
        if re.match(r"[a-z]+:", line):
            block = line.split("#")[0].rstrip()
        elif line.startswith(" ") and line not in known:
            lines += [*([block] if block not in lines else []), line]
    return "".join(f"{line}\n" for line in lines)
