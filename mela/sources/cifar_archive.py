"""Read CIFAR-100 as published: pickles of arrays in a tar file, without running what a pickle may ask for.

torchvision's CIFAR100, which knows addresses and checksums, unpickles with pickle.load, and this may run code.
"""

import io
import tarfile
from pathlib import Path

from mela.data.array_types import Images
from mela.errors import MelaError
from mela.sources.array_pickles import unpickle
from mela.sources.downloads import checksum, fetch


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
    found = {name: unpickle(io.BytesIO(content), f"{archive}, {name}") for name, content in contents.items()}
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
