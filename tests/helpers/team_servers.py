"""Servers that a team may keep its results on, on this machine and for the length of a test."""

import asyncio
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncssh
import boto3
import pytest

AWS_KEYS = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}


@contextmanager
def s3_server(*buckets: str) -> Iterator[tuple[str, Any]]:
    """The address of an S3 server with these buckets, and a client of it."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        address = "http://{}:{}".format(*server.get_host_and_port())
        client = boto3.client("s3", endpoint_url=address, region_name="us-east-1", **AWS_KEYS)
        for bucket in buckets:
            client.create_bucket(Bucket=bucket)
        yield address, client
        client.close()
    finally:
        server.stop()


def keys(home: Path) -> None:
    """A user's key, and a wrong key of every host in ``known_hosts``."""
    folder = home / ".ssh"
    folder.mkdir(parents=True, mode=0o700)
    key = asyncssh.generate_private_key("ssh-ed25519")
    key.write_private_key(str(folder / "id_ed25519"))
    key.write_public_key(str(folder / "id_ed25519.pub"))
    wrong = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    (folder / "known_hosts").write_text(f"* {wrong}", encoding="utf-8")


def name_host(home: Path, host: str, port: int) -> None:
    """Let a host's name lead to a port of this machine."""
    (home / ".ssh/config").write_text(f"Host {host}\n  HostName 127.0.0.1\n  Port {port}\n", encoding="utf-8")


@contextmanager
def sftp_server(root: Path, home: Path) -> Iterator[int]:
    """The port of a server that shows `root` by SFTP, and nothing else, to the user of `home`."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def wait_for(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(timeout=30)

    async def listen() -> asyncssh.SSHAcceptor:
        return await asyncssh.listen(
            "127.0.0.1",
            0,
            server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
            authorized_client_keys=str(home / ".ssh/id_ed25519.pub"),
            sftp_factory=lambda channel: asyncssh.SFTPServer(channel, chroot=str(root).encode()),
        )

    async def close(server: asyncssh.SSHAcceptor) -> None:
        server.close()
        await server.wait_closed()

    try:
        server = wait_for(listen())
        yield server.get_port()
        wait_for(close(server))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def sshd(home: Path) -> Iterator[int]:
    """The port of OpenSSH's server, for the user of `home`; skips the test where it is missing or lets nobody in."""
    program = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin")
    if program is None:
        pytest.skip("no sshd here, so DVC was tried with asyncssh's server only; apt-get install openssh-server")
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(home / "host_key"))
    (home / "host_key").chmod(0o600)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "Port": port,
        "ListenAddress": "127.0.0.1",
        "HostKey": home / "host_key",
        "PidFile": "none",
        "AuthorizedKeysFile": home / ".ssh/id_ed25519.pub",
        "StrictModes": "no",
        "UsePAM": "no",
        "Subsystem": "sftp internal-sftp",
    }
    (home / "sshd_config").write_text(
        "".join(f"{name} {value}\n" for name, value in settings.items()), encoding="utf-8"
    )
    with subprocess.Popen(
        [program, "-D", "-e", "-f", home / "sshd_config"], stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            if refused := asyncio.run(_refused(home, port)):
                server.terminate()
                pytest.skip(f"sshd lets nobody in here ({refused}): {' '.join(server.communicate()[1].split())}")
            yield port
        finally:
            server.terminate()


async def _refused(home: Path, port: int) -> str:
    """Why nobody can log in; empty if somebody can."""
    reason = ""
    for _ in range(50):
        try:
            async with asyncssh.connect(
                "127.0.0.1", port, known_hosts=None, config=None, client_keys=str(home / ".ssh/id_ed25519")
            ):
                return ""
        except OSError as error:
            reason = str(error)
            await asyncio.sleep(0.1)
        except asyncssh.Error as error:
            return str(error)
    return reason
