"""Recognise published benchmarks by their files, and say what there is of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mela.io.schemas import SPLITS
from mela.sources import mini_imagenet
from mela.sources.source import ImageSource


@dataclass(frozen=True, kw_only=True)
class Published:
    """Hold which benchmark lies in a folder.

    Attributes
    ----------
    name : str
        Value of ``data.name``.
    title : str
        What people call it.
    form : str
        The form in which it is there.
    preset : str
        Preset that suits two CPU cores.
    """

    name: str
    title: str
    form: str
    preset: str


def recognise(root: Path) -> Published | None:
    """Return the benchmark that a folder holds, whole or in part; None if it holds none that is known."""
    form = mini_imagenet.recognised(root) if root.is_dir() else None
    if form is None:
        return None
    return Published(
        name=mini_imagenet.NAME, title=mini_imagenet.TITLE, form=form.title, preset=f"{mini_imagenet.NAME}_cpu"
    )


def describe_published(found: Published, root: Path, source: ImageSource) -> Iterator[str]:
    """Yield what there is of a benchmark that is whole."""
    assert source.classes is not None
    rows = dict(zip(source.classes, source.splits, strict=True))
    counts = ", ".join(f"{sum(own == split for own in rows.values())} {split}" for split in SPLITS)
    yield f"{root}: {found.title}, as {found.form} (--as classes or --as tasks overrules)"
    yield ""
    yield f"  images       {len(source)}"
    yield f"  classes      {counts}, as published"
