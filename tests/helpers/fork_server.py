"""A process that imports the packages of others, does nothing else, and forks into a Python program when asked.

Started as a script with the path of its socket; it ends with its standard input, which whoever started it holds open.
"""

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
import types
from contextlib import suppress
from importlib import import_module
from pathlib import Path

# those of the stages, and what DVC imports only when it needs it; not pygit2, which looks for the user's configuration
PACKAGES = """
dulwich.worktree dvc.cli dvc.commands.repro dvc.data_cloud dvc.repo.experiments dvc.stage.run dvc_render networkx
pyparsing ruamel.yaml s3fs sshfs
matplotlib.figure PIL.Image psutil pyarrow.parquet pydantic safetensors.torch scipy.optimize scipy.stats sklearn.cluster
sklearn.manifold sklearn.metrics torch._dynamo typer
"""


def asked(path: str) -> list[str]:
    """Return, in a fork for each request, the words that follow `python`; the server itself ends here."""
    with socket.socket(socket.AF_UNIX) as server:
        # whoever waits for the socket finds it once the server listens
        server.bind(f"{path}.new")
        server.listen()
        Path(f"{path}.new").rename(path)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while sys.stdin not in select.select([server, sys.stdin], [], [])[0]:
            connection, _ = server.accept()
            if os.fork() == 0:
                server.close()
                return _answer(connection)
            connection.close()
    sys.exit()


def _answer(connection: socket.socket) -> list[str]:
    """Return in a fork, while this process waits for it and tells whoever asked its number and how it has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    text, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    while not text.endswith(b"\n"):
        text += connection.recv(1 << 20)
    words, folder, environment = json.loads(text)
    child = os.fork()
    if child:
        for stream in streams:
            os.close(stream)
        with suppress(BrokenPipeError):
            connection.sendall(f"{child}\n".encode())
            connection.sendall(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n".encode())
        os._exit(0)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    os.umask(0o022)
    sys.path[:0] = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    return words


def run(how: str, what: str, *arguments: str) -> None:
    """Run a module or code as Python does, but end without freeing memory, which would copy all of it first."""
    if how == "-u":
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(write_through=True)  # type: ignore[union-attr]
        how, what, *arguments = what, *arguments
    # what Python has there at this time
    sys.argv = [how, *arguments]
    status: object = None
    try:
        if how == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            main = sys.modules["__main__"] = types.ModuleType("__main__")
            exec(what, main.__dict__)
    except SystemExit as end:
        status = end.code
    # waits for threads, as Python does at its end; one that a signal kept from starting is left
    threading._shutdown()  # type: ignore[attr-defined]
    if not isinstance(status, (int, type(None))):
        print(status, file=sys.stderr)
        status = 1
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(int(status or 0))


if __name__ == "__main__":
    del sys.path[0]
    for name in PACKAGES.split():
        # where extras are not installed, what needs them does without the head start
        with suppress(ImportError):
            import_module(name)
    gc.collect()
    gc.freeze()
    run(*asked(sys.argv[1]))
