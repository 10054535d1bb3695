"""Omniglot, CIFAR-FS and FC100, from small stand-ins for the published files."""

import hashlib
import io
import pickle
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from torchvision.datasets import CIFAR100, Omniglot

from mela.errors import MelaError
from mela.sources import benchmarks
from mela.sources.array_pickles import unpickle
from mela.sources.benchmarks import cifar_fs, fc100, omniglot, split_of_classes
from mela.sources.source import ImageSource
from tests.helpers.processes import python

CHARACTERS = {"background/Latin/character01": "train", "evaluation/Tengwar/character02": "test"}
DRAWINGS = 2
BELOW = pytest.mark.parametrize("below", [".", "omniglot-py"])
CIFAR_CLASSES = {"apple": "train", "bee": "test", "cat": "val"}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks of few classes and images."""
    monkeypatch.setattr(
        benchmarks, "split_of_classes", lambda name: CHARACTERS if name == "omniglot" else CIFAR_CLASSES
    )
    monkeypatch.setattr(benchmarks, "OMNIGLOT_IMAGES_PER_CLASS", DRAWINGS)
    monkeypatch.setattr(benchmarks, "CIFAR_IMAGES_PER_CLASS", 3)


def write_omniglot(root: Path) -> None:
    """Drawings as published: one bit per pixel, white, with one black stroke in the upper row."""
    page = Image.fromarray(np.array([[0, 0, 0], [255, 255, 255], [255, 255, 255]], dtype=np.uint8)).convert("1")
    for character in CHARACTERS:
        folder = root / f"images_{character}"
        folder.mkdir(parents=True)
        for i in range(DRAWINGS):
            page.save(folder / f"{i:02d}.png")


def zip_omniglot(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_omniglot(root / "pages")
    checksums = {}
    for part in benchmarks.OMNIGLOT_PARTS:
        archive = root / f"{part}.zip"
        with zipfile.ZipFile(archive, "w") as file:
            for path in sorted((root / "pages" / part).rglob("*.png")):
                file.write(path, path.relative_to(root / "pages"))
        checksums[part] = md5(archive)
    monkeypatch.setattr(Omniglot, "zips_md5", checksums)


def md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


def write_cifar(root: Path) -> None:
    for part, count in (("train", 2), ("test", 1)):
        for label in CIFAR_CLASSES:
            (root / part / label).mkdir(parents=True)
            for i in range(count):
                Image.new("RGB", (32, 32), (i, 0, 200)).save(root / part / label / f"{i:03d}.png")


class OldDtype:
    """With integers in place of booleans, of which NumPy 2.4.0 to 2.4.4 warn, as in the published archive."""

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return np.dtype, ("u1", 0, 1)


def write_cifar_archive(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files as torchvision expects them; pixel values tell train (below 100) from test, and the order in the file."""
    folder = root / CIFAR100.base_folder
    folder.mkdir(parents=True)
    labels = {"train": [2, 0, 1, 0, 1, 2], "test": [1, 0, 2]}
    contents: dict[str, object] = {
        part: {
            "data": np.stack([np.full(3 * 32 * 32, start + i, dtype=np.uint8) for i in range(len(labels[part]))]),
            "fine_labels": labels[part],
            "dtype": OldDtype(),
        }
        for part, start in (("train", 0), ("test", 100))
    }
    contents["meta"] = {"fine_label_names": list(CIFAR_CLASSES)}
    for name, content in contents.items():
        (folder / name).write_bytes(pickle.dumps(content, protocol=4))
    monkeypatch.setattr(CIFAR100, "train_list", [["train", md5(folder / "train")]])
    monkeypatch.setattr(CIFAR100, "test_list", [["test", md5(folder / "test")]])
    monkeypatch.setattr(CIFAR100, "meta", {**CIFAR100.meta, "md5": md5(folder / "meta")})


