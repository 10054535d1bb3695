"""Read CIFAR-100 as published: pickles of arrays in a tar file, without running what a pickle may ask for.

torchvision's CIFAR100, which knows addresses and checksums, unpickles with pickle.load, and this may run code.
"""

import io
import pickle
import tarfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from mela.data.array_types import Images
from mela.errors import MelaError, one_line
from mela.sources.downloads import checksum, fetch

RECONSTRUCT = np.empty(0).__reduce__()[0]
KNOWN = {
    # as NumPy 1 calls it, and so the published files, and NumPy 2
    ("numpy.core.multiarray", "_reconstruct"): RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): RECONSTRUCT,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}


class _Unpickler(pickle.Unpickler):
    """Make arrays and plain Python values, but nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what a pickle names, if it belongs to an array."""
        try:
            return KNOWN[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of an array") from None


def unpickle(content: bytes, where: str) -> dict[str, Any]:
    """Return a dictionary of arrays, lists and text, as Python 2 wrote it.

    Raises
    ------
    MelaError
        The bytes are no such dictionary.
    """
    try:
        with warnings.catch_warnings():
            # NumPy 2.4.0 to 2.4.4 warn of pickles as old as these
            warnings.simplefilter("ignore", np.exceptions.VisibleDeprecationWarning)
            found = _Unpickler(io.BytesIO(content), encoding="latin1").load()
    # what a damaged pickle raises is anything
    except Exception as error:
        raise MelaError(f"{where}: expected a pickle of arrays, got {one_line(error)}; fetch it again") from None
    if not isinstance(found, dict):
        raise MelaError(f"{where}: expected a pickle of a dictionary, got {type(found).__name__}; fetch it again")
    return found


def read_archive(root: Path, *, download: bool) -> dict[str, dict[str, Images]]:
    """Read images ``{class: {source: (32, 32, 3)}}``, train before test, in archive order.

    Parameters
    ----------
    root : Path
        Holds ``cifar-100-python.tar.gz``, or ``cifar-100-python`` as it is unpacked from that.
    download : bool
        Whether to fetch the archive where there is neither.

    Raises
    ------
    MelaError
        A file is missing, or differs from the published one.
    """
    from torchvision.datasets import CIFAR100

    archive, folder = root / CIFAR100.filename, root / CIFAR100.base_folder
    checksums = dict([*CIFAR100.train_list, *CIFAR100.test_list, (CIFAR100.meta["filename"], CIFAR100.meta["md5"])])
    whole = all((folder / name).is_file() and checksum(folder / name) == md5 for name, md5 in checksums.items())
    if whole or not (download or archive.is_file()):
        contents = {name: _published(folder / name, md5).read_bytes() for name, md5 in checksums.items()}
    else:
        if download:
            fetch(CIFAR100.url, archive, CIFAR100.tgz_md5)
        with tarfile.open(_published(archive, CIFAR100.tgz_md5)) as file:
            members = {name: file.extractfile(f"{CIFAR100.base_folder}/{name}") for name in checksums}
            contents = {name: member.read() for name, member in members.items() if member is not None}
    found = {name: unpickle(content, f"{archive}, {name}") for name, content in contents.items()}
    names: list[str] = found[CIFAR100.meta["filename"]][CIFAR100.meta["key"]]
    arrays: dict[str, dict[str, Images]] = {}
    for part in ("train", "test"):
        seen = dict.fromkeys(names, 0)
        images = found[part]["data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        for image, target in zip(images, found[part]["fine_labels"], strict=True):
            label = names[target]
            arrays.setdefault(label, {})[f"{part}/{label}/{seen[label]:03d}.png"] = image
            seen[label] += 1
    return arrays


def _published(path: Path, md5: str) -> Path:
    """Return the path if the file is the published one."""
    if not path.is_file():
        raise MelaError(f"{path}: expected this file, found none; run `mela download cifar100`")
    if (found := checksum(path)) != md5:
        raise MelaError(f"{path}: expected the MD5 checksum {md5}, got {found}; run `mela download cifar100`")
    return path
