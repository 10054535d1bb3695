"""Find image files with the same pixels, for the data check and to refuse contradicting labels."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import pandas as pd
from PIL import Image

from mela.io.reading_errors import refuse
from mela.sources.plurals import images_are
from mela.sources.source import ImageSource
from mela.sources.split_overlaps import Repeats


def digest(image: Image.Image) -> bytes:
    """Return a digest of what an image shows; grey pixels count as the same in each mode."""
    shown = hashlib.blake2b(repr(image.size).encode(), digest_size=16)
    shown.update(image.convert("RGB").tobytes())
    return shown.digest()


class Recorder:
    """Wrap a source's `load` and keep the digest of every image that passes.

    Attributes
    ----------
    digests : dict of int to bytes
        Digests by the number of the image.
    """

    def __init__(self, load: Callable[[int], Image.Image]) -> None:
        self.load = load
        self.digests: dict[int, bytes] = {}

    def __call__(self, index: int) -> Image.Image:
        """Load an image."""
        image = self.load(index)
        self.digests[index] = digest(image)
        return image


def recorded(source: ImageSource) -> ImageSource:
    """Return a source with a `Recorder` of its images if people have labelled them in tasks, and any other as it is."""
    labelled = source.tasks is not None and source.split_of_names is not None
    return replace(source, load=Recorder(source.load)) if labelled else source


def refuse_contradictions(source: ImageSource) -> None:
    """Raise MelaError if the images of a `recorded` source, which have all been loaded, contradict each other."""
    if source.tasks is not None and isinstance(source.load, Recorder):
        names = dict(enumerate(source.sources))
        # by the names that people wrote, since what is left of a task's labels has a number of its own
        columns = {"task_id": "task", "local_label": "label"}
        rows = pd.DataFrame({name: source.tasks[written] for name, written in columns.items()})
        rows["image"] = source.tasks["image_id"].map(names)
        for problem in contradictions(rows, {names[index]: found for index, found in source.load.digests.items()}):
            refuse(problem)


def contradictions(rows: pd.DataFrame, digests: Mapping[str, bytes]) -> Iterator[str]:
    """Yield a line for every image that one task has under two labels, in files of different names.

    Parameters
    ----------
    rows : DataFrame
        Columns ``task_id``, ``local_label`` and ``image`` (its name).
    digests : mapping from str to bytes
        Digests of the images, by name; images without one are left out.
    """
    rows = rows.assign(digest=rows["image"].map(digests)).dropna(subset="digest").sort_values("image", kind="stable")
    first = rows.groupby(["task_id", "digest"], sort=False)[["image", "local_label"]].transform("first")
    wrong = (rows["local_label"] != first["local_label"]) & (rows["image"] != first["image"])
    for image, other in zip(rows["image"][wrong], first["image"][wrong], strict=True):
        yield (
            f"image {image!r}: expected one label for the same pixels in one task, got another one for {other!r}; "
            "remove one of the two files, or correct its label"
        )


def copies_told(copies: Sequence[Sequence[str]], split_of: Mapping[str, str]) -> list[str]:
    """Return a line if images occur several times, and another one if they do in several splits.

    Parameters
    ----------
    copies : sequence of sequences of str
        Names of images that show the same pixels.
    split_of : mapping from str to str
        The split of each of these.
    """
    found = []
    if copies:
        first, second = copies[0][:2]
        found.append(
            f"{images_are(len(copies))} there several times, such as {first!r} and {second!r} (--details "
            "DIR lists all); keep one file of each, or let tasks name the same one"
        )
    across = [group for group in copies if len({split_of[name] for name in group}) > 1]
    if across:
        first = across[0][0]
        second = next(name for name in across[0] if split_of[name] != split_of[first])
        found.append(str(Repeats(count=len(across), example=(split_of[first], first, split_of[second], second))))
    return found
