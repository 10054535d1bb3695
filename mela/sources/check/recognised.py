"""Recognise published benchmarks by their files, and say what there is of them."""

from collections.abc import Iterator
from pathlib import Path

from mela.io.schemas import SPLITS
from mela.sources.aircraft import AIRCRAFT
from mela.sources.cub import CUB
from mela.sources.forms import Benchmark
from mela.sources.mini_imagenet import MINI_IMAGENET
from mela.sources.source import ImageSource
from mela.sources.tiered_imagenet import TIERED_IMAGENET
from mela.sources.vgg_flower import VGG_FLOWER

# more than half of the class folders of the second are among those of the first
KNOWN = (TIERED_IMAGENET, MINI_IMAGENET, CUB, AIRCRAFT, VGG_FLOWER)


def recognise(root: Path) -> Benchmark | None:
    """Return the benchmark that a folder holds, whole or in part; None if it holds none that is known."""
    return next((one for one in KNOWN if root.is_dir() and one.recognised(root) is not None), None)


def describe_published(benchmark: Benchmark, root: Path, source: ImageSource) -> Iterator[str]:
    """Yield what there is of a benchmark that is whole."""
    form, split_of = benchmark.form_of(root), dict(zip(source.classes or (), source.splits, strict=True))
    assert form is not None
    counts = ", ".join(f"{sum(own == split for own in split_of.values())} {split}" for split in SPLITS)
    yield f"{root}: {benchmark.title}, as {form.title} (--as classes or --as tasks overrules)"
    yield ""
    yield f"  images       {len(source)}"
    yield f"  classes      {counts}, as published"
