"""Write names for people's labels in several ways, and tell what labels gain where merging reads them."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mela.data.array_types import Ints
from mela.io.checked_tables import read_manifest, read_truth
from mela.labeling.merge_labeler import MergeLabeler
from mela.labeling.task_classes import TaskSamples
from mela.labeling.training_samples import read_samples
from mela.params import PARAMS
from stages.common import paths
from studies.clones import change, run_stages
from studies.labels.expected import scored
from studies.labels.people import prepare
from studies.labels.swapped_labels import BEFORE, PEOPLE, SCHEDULE

SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in "aeiou"]
Words = list[str]
Write = Callable[[Ints, Words, np.random.Generator], Words]


def numbers(task: Ints, words: Words, generator: np.random.Generator) -> Words:
    """Write numbers for the classes of a task, in any order."""
    return [str(number) for number in generator.permutation(len(task)) + 1]


def private(task: Ints, words: Words, generator: np.random.Generator) -> Words:
    """Make up a word for each class."""
    return made_up(len(task), generator)


def alike(task: Ints, words: Words, generator: np.random.Generator) -> Words:
    """Write the word of each class."""
    return [words[own] for own in task]


def with_slips(task: Ints, words: Words, generator: np.random.Generator) -> Words:
    """Write the word of each class, every other time with a capital, a plural, an article or a wrong letter."""
    return [slip(word, generator) if generator.random() < 0.5 else word for word in alike(task, words, generator)]


def in_two_languages(task: Ints, words: Words, generator: np.random.Generator) -> Words:
    """Write the words of one of two languages."""
    others = made_up(len(words), np.random.default_rng(1))
    return alike(task, words if generator.random() < 0.5 else others, generator)


def half_numbers(task: Ints, words: Words, generator: np.random.Generator) -> Words:
    """Write words or numbers, as each person likes."""
    return (alike if generator.random() < 0.5 else numbers)(task, words, generator)


def of_other_classes(task: Ints, words: Words, generator: np.random.Generator) -> Words:
    """Write the words of other classes in 30% of the cases."""
    found: Words = []
    for own in task:
        free = [word for word in words if word not in found]
        word = words[own] if generator.random() > 0.3 else str(generator.choice(free))
        found.append(word if word not in found else str(generator.choice(free)))
    return found


def of_three_classes(task: Ints, words: Words, generator: np.random.Generator) -> Words:
    """Write one word for three classes, and number those that meet in the task."""
    found: Words = []
    for word in (words[own - own % 3] for own in task):
        met = sum(other.split(" #")[0] == word for other in found)
        found.append(f"{word} #{met + 1}" if met else word)
    return found


WAYS: dict[str, Write] = {
    "numbers": numbers,
    "private words": private,
    "alike": alike,
    "alike, with slips": with_slips,
    "two languages": in_two_languages,
    "half write numbers": half_numbers,
    "30% wrong words": of_other_classes,
    "one word for three classes": of_three_classes,
}


def made_up(n: int, generator: np.random.Generator) -> Words:
    """Return n words of three syllables."""
    return ["".join(generator.choice(SYLLABLES, 3)) for _ in range(n)]


def slip(word: str, generator: np.random.Generator) -> str:
    """Return a word as somebody else might write it."""
    at = int(generator.integers(1, len(word) - 1))
    swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return str(generator.choice([word.title(), f"{word}s", f"the {word}", swapped]))


def measure(*, data: str, look: float, seed: int, folder: Path, root: Path) -> list[dict[str, Any]]:
    """Return a row without names, and one for each way of writing them, by features of the initial embedding.

    Parameters
    ----------
    data : str
        A preset of images by people.
    look : float
        How often an image has its person's look.
    seed : int
        Of the people, of the training, and of the names.
    folder : Path
        The run has a folder of its own in this one.
    root : Path
        Folder of the raw data, which glyphs need none of.
    """
    own = folder / f"{data}_{look:g}_{seed}"
    prepare(own, data=data, share=look, seed=seed, root=root, train=PEOPLE)
    change(own / PARAMS, SCHEDULE)
    run_stages(own, *BEFORE, "embed", "extract")
    samples, truth, words = read_run(own, made_up_words=data == "glyphs_people")
    rows = []
    for way in ("nothing", *WAYS):
        written = None if way == "nothing" else written_by(WAYS[way], truth, samples.starts, words, seed)
        labeler = MergeLabeler().fit_tasks(replace(samples, written=written))
        row: dict[str, Any] = {"writing": way, "true_classes": len(words)} | scored(truth, labeler.class_labels_)
        if written is not None:
            row["names_alone"] = scored(truth, np.unique(written, return_inverse=True)[1])["ari"]
            row["power"] = None if labeler.names_ is None else labeler.names_.power
        rows.append(row)
    shutil.rmtree(own)
    return rows


def read_run(run: Path, *, made_up_words: bool) -> tuple[TaskSamples, Ints, Words]:
    """Return the training tasks of a run, the true class of each task class, and the word for each class."""
    samples, images = read_samples(read_manifest(run / paths.TRAIN), run / paths.FEATURES)
    classes = read_truth(run / paths.TRUTH).set_index("image_id")["class"]
    own = classes.reindex(images).to_numpy()[samples.index[samples.first]].astype(str)
    known, truth = np.unique(own, return_inverse=True)
    words = (
        made_up(len(known), np.random.default_rng(0)) if made_up_words else [name.replace("_", " ") for name in known]
    )
    return samples, truth.astype(np.int64), words


def written_by(write: Write, truth: Ints, starts: Ints, words: Words, seed: int) -> npt.NDArray[np.str_]:
    """Return the names (n,) of task classes of these classes (n,), in tasks with these bounds (n_tasks + 1,)."""
    generator = np.random.default_rng(seed)
    tasks = (truth[first:last] for first, last in pairwise(starts))
    return np.array([name for task in tasks for name in write(task, words, generator)])
