"""Download files: check them before use, and resume after a broken connection.

The project has its own download: pooch and torchvision start again from the first byte where a connection broke, and
both follow a server from https to an address without it.
"""

import hashlib
import time
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from mela.errors import MelaError, one_line

ATTEMPTS = 5
SECONDS = 30.0
CHUNK = 2**20


def _require_https(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme != "https" and (parts.scheme, parts.hostname) != ("http", "127.0.0.1"):
        raise MelaError(f"download: expected an address with https, got {url}; report this")


class _Redirects(HTTPRedirectHandler):
    """Follow a server to another address if that is as safe."""

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        """Return the next request."""
        _require_https(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


OPENER = build_opener(_Redirects)


def fetch(url: str, path: Path, md5: str, *, wait: Callable[[float], None] = time.sleep) -> None:
    """Download a file unless it exists; it takes its place once its checksum is right.

    What has come is kept aside, as ``.NAME.part``, and goes on from there at the next attempt, of which there are five
    with pauses that double, or at the next call.

    Parameters
    ----------
    url : str
        Address with https, or http on this machine.
    path : Path
    md5 : str
        Checksum, in hexadecimal digits, as it was published.
    wait : callable
        Given the seconds of a pause.

    Raises
    ------
    MelaError
        The file cannot be fetched, or differs from the published one.
    """
    if path.is_file() and checksum(path) == md5:
        return
    _require_https(url)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    for attempt in range(ATTEMPTS):
        try:
            _continue(url, part)
            break
        except (OSError, HTTPException) as error:
            final = isinstance(error, HTTPError) and 400 <= error.code < 500 and error.code not in (408, 429)
            if final or attempt == ATTEMPTS - 1:
                raise MelaError(
                    f"download: expected to fetch {url}, got {type(error).__name__}: {one_line(error)}; "
                    f"check the connection and the disk, or put the file at {path} by hand"
                ) from error
        wait(2.0**attempt)
    found = checksum(part)
    if found != md5:
        part.unlink()
        raise MelaError(f"download: expected {url} with the MD5 checksum {md5}, got {found}; try again later")
    part.replace(path)


def _continue(url: str, part: Path) -> None:
    """Fetch the rest of a file; raise OSError if the connection ends before the file does."""
    begun = part.stat().st_size if part.exists() else 0
    request = Request(url, headers={"Range": f"bytes={begun}-"} if begun else {})  # noqa: S310
    try:
        response = OPENER.open(request, timeout=SECONDS)
    except HTTPError as error:
        error.close()
        if error.code == 416:  # nothing is left to fetch, or the server has another file
            if begun and error.headers.get("Content-Range", "").rpartition("/")[2] == str(begun):
                return
            part.unlink()
            raise OSError("the server has another file than before") from None
        raise
    with response:
        goes_on = response.status == 206
        expected = response.headers.get("Content-Length")
        taken = 0
        with part.open("ab" if goes_on else "wb") as file:
            while chunk := response.read(CHUNK):
                file.write(chunk)
                taken += len(chunk)
    if expected is not None and taken != int(expected):
        raise OSError(f"the connection ended after {taken} of {expected} bytes")


def checksum(path: Path) -> str:
    """Return the MD5 of a file in hexadecimal digits, which publishers of data sets give."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
