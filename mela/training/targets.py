"""Define the targets of pre-training for each image: one global label, or shares of several."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from mela.data.array_types import Ints
from mela.data.quarter_turns import TURNS
from mela.errors import MelaError
from mela.io import schemas, store
from mela.io.checked_tables import read_labels

if TYPE_CHECKING:
    from scipy.sparse import csr_array


ROUNDING = 1e-6


@dataclass(frozen=True, kw_only=True)
class Targets:
    """Hold the labels of n images.

    Attributes
    ----------
    image_ids : int64 (n,)
        Each once, or once in every rotation.
    labels : int64 (n,)
        Labels from 0; of several labels, the one with the largest share.
    shares : csr_array (n, n_labels) or None
        Rows sum to 1; None if each image has one label.
    turns : int64 (n,) or None
        Quarter turns by which each image is rotated; None if all stay upright.
    tasks : int64 (n,) or None
        The task of each image, if what its images have in common is to be subtracted.
    """

    image_ids: Ints
    labels: Ints
    shares: "csr_array | None" = None
    turns: Ints | None = None
    tasks: Ints | None = None

    @property
    def n_labels(self) -> int:
        """Number of labels, up to the largest that occurs."""
        return int(self.labels.max(initial=-1)) + 1 if self.shares is None else self.shares.shape[1]

    def rotated(self) -> "Targets":
        """Return every image four times, once in each rotation; label y, turned r times, is y + r n_labels.

        So a class in each of its four rotations is a class of its own, as in rotation augmentation of classes.
        """
        from scipy.sparse import block_diag, csr_array

        turns = np.repeat(np.arange(TURNS), len(self.image_ids))
        return Targets(
            image_ids=np.tile(self.image_ids, TURNS),
            labels=np.tile(self.labels, TURNS) + self.n_labels * turns,
            shares=None if self.shares is None else csr_array(block_diag([self.shares] * TURNS)),
            turns=turns,
            tasks=None if self.tasks is None else np.tile(self.tasks, TURNS),
        )

    def of_tasks(self, manifest: pd.DataFrame) -> "Targets":
        """Return the same with the tasks of a manifest.

        Raises
        ------
        MelaError
            An image is in no task or in several, so that it is not known with which others it shares anything.
        """
        of_images = manifest[["image_id", "task_id"]].drop_duplicates()
        counts = of_images["image_id"].value_counts().reindex(self.image_ids, fill_value=0)
        wrong = counts[counts != 1]
        if len(wrong):
            raise MelaError(
                f"rounds: expected images of one task each where a round is centered, but image {wrong.index[0]} is in "
                f"{wrong.iloc[0]}; set the rounds to true in place of centered"
            )
        tasks = of_images.drop_duplicates("image_id").set_index("image_id")["task_id"].reindex(self.image_ids)
        return replace(self, tasks=tasks.to_numpy(dtype=np.int64))

    def batch(self, rows: Ints) -> Tensor:
        """Return the targets of some images for ``torch.nn.functional.cross_entropy``.

        int64 (b,) if each image has one label, else float32 (b, n_labels).
        """
        if self.shares is None:
            return torch.from_numpy(self.labels[rows])
        return torch.from_numpy(self.shares[rows].toarray().astype(np.float32))


def read_targets(path: Path, *, soft: bool) -> Targets:
    """Read one label for each image from a stage's table or, if it is `soft`, shares of several.

    Raises
    ------
    MelaError
        See `mela.io.checked_tables.read_labels` and `soft_targets`.
    """
    if soft:
        return soft_targets(store.read_table(path, schemas.SOFT_LABELS), str(path))
    table = read_labels(path)
    return Targets(image_ids=table["image_id"].to_numpy(), labels=table["label"].to_numpy())


def soft_targets(table: pd.DataFrame, name: str) -> Targets:
    """Return shares of several labels from the rows of a table.

    Parameters
    ----------
    table : DataFrame
        Columns image_id, label, weight.
    name : str
        Named in errors.

    Raises
    ------
    MelaError
        A label below 0, a weight that is not positive, a label twice, or weights that do not sum to 1; names the image.
    """
    from scipy.sparse import csr_array

    if table.empty:
        return Targets(image_ids=np.empty(0, dtype=np.int64), labels=np.empty(0, dtype=np.int64))
    ordered = table.sort_values(["image_id", "label"], kind="stable")
    image_ids, rows = np.unique(ordered["image_id"].to_numpy(dtype=np.int64), return_inverse=True)
    labels, weights = ordered["label"].to_numpy(dtype=np.int64), ordered["weight"].to_numpy(dtype=np.float64)
    wrong = (labels < 0) | ~(weights > 0) | ordered.duplicated(["image_id", "label"]).to_numpy()
    sums = np.bincount(rows, weights)
    wrong |= ~(np.abs(sums - 1) < ROUNDING)[rows]
    if wrong.any():
        image = image_ids[rows[int(np.argmax(wrong))]]
        own = ordered[ordered["image_id"] == image]
        found = ", ".join(f"{label}: {weight:g}" for label, weight in zip(own["label"], own["weight"], strict=True))
        raise MelaError(
            f"{name}: image {image}: its labels and weights are {found}, but labels must differ and start from 0, and "
            "weights must be positive and sum to 1; rerun the stage that makes it"
        )
    shares = csr_array((weights, (rows, labels)), shape=(len(image_ids), int(labels.max()) + 1))
    best = ordered.assign(row=rows).sort_values(["row", "weight", "label"], ascending=[True, False, True])
    return Targets(image_ids=image_ids, labels=best.groupby("row")["label"].first().to_numpy(np.int64), shares=shares)
