"""`mela data check` on published benchmarks: it names the form, checks the counts, and writes a preset for them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mela.params import DataParams, check_document
from mela.sources.check.recognised import recognise
from mela.sources.mini_imagenet import CACHE
from tests.helpers.folders import check, people, picture
from tests.helpers.mini_imagenet import WRITERS, save, shrink, write_caches, write_folders, write_tables


@pytest.fixture(autouse=True)
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shrink(monkeypatch)


@pytest.mark.parametrize("form", WRITERS)
def test_every_form_of_mini_imagenet_is_named(form: str) -> None:
    WRITERS[form](Path("mine"))
    found = recognise(Path("mine"))
    assert found is not None
    here = found.recognised(Path("mine"))
    assert here is not None
    done = check("mine", "--write", "params.yaml", preset=None)
    assert (done.status, done.err.count("error")) == (0, 0)
    assert done.out.startswith(
        f"mine: miniImageNet, as {here.title} (--as classes or --as tasks overrules)\n\n  images       12\n"
        "  classes      2 train, 1 val, 1 test, as published\n"
    )
    check_document(Path("params.yaml"))
    data = DataParams.read(Path("params.yaml"))
    assert (data.name, Path(data.root).name, data.table, data.image_size) == ("mini_imagenet", "mine", None, 84)


def test_parameters_are_printed_where_no_file_is_asked_for() -> None:
    write_caches(Path("mine"))
    done = check("mine", preset=None)
    assert "params.yaml: the preset mini_imagenet_cpu with these values (--write params.yaml writes it)\n" in done.out
    assert not Path("params.yaml").exists()
    done = check("mine", "--write", "-", preset=None)
    assert done.out.startswith("# Made by `mela data check mine` from the preset mini_imagenet_cpu.\n")
    assert "mine: miniImageNet" in done.err


def test_what_is_missing_is_told() -> None:
    write_caches(Path("mine"))
    (Path("mine") / CACHE.format("val")).unlink()
    done = check("mine", preset=None)
    assert done.status == 1
    assert done.err.startswith(
        "error: data.root: expected mini-imagenet-cache-train.pkl, -val.pkl and -test.pkl in mine, "
    )
    write_folders(Path("yours"))
    (Path("yours") / "n03/1.png").unlink()
    done = check("yours", preset=None)
    assert (done.status, done.out) == (1, "")
    assert "expected 3 images in yours, class 'n03', got 2" in done.err
    assert done.err.endswith(" (or add --as classes or --as tasks, if these are other images)\n")


@pytest.mark.parametrize(("option", "value"), [("--details", "there"), ("--set-aside", "there")])
def test_options_for_ones_own_images_are_refused(option: str, value: str) -> None:
    write_folders(Path("mine"))
    done = check("mine", option, value, preset=None)
    assert done.status == 1
    assert "mine: this is miniImageNet, for which --details and --set-aside do nothing; leave" in done.err
    assert not Path(value).exists()


def test_it_can_be_taken_for_classes() -> None:
    write_folders(Path("mine"))
    done = check("mine", "--as", "classes", preset=None)
    assert done.out.startswith("mine: taken for classes, one in each folder, as asked for (--as tasks overrules)\n")


def other_tables(root: Path) -> None:
    """Tables of the same columns, which name other classes."""
    write_tables(root)
    for path in root.glob("*.csv"):
        path.write_text(path.read_text().replace("n0", "cat"))


def few_folders(root: Path) -> None:
    save(root / "n01/0.png", "n01", 0)
    picture("cat/0.png", 0)


@pytest.mark.parametrize("write", [other_tables, few_folders, lambda root: people()])
def test_what_only_looks_alike_is_ones_own(write: Callable[[Path], None]) -> None:
    write(Path("mine"))
    assert recognise(Path("mine")) is None
    assert recognise(Path("nothing")) is None


def test_parameters_are_not_written_over_the_data() -> None:
    write_tables(Path("mine"))
    before = (Path("mine") / "train.csv").read_bytes()
    done = check("mine", "--write", "mine/train.csv", preset=None)
    assert done.status == 1
    assert (Path("mine") / "train.csv").read_bytes() == before
