"""Define what every data source provides, whatever it reads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from PIL import Image

from mela.errors import MelaError

# labels that no task is made of, which get a class in the end
REST = "rest"


@dataclass(frozen=True, kw_only=True)
class ImageSource:
    """Hold images that can be read one at a time, and what is known of each.

    Attributes
    ----------
    splits : sequence of str, length n_images
        ``"train"``, ``"val"`` or ``"test"``, or ``"rest"``; image i has the id i.
    sources : sequence of str, length n_images
        Where image i came from, unique and the same on every machine (a path below the root, with ``/``).
    load : callable (int) -> PIL.Image.Image
        Decodes image i. Any size; any mode that Pillow converts to ``L`` or ``RGB``. Raises MelaError
        that names the file.
    classes : sequence of str, length n_images, or None
        The true global class, unique over all splits; None where nobody knows it.
    datasets : sequence of str, length n_images, or None
        The data set that image i is from, where there are several.
    tasks : DataFrame or None
        For data that comes as tasks: one row per (task, image) with columns ``task_id`` (int),
        ``image_id`` (int), ``local_label`` (int, from 0 within each task), ``role`` (``"support"`` or
        ``"query"``), ``split`` (the task's); beside them ``task`` and ``label``, the names of both as
        people wrote them, and perhaps ``source``, the person whose the task is. The split of a task is that
        of its images, but for ``"rest"``: labels from which no task can be learned, whose images may belong
        to other tasks as well.
        None where tasks are drawn from `classes`.
    split_of_names : mapping from str to str, or None
        The split of every task or class by its name, for the user's own data.
    """

    splits: Sequence[str]
    sources: Sequence[str]
    load: Callable[[int], Image.Image]
    classes: Sequence[str] | None = None
    datasets: Sequence[str] | None = None
    tasks: pd.DataFrame | None = None
    split_of_names: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        columns = [self.splits, *(column for column in (self.classes, self.datasets) if column is not None)]
        if any(len(column) != len(self.sources) for column in columns):
            raise AssertionError("splits, sources, classes and datasets must have one entry per image")
        if not len(self.sources):
            raise MelaError("data: no image was found; expected at least one; check data.root")

    def __len__(self) -> int:
        return len(self.sources)
