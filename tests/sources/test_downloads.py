"""Downloads from a server that is slow, breaks off, changes its mind, or is not there."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from mela.errors import MelaError
from mela.sources import downloads
from mela.sources.downloads import fetch

CONTENT = np.random.default_rng(0).bytes(300_000)


class Server(ThreadingHTTPServer):
    """Serves one file; `breaks` says after how many bytes each connection ends, None that it does not."""

    content = CONTENT
    ranges = True
    status = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.breaks: list[int | None] = []
        self.asked: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/file.zip"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.asked.append(asked)
        if self.server.status != 200:
            self.send_error(self.server.status)
            return
        begun = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and self.server.ranges else 0
        if begun >= len(self.server.content) and begun:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(self.server.content)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        rest = self.server.content[begun:]
        self.send_response(206 if asked and self.server.ranges else 200)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        end = self.server.breaks.pop(0) if self.server.breaks else None
        self.wfile.write(rest[:end])

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=[0.01])
        thread.start()
        yield running
        running.shutdown()
        thread.join()


MD5 = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()


def test_a_file_is_fetched_once(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "below" / "file.zip"
    for _ in range(2):
        fetch(server.url, path, MD5)
        assert path.read_bytes() == CONTENT
    assert server.asked == [None]
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("ranges", [True, False])
def test_it_goes_on_where_the_connection_broke(server: Server, tmp_path: Path, ranges: bool) -> None:
    """A server that knows no ranges sends everything again."""
    server.breaks, server.ranges = [1000, 200_000 if ranges else 500, 0], ranges
    pauses: list[float] = []
    fetch(server.url, tmp_path / "file.zip", MD5, wait=pauses.append)
    assert (tmp_path / "file.zip").read_bytes() == CONTENT
    assert pauses == [1, 2, 4]
    begun = ["bytes=1000-", "bytes=201000-", "bytes=201000-"] if ranges else ["bytes=1000-", "bytes=500-", None]
    assert server.asked == [None, *begun]


def test_it_goes_on_at_the_next_call(server: Server, tmp_path: Path) -> None:
    server.breaks = [100, 100, 100, 100, 100]
    with pytest.raises(MelaError, match=r"^download: expected to fetch .*, got OSError: the connection ended after "):
        fetch(server.url, tmp_path / "file.zip", MD5, wait=lambda seconds: None)
    assert not (tmp_path / "file.zip").exists()
    fetch(server.url, tmp_path / "file.zip", MD5)
    assert (tmp_path / "file.zip").read_bytes() == CONTENT
    assert server.asked[-1] == "bytes=500-"


def test_a_whole_part_is_only_checked(server: Server, tmp_path: Path) -> None:
    """The process was killed between the last byte and the renaming."""
    (tmp_path / ".file.zip.part").write_bytes(CONTENT)
    fetch(server.url, tmp_path / "file.zip", MD5)
    assert (tmp_path / "file.zip").read_bytes() == CONTENT
    assert server.asked == [f"bytes={len(CONTENT)}-"]


def test_a_part_of_something_longer_is_dropped(server: Server, tmp_path: Path) -> None:
    (tmp_path / ".file.zip.part").write_bytes(CONTENT + b"more")
    fetch(server.url, tmp_path / "file.zip", MD5, wait=lambda seconds: None)
    assert (tmp_path / "file.zip").read_bytes() == CONTENT


@pytest.mark.parametrize("begun", [b"", b"something else"])
def test_another_file_is_refused(server: Server, tmp_path: Path, begun: bytes) -> None:
    """The server has another file, or the part that was there belongs to another."""
    if begun:
        (tmp_path / ".file.zip.part").write_bytes(begun)
    else:
        server.content = CONTENT[::-1]
    (tmp_path / "file.zip").write_bytes(b"old")
    with pytest.raises(MelaError, match=rf"^download: expected .* with the MD5 checksum {MD5}, got \w+; try "):
        fetch(server.url, tmp_path / "file.zip", MD5)
    assert (tmp_path / "file.zip").read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [tmp_path / "file.zip"]


@pytest.mark.parametrize(("status", "attempts"), [(404, 1), (429, 5), (503, 5)])
def test_a_refusal_is_final_and_an_overload_is_not(server: Server, tmp_path: Path, status: int, attempts: int) -> None:
    server.status = status
    with pytest.raises(MelaError, match=rf"^download: .*, got HTTPError: HTTP Error {status}: .*by hand$"):
        fetch(server.url, tmp_path / "file.zip", MD5, wait=lambda seconds: None)
    assert len(server.asked) == attempts


def test_no_server(tmp_path: Path) -> None:
    with pytest.raises(MelaError, match=r"^download: .*, got URLError: .*; check the connection and the disk, or put"):
        fetch("http://127.0.0.1:9/file.zip", tmp_path / "file.zip", MD5, wait=lambda seconds: None)


@pytest.mark.parametrize(
    "url", ["http://example.org/file.zip", "file:///etc/passwd", "http://127.0.0.1:80@evil.example/"]
)
def test_other_addresses_are_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(MelaError, match=r"^download: expected an address with https, got "):
        fetch(url, tmp_path / "file.zip", MD5)


def test_a_server_does_not_lead_to_an_unsafe_address(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def redirect(self: Handler) -> None:
        self.send_response(302)
        self.send_header("Location", "http://example.org/file.zip")
        self.send_header("Content-Length", "0")
        self.end_headers()

    monkeypatch.setattr(Handler, "do_GET", redirect)
    with pytest.raises(MelaError, match=r"^download: expected an address with https, got http://example.org/file.zip"):
        fetch(server.url, tmp_path / "file.zip", MD5)


@pytest.mark.slow
def test_a_stalled_connection_is_an_error(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "SECONDS", 0.2)
    monkeypatch.setattr(Handler, "do_GET", lambda self: threading.Event().wait(1))
    with pytest.raises(MelaError, match=r"^download: .*(Timeout|timed out)"):
        fetch(server.url, tmp_path / "file.zip", MD5, wait=lambda seconds: None)
