"""Open published benchmarks, each with the split of the paper that made it one.

Omniglot (Lake et al., 2015; split of Vinyals et al., 2016), CIFAR-FS (Bertinetto et al., 2019) and FC100 (Oreshkin et
al., 2018).

Each is read from a plain image folder, or from the published archives. Which class belongs to which split
is the table of that name in ``mela/sources/splits``; classes that a table does not name are not used.
"""

import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import resources
from pathlib import Path

from PIL import Image, ImageOps

from mela.data.array_types import Images
from mela.errors import MelaError
from mela.sources.downloads import checksum, fetch
from mela.sources.image_files import list_images, load_by_source, open_below
from mela.sources.source import ImageSource
from mela.sources.split_tables import parse_split_table

OMNIGLOT_IMAGES_PER_CLASS = 20
OMNIGLOT_PARTS = ("images_background", "images_evaluation")
CIFAR_IMAGES_PER_CLASS = 600
CIFAR_PARTS = ("train", "test")

ROTATIONS = (0, 90, 180, 270)
FETCH = "point data.root at the complete data set (`mela download` fetches it)"


def split_of_classes(name: str) -> dict[str, str]:
    """Return the published split of every class of a benchmark, ``{class: split}``, classes sorted."""
    table = resources.files("mela.sources").joinpath("splits", f"{name}.csv")
    return parse_split_table(table.read_text(encoding="utf-8"), where=f"{name}.csv")


def omniglot(root: Path, *, rotations: bool = False, download: bool = False) -> ImageSource:
    """Open Omniglot: 1623 characters of 50 alphabets with 20 drawings each, as bright strokes on black.

    Parameters
    ----------
    root : Path
        Holds ``images_background`` and ``images_evaluation``, as folders
        (``images_background/<alphabet>/<character>/<drawing>.png``) or as the published zip files, either directly or
        in ``omniglot-py`` as torchvision leaves them. Zip files are checksummed and unpacked beside themselves.
    rotations : bool
        Whether the drawings turned by 90, 180 and 270 degrees count as further classes ("<class>@90"), in the split of
        the class that they come from.
    download : bool
        Whether to fetch what is missing.

    Returns
    -------
    ImageSource
        Classes are ``background/<alphabet>/<character>`` and ``evaluation/<alphabet>/<character>``.
    """
    home = _omniglot_home(root, download=download)
    rows: list[tuple[str, str, str, int]] = []
    for label, split in split_of_classes("omniglot").items():
        folder = f"images_{label}"
        drawings = [f"{folder}/{name}" for name in list_images(home / folder)]
        _require_count(f"{home}, class {label!r}", len(drawings), OMNIGLOT_IMAGES_PER_CLASS, FETCH)
        rows += [(label, split, name, turn) for turn in (ROTATIONS if rotations else (0,)) for name in drawings]
    return ImageSource(
        splits=[split for _, split, _, _ in rows],
        sources=[_turned(name, turn) for _, _, name, turn in rows],
        load=partial(_load_drawing, home, [(name, turn) for _, _, name, turn in rows]),
        classes=[_turned(label, turn) for label, _, _, turn in rows],
    )


def _turned(name: str, degrees: int) -> str:
    return f"{name}@{degrees}" if degrees else name


def _load_drawing(home: Path, drawings: Sequence[tuple[str, int]], index: int) -> Image.Image:
    name, degrees = drawings[index]
    # The originals are black on white; with strokes as the signal, the empty page and any padding are zero.
    return ImageOps.invert(open_below(home, name).convert("L")).rotate(degrees, expand=True)


def _omniglot_home(root: Path, *, download: bool) -> Path:
    """Return the folder with both parts of Omniglot, unpacked or downloaded if need be."""
    homes = (root, root / "omniglot-py")
    home = next(
        (h for h in homes for part in OMNIGLOT_PARTS if (h / part).is_dir() or (h / f"{part}.zip").is_file()), None
    )
    if home is None and not download:
        raise MelaError(
            f"data.root: expected {' and '.join(OMNIGLOT_PARTS)} (folders or zip files) in {root}, got neither; "
            f"set data.root to the Omniglot folder, or run `mela download omniglot --root {root}`"
        )
    home = home or homes[-1]
    for part in OMNIGLOT_PARTS:
        if not (home / part).is_dir():
            _unpack_omniglot(home, part, download=download)
    return home


