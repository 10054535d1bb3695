"""Recognise published benchmarks by their files, and say what there is of them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mela.errors import MelaError
from mela.io.schemas import SPLITS
from mela.sources.aircraft import AIRCRAFT, aircraft
from mela.sources.cub import CUB, cub
from mela.sources.forms import Benchmark, part_of
from mela.sources.mini_imagenet import MINI_IMAGENET
from mela.sources.source import ImageSource
from mela.sources.tiered_imagenet import TIERED_IMAGENET
from mela.sources.vgg_flower import VGG_FLOWER

# more than half of the class folders of the second are among those of the first
KNOWN = (TIERED_IMAGENET, MINI_IMAGENET, CUB, AIRCRAFT, VGG_FLOWER)
# folders of a folder of benchmarks, at most
MOST = 20
# those that come with boxes
BOXED: dict[str, Callable[..., Benchmark]] = {"cub": cub, "aircraft": aircraft}


def recognise(root: Path) -> Benchmark | None:
    """Return the benchmark that a folder holds, whole or in part; None if it holds none that is known."""
    return next((one for one in KNOWN if root.is_dir() and one.recognised(root) is not None), None)


@dataclass(frozen=True, kw_only=True)
class Published:
    """Hold the published benchmarks of a folder.

    Attributes
    ----------
    root : Path
    benchmarks : mapping of str to Benchmark
        By the folder below `root`; the empty text if `root` itself is one.
    """

    root: Path
    benchmarks: Mapping[str, Benchmark]

    @property
    def title(self) -> str:
        """What people call them."""
        return " and ".join(one.title for one in self.benchmarks.values())

    @property
    def preset(self) -> str:
        """Preset that `mela data check` starts from."""
        return self.benchmarks[""].preset if "" in self.benchmarks else "metadataset_cpu"

    def open(self) -> dict[str, ImageSource]:
        """Open all of them; raise MelaError if one is not whole."""
        return {folder: one.open(self.root / folder) for folder, one in self.benchmarks.items()}

    def describe(self, sources: Mapping[str, ImageSource]) -> Iterator[str]:
        """Yield what there is of each."""
        for folder, source in sources.items():
            root, benchmark = self.root / folder, self.benchmarks[folder]
            form = benchmark.form_of(root)
            assert form is not None
            counts = ", ".join(f"{len(labels)} {split}" for split, labels in _classes(source).items())
            yield f"{root}: {benchmark.title}, as {form.title} (--as classes or --as tasks overrules)"
            yield ""
            yield f"  images       {len(source)}"
            yield f"  classes      {counts}, as published"
            if self._has_boxes(folder):
                yield "  boxes        there, to which images are cut (boxes: false leaves them whole)"
            yield ""

    def suggest(self, sources: Mapping[str, ImageSource]) -> dict[str, Any]:
        """Suggest values for dotted keys of ``params.yaml``; of several benchmarks, tasks are of one each."""
        values: dict[str, Any] = {"data.root": self.root.as_posix(), "data.table": None}
        values["kmeans.n_clusters"] = sum(len(_classes(source)["train"]) for source in sources.values())
        datasets = [
            {"name": one.name, "root": folder} | ({"boxes": True} if self._has_boxes(folder) else {})
            for folder, one in self.benchmarks.items()
        ]
        if "" not in self.benchmarks:
            return values | {"data.name": "mixed", "data.datasets": datasets}
        return values | {f"data.{key}": value for key, value in datasets[0].items() if key != "root"}

    def _has_boxes(self, folder: str) -> bool:
        name = self.benchmarks[folder].name
        with_boxes = BOXED[name](boxes=True).forms[0] if name in BOXED else None
        return with_boxes is not None and part_of(with_boxes.needed, self.root / folder) == 1


def published_in(root: Path) -> Published | None:
    """Return the benchmark that a folder holds, or those that its folders hold; None if it holds none that is known.

    Raises
    ------
    MelaError
        Some of its folders hold a benchmark, and others something else.
    """
    if (one := recognise(root)) is not None:
        return Published(root=root, benchmarks={"": one})
    try:
        below = [path for path in sorted(root.iterdir()) if _is_in_use(path)] if root.is_dir() else []
        # people's own data has a folder for each person or class, which are many
        known = {path: recognise(path) for path in below} if 1 < len(below) <= MOST else {}
    except PermissionError:
        # the check of people's own data tells of it
        return None
    found = {path.name: one for path, one in known.items() if one is not None}
    if not found:
        return None
    if others := [path.name for path in below if path.name not in found]:
        named = " and ".join(f"{one.title} in {folder}" for folder, one in found.items())
        raise MelaError(
            f"{root}: expected published data sets in all folders, got {named}, and something else in "
            f"{', '.join(others)}; name all of them in data.datasets, or add --as classes or --as tasks"
        )
    return Published(root=root, benchmarks=found)


def _is_in_use(folder: Path) -> bool:
    """Tell whether something is in a folder that is not hidden."""
    if folder.name.startswith(".") or not folder.is_dir():
        return False
    return any(not path.name.startswith(".") for path in folder.iterdir())


def _classes(source: ImageSource) -> dict[str, set[str]]:
    """Return the classes of each split."""
    known = [*zip(source.splits, source.classes or (), strict=True)]
    return {split: {label for own, label in known if own == split} for split in SPLITS}