def pack_cifar(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pack these files as they are published."""
    archive = root / CIFAR100.filename
    with tarfile.open(archive, "w:gz") as file:
        file.add(root / CIFAR100.base_folder, CIFAR100.base_folder)
    monkeypatch.setattr(CIFAR100, "tgz_md5", md5(archive))
    return archive


@pytest.mark.parametrize(
    ("name", "train", "val", "test"), [("omniglot", 1028, 172, 423), ("cifar_fs", 64, 16, 20), ("fc100", 60, 20, 20)]
)
def test_published_splits(name: str, train: int, val: int, test: int) -> None:
    split_of = split_of_classes(name)
    assert Counter(split_of.values()) == {"train": train, "val": val, "test": test}
    assert list(split_of) == sorted(split_of)


@BELOW
def test_omniglot_from_folders(tmp_path: Path, below: str) -> None:
    write_omniglot(tmp_path / below)
    for ignored in ("._00.png", "Thumbs.db"):
        (tmp_path / below / "images_background" / "Latin" / "character01" / ignored).touch()
    source = omniglot(tmp_path)
    assert source.classes == [character for character in CHARACTERS for _ in range(DRAWINGS)]
    assert source.splits == ["train", "train", "test", "test"]
    assert source.sources[0] == "images_background/Latin/character01/00.png"
    np.testing.assert_array_equal(np.asarray(source.load(0)), [[255] * 3, [0] * 3, [0] * 3])


def test_omniglot_rotations_are_further_classes(tmp_path: Path) -> None:
    write_omniglot(tmp_path)
    source = omniglot(tmp_path, rotations=True)
    assert source.classes is not None
    assert len(source) == len(set(source.sources)) == 4 * len(CHARACTERS) * DRAWINGS
    assert set(Counter(source.classes).values()) == {DRAWINGS}
    upright = np.asarray(source.load(source.classes.index("evaluation/Tengwar/character02")))
    for quarter_turns, degrees in enumerate((90, 180, 270), start=1):
        label = f"evaluation/Tengwar/character02@{degrees}"
        i = source.classes.index(label)
        assert source.sources[i] == f"images_evaluation/Tengwar/character02/00.png@{degrees}"
        assert {s for s, c in zip(source.splits, source.classes, strict=True) if c == label} == {"test"}
        np.testing.assert_array_equal(np.asarray(source.load(i)), np.rot90(upright, quarter_turns))


@BELOW
def test_omniglot_zip_files_are_unpacked_once(tmp_path: Path, below: str, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / below
    zip_omniglot(home, monkeypatch)
    first = omniglot(tmp_path)
    for part in benchmarks.OMNIGLOT_PARTS:
        (home / f"{part}.zip").unlink()
    assert len(first) == len(omniglot(tmp_path)) == 4
    assert {path.name for path in home.iterdir()} - {"omniglot-py"} == {*benchmarks.OMNIGLOT_PARTS, "pages"}


def test_omniglot_refuses_a_damaged_zip_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zip_omniglot(tmp_path, monkeypatch)
    (tmp_path / "images_evaluation.zip").write_bytes(b"half a download")
    message = r"images_evaluation\.zip: expected the MD5 checksum .*run `mela download omniglot`$"
    with pytest.raises(MelaError, match=message):
        omniglot(tmp_path)


def test_omniglot_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server, root = tmp_path / "server", tmp_path / "raw"
    zip_omniglot(server, monkeypatch)

    def fetch(url: str, path: Path, checksum: str) -> None:
        assert url.endswith(f"/python/{path.name}")
        assert checksum == md5(server / path.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((server / path.name).read_bytes())

    monkeypatch.setattr(benchmarks, "fetch", fetch)
    assert len(omniglot(root, download=True)) == 4
    assert (root / "omniglot-py" / "images_background").is_dir()


@pytest.mark.parametrize("read", [cifar_fs, fc100])
def test_cifar_from_folders(tmp_path: Path, read: Callable[[Path], ImageSource]) -> None:
    write_cifar(tmp_path)
    source = read(tmp_path)
    assert source.classes == ["apple"] * 3 + ["bee"] * 3 + ["cat"] * 3
    assert source.splits == ["train"] * 3 + ["test"] * 3 + ["val"] * 3
    assert source.sources[:3] == ["train/apple/000.png", "train/apple/001.png", "test/apple/000.png"]
    assert source.load(1).getpixel((0, 0)) == (1, 0, 200)


@pytest.mark.parametrize("packed", [False, True])
def test_cifar_from_the_archive(tmp_path: Path, packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cifar_archive(tmp_path, monkeypatch)
    if packed:
        pack_cifar(tmp_path, monkeypatch)
        (tmp_path / CIFAR100.base_folder).rename(tmp_path / "gone")
    source = cifar_fs(tmp_path)
    assert source.classes == ["apple"] * 3 + ["bee"] * 3 + ["cat"] * 3
    assert source.sources[:3] == ["train/apple/000.png", "train/apple/001.png", "test/apple/000.png"]
    levels = [np.asarray(source.load(i)).max() for i in range(9)]
    assert levels == [1, 3, 101, 2, 4, 100, 0, 5, 102]


@pytest.mark.parametrize("spoil", ["", "test"])
def test_cifar_is_fetched_where_it_is_not_whole(tmp_path: Path, spoil: str, monkeypatch: pytest.MonkeyPatch) -> None:
    server, root = tmp_path / "server", tmp_path / "raw"
    write_cifar_archive(server, monkeypatch)
    archive = pack_cifar(server, monkeypatch)
    root.mkdir()
    (server / CIFAR100.base_folder).rename(root / CIFAR100.base_folder)
    fetched = []

    def fetch(url: str, path: Path, checksum: str) -> None:
        fetched.append(url)
        path.write_bytes(archive.read_bytes())

    monkeypatch.setattr("mela.sources.cifar_archive.fetch", fetch)
    if spoil:
        (root / CIFAR100.base_folder / spoil).write_bytes(b"half")
        with pytest.raises(MelaError, match=r"test: expected the MD5 checksum .*; run `mela download cifar100`$"):
            cifar_fs(root)
    assert len(cifar_fs(root, download=True)) == 9
    assert len(cifar_fs(root)) == 9
    assert fetched == ([CIFAR100.url] if spoil else [])


def test_cifar_archive_that_is_not_the_published_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cifar_archive(tmp_path, monkeypatch)
    monkeypatch.setattr(CIFAR100, "test_list", [["test", "0" * 32]])
    with pytest.raises(MelaError, match=r"cifar-100-python/test: expected the MD5 checksum 0+, got \w+; run `mela "):
        cifar_fs(tmp_path)


DOWNLOAD = r".*run `mela download \w+ --root .*`$"


@pytest.mark.parametrize(
    ("data", "remove", "expected"),
    [
        ("omniglot", "", rf"data\.root: expected images_background and images_evaluation {DOWNLOAD}"),
        (
            "omniglot",
            "images_evaluation",
            r"data\.root: expected the folder images_evaluation or images_evaluation\.zip in ",
        ),
        ("omniglot", "images_evaluation/Tengwar/character02", r"class 'evaluation/Tengwar/character02', got 0; "),
        ("omniglot", "images_evaluation/Tengwar/character02/01.png", r"data\.root: expected 2 images .*, got 1; "),
        ("fc100", "", rf"data\.root: expected the folders train and test, or cifar-100-python{DOWNLOAD}"),
        ("fc100", "test", r"data\.root: expected 3 images in .*'apple'.*, got 2; "),
        ("fc100", "train/bee", r"'bee'.*, got 1; "),
        ("fc100", "train/cat/001.png", r"'cat'.*, got 2; "),
    ],
)
def test_what_is_incomplete(tmp_path: Path, data: str, remove: str, expected: str) -> None:
    write, read = {"omniglot": (write_omniglot, omniglot), "fc100": (write_cifar, fc100)}[data]
    root = tmp_path / "root"
    write(root)
    (root / remove).rename(tmp_path / "gone")
    with pytest.raises(MelaError, match=expected) as caught:
        read(root)
    assert "\n" not in str(caught.value)
    assert str(root) in str(caught.value)


PYTHON_2 = (
    b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\nq\x04K\x00\x85q\x05U\x01b"
    b"\x87q\x06Rq\x07(K\x01K\x02K\x03\x86q\x08cnumpy\ndtype\nq\tU\x02u1q\nK\x00K\x01\x87q\x0bRq\x0c(K\x03U\x01|NNNJ\xff\xff"
    b"\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x06\x00\x7f\x80\xfe\xff\x01tbU\x0bfine_labels]q\r(K\x03K\x05eu."
)


def test_pickles_of_python_2_are_read() -> None:
    """Arrays as the published files have them: bytes are text there."""
    found = unpickle(io.BytesIO(PYTHON_2), "train")
    np.testing.assert_array_equal(found["data"], np.array([[0, 127, 128], [254, 255, 1]], dtype=np.uint8))
    assert found["fine_labels"] == [3, 5]


class Hostile:
    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return exec, ("import pathlib; pathlib.Path('hacked').touch()",)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (pickle.dumps({"data": Hostile()}), "builtins.exec is no part of an array"),
        (b"cos\nsystem\n(S'touch hacked'\ntR.", "os.system is no part of an array"),
        (b"cnumpy\nload\n(S'x'\ntR.", "numpy.load is no part of an array"),
        (PYTHON_2[:100], "pickle"),
        (b"", "Ran out of input"),
        (pickle.dumps([1]), "expected a pickle of a dictionary, got list"),
    ],
)
def test_pickles_of_other_things_are_refused(
    content: bytes, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MelaError, match=r"^train: expected a pickle of ") as caught:
        unpickle(io.BytesIO(content), "train")
    assert reason in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["/etc/evil.png", "../../evil.png", "images_background/../../../evil.png"])
def test_archives_do_not_leave_their_folder(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if somebody gets the checksum right."""
    root = tmp_path / "a" / "b"
    zip_omniglot(root, monkeypatch)
    archive = root / "images_background.zip"
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr(name, b"evil")
    monkeypatch.setattr(Omniglot, "zips_md5", Omniglot.zips_md5 | {"images_background": md5(archive)})
    omniglot(root)
    assert not [*tmp_path.glob("*evil*"), *tmp_path.glob("a/*evil*")]
    assert not Path("/etc/evil.png").exists()


@pytest.mark.slow
def test_torchvision_is_imported_only_for_its_archives(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys\n"
        "from mela.sources.benchmarks import cifar_fs\n"
        "from mela.errors import MelaError\n"
        f"try: cifar_fs(pathlib.Path({str(tmp_path)!r}))\n"
        "except MelaError: sys.exit('torchvision' in sys.modules)\n"
        "sys.exit('no error')"
    )
    ended = python("-c", code)
    assert ended.returncode == 0, ended.stderr