def _unpack_omniglot(home: Path, part: str, *, download: bool) -> None:
    archive = home / f"{part}.zip"
    if not download and not archive.is_file():
        raise MelaError(
            f"data.root: expected the folder {part} or {archive.name} in {home}, got neither; "
            "add it, or run `mela download omniglot`"
        )
    from torchvision.datasets import Omniglot

    md5 = Omniglot.zips_md5[part]
    if download:
        fetch(f"{Omniglot.download_url_prefix}/{archive.name}", archive, md5)
    elif checksum(archive) != md5:
        raise MelaError(f"{archive}: expected the MD5 checksum {md5}, got another; run `mela download omniglot`")
    # Unpacked aside and renamed, an interrupted run never leaves a folder that looks complete.
    with tempfile.TemporaryDirectory(dir=home) as aside, zipfile.ZipFile(archive) as file:
        file.extractall(aside)  # which leaves out roots and `..`
        (Path(aside) / part).replace(home / part)


def cifar_fs(root: Path, *, download: bool = False) -> ImageSource:
    """Open CIFAR-FS: the 100 classes of CIFAR-100 as 64 train, 16 val and 20 test classes of 600 images.

    Parameters
    ----------
    root : Path
        Holds ``train/<class>/*.png`` and ``test/<class>/*.png``, or the published archive
        (``cifar-100-python.tar.gz``, or the files of ``cifar-100-python``, which have to be the published ones).
    download : bool
        Whether to fetch the archive where there is neither.
    """
    return _cifar("cifar_fs", root, download=download)


def fc100(root: Path, *, download: bool = False) -> ImageSource:
    """Open FC100: CIFAR-100 as 60 train, 20 val and 20 test classes of 600 images; no superclass lies in two splits.

    Parameters are those of `cifar_fs`.
    """
    return _cifar("fc100", root, download=download)


def _cifar(benchmark: str, root: Path, *, download: bool) -> ImageSource:
    split_of = split_of_classes(benchmark)
    if any((root / part).is_dir() for part in CIFAR_PARTS):
        open_source = partial(open_below, root)
        sources_of = {
            label: [f"{part}/{label}/{name}" for part in CIFAR_PARTS for name in list_images(root / part / label)]
            for label in split_of
        }
    else:
        arrays_of = _cifar_arrays(root, download=download)
        array_of = {source: array for arrays in arrays_of.values() for source, array in arrays.items()}
        open_source = partial(_open_array, array_of)
        sources_of = {label: list(arrays_of.get(label, ())) for label in split_of}
    return source_of_classes(
        split_of,
        sources_of,
        open_source,
        root=root,
        expected=CIFAR_IMAGES_PER_CLASS,
        advice=f"train and test count together; {FETCH}",
    )


def source_of_classes(
    split_of: Mapping[str, str],
    sources_of: Mapping[str, Sequence[str]],
    open_source: Callable[[str], Image.Image],
    *,
    root: Path,
    expected: int | None,
    advice: str,
) -> ImageSource:
    """Return the images of classes, each of which has to have as many as the benchmark.

    Parameters
    ----------
    split_of : mapping
        From class to split.
    sources_of : mapping
        From class to its images.
    open_source : callable
        Opens an image.
    root : Path
    expected : int or None
        None if classes differ.
    advice : str
        How to get the complete data set.
    """
    for label, found in sources_of.items():
        if expected is not None:
            _require_count(f"{root}, class {label!r}", len(found), expected, advice)
    sources = [source for found in sources_of.values() for source in found]
    return ImageSource(
        splits=[split_of[label] for label, found in sources_of.items() for _ in found],
        sources=sources,
        load=partial(load_by_source, open_source, sources),
        classes=[label for label, found in sources_of.items() for _ in found],
    )


def _cifar_arrays(root: Path, *, download: bool) -> dict[str, dict[str, Images]]:
    """Return the published images, ``{class: {source: (32, 32, 3)}}``, train before test, in archive order."""
    if not download and not (root / "cifar-100-python").is_dir() and not (root / "cifar-100-python.tar.gz").is_file():
        raise MelaError(
            f"data.root: expected the folders train and test, or cifar-100-python.tar.gz, in {root}, got neither; "
            f"set data.root to the CIFAR-100 folder, or run `mela download cifar100 --root {root}`"
        )
    from mela.sources.cifar_archive import read_archive

    return read_archive(root, download=download)


def _open_array(arrays: Mapping[str, Images], source: str) -> Image.Image:
    return Image.fromarray(arrays[source])


def _require_count(where: str, got: int, expected: int, advice: str) -> None:
    if got != expected:
        raise MelaError(f"data.root: expected {expected} images in {where}, got {got}; {advice}")
