"""Keep what is to be reviewed: task classes, their clusters before anybody's word, and what these were found by."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from mela.data.array_types import Ints
from mela.errors import MelaError, one_line, raise_if_machine
from mela.io.atomic import replacing
from mela.labeling.corrections import Corrections
from mela.labeling.task_classes import TaskSamples

RERUN = "rerun the stage that infers the labels"


@dataclass(frozen=True, kw_only=True)
class Review:
    """Hold clusters that people may correct, and the numbers of tasks and local labels (n,) of the task classes."""

    corrections: Corrections
    task_ids: Ints
    local_labels: Ints


def write_review(path: Path, corrections: Corrections | None, samples: TaskSamples | None) -> None:
    """Write clusters that people may correct, or an empty file if there are none."""
    arrays = {}
    if corrections is not None and samples is not None:
        arrays = {
            "task_ids": samples.task_ids.astype(np.int64),
            "local_labels": samples.local_labels.astype(np.int64),
            "clusters": corrections.clusters,
            "points": corrections.points.astype(np.float32),
            "wrong": np.array([corrections.wrong]),
            "error": np.array([] if corrections.error is None else [corrections.error]),
            "same": np.array([] if corrections.same is None else [corrections.same]),
        }
    with replacing(path) as temporary:
        temporary.write_bytes(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))


def read_review(path: Path) -> Review:
    """Read what `write_review` wrote.

    Raises
    ------
    MelaError
        There is no such file, it is damaged, or it is empty, since the labels are off.
    """
    try:
        arrays = load(path.read_bytes())
    except FileNotFoundError:
        raise MelaError(f"{path}: no such file; run `dvc repro`, or {RERUN.removeprefix('re')}, first") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise_if_machine(error, path)
        raise MelaError(f"{path}: expected a safetensors file, got {one_line(error)}; {RERUN}") from None
    if not arrays:
        raise MelaError(f"{path}: expected clusters of task classes, got none, since `compare` has these labels off")
    try:
        tasks, n = arrays["task_ids"], len(arrays["clusters"])
        if not len(tasks) == len(arrays["local_labels"]) == len(arrays["points"]) == n:
            raise ValueError("arrays of different lengths")
        starts = np.concatenate([[0], np.flatnonzero(np.diff(tasks)) + 1, [n]]).astype(np.int64)
        corrections = Corrections(
            clusters=arrays["clusters"],
            points=arrays["points"].astype(np.float64),
            starts=starts,
            wrong=float(arrays["wrong"][0]),
            error=float(arrays["error"][0]) if len(arrays["error"]) else None,
            same=float(arrays["same"][0]) if len(arrays["same"]) else None,
        )
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise MelaError(f"{path}: expected what the stage wrote, got {one_line(error)}; {RERUN}") from None
    return Review(corrections=corrections, task_ids=tasks, local_labels=arrays["local_labels"])
