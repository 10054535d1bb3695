"""Files that appear whole and together, or not at all, and never in the place of a device."""

import os
import signal
from pathlib import Path

import pytest

from mela.errors import MelaError
from mela.io import atomic, store


def test_files_appear_together(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("old")

    def write(*, broken: bool) -> None:
        with atomic.together():
            for path in (first, second):
                with atomic.replacing(path) as temporary:
                    temporary.write_text("new")
                assert not second.exists()
                assert first.read_text() == "old"
            if broken:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(broken=True)
    assert list(tmp_path.iterdir()) == [first]
    write(broken=False)
    assert sorted(tmp_path.iterdir()) == [first, second]
    assert first.read_text() == second.read_text() == "new"


def test_files_of_a_block_within_another_appear_with_those_of_that(tmp_path: Path) -> None:
    def write(*, broken: bool) -> None:
        with atomic.together():
            with atomic.together():
                store.write_text(tmp_path / "inner", "new")
            assert not (tmp_path / "inner").exists()
            store.write_text(tmp_path / "outer", "new")
            if broken:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(broken=True)
    assert not list(tmp_path.iterdir())
    write(broken=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inner", "outer"]


def test_what_an_inner_block_wrote_before_its_error_does_not_appear(tmp_path: Path) -> None:
    def broken() -> None:
        with atomic.together():
            store.write_text(tmp_path / "broken", "new")
            raise KeyError

    with atomic.together():
        store.write_text(tmp_path / "before", "new")
        with pytest.raises(KeyError):
            broken()
        store.write_text(tmp_path / "after", "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["after", "before"]


def test_a_signal_waits_until_all_files_have_appeared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Path.replace

    def interrupted(self: Path, target: Path) -> Path:
        signal.raise_signal(signal.SIGINT)
        return plain(self, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    handler = signal.getsignal(signal.SIGINT)

    def write() -> None:
        with atomic.together():
            for name in ("a", "b", "c"):
                store.write_text(tmp_path / name, "new")

    with pytest.raises(KeyboardInterrupt):
        write()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c"]
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.parametrize("name", ["/dev/null", "/dev/a-new-name.csv", "pipe", "link", "", "/"])
def test_a_file_takes_no_place_of_a_device(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root could rename a file to /dev/null, and all programs of the machine would miss it."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("link").symlink_to("/dev/null")
    # what would go wrong must not go wrong here
    monkeypatch.setattr(Path, "replace", lambda *_: pytest.fail("the place was taken"))
    with (
        pytest.raises(MelaError, match=r"^.*: expected the name of a file, got a .*; give another name$"),
        atomic.replacing(Path(name)) as temporary,
    ):
        pytest.fail(f"asked to write {temporary}")


def test_shared_memory_is_no_device(tmp_path: Path) -> None:
    place = Path("/dev/shm") / f"mela-{os.getpid()}"
    if not place.parent.is_dir():
        pytest.skip("there is no /dev/shm")
    try:
        store.write_text(place, "new")
        assert place.read_text() == "new"
    finally:
        place.unlink(missing_ok=True)
