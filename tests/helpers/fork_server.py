"""A process that imports the packages of others, does nothing else, and forks into a Python program when asked.

Started as a script with the path of its socket; it ends with its standard input, which whoever started it holds open.
`tests.helpers.forked` says why no library does this.
"""

import atexit
import gc
import json
import logging
import multiprocessing.util
import os
import runpy
import select
import signal
import socket
import sys
import threading
import types
import weakref
from contextlib import suppress
from importlib import import_module
from pathlib import Path

# those of the stages, and what DVC and others import only when they need it; not pygit2, which looks for the user's
# configuration; multiprocessing notes which Python there is
PACKAGES = """
dulwich.porcelain dvc.cachemgr dvc.cli.parser dvc.data_cloud dvc.render.convert dvc.repo.experiments.queue.celery
dvc.repo.index dvc.stage.run dvc_data.index.checkout dvc_render dvc_task.app.filesystem fsspec.implementations.memory
multiprocessing.spawn networkx pyparsing ruamel.yaml s3fs sshfs
array_api_compat.numpy jinja2 lazy_loader matplotlib.backends.backend_svg matplotlib.figure PIL.ImageDraw PIL.ImageOps
psutil pyarrow.pandas_compat pyarrow.parquet pydantic.type_adapter safetensors.torch scipy.io.matlab scipy.optimize
scipy.stats sklearn.cluster sklearn.manifold sklearn.metrics torch._dynamo typer
"""


def asked(path: str) -> list[str]:
    """Return, in a fork for each request, the words that follow `python`; the server itself ends here."""
    asking: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX) as server:
        # whoever waits for the socket finds it once the server listens
        server.bind(f"{path}.new")
        server.listen()
        Path(f"{path}.new").rename(path)
        # a signal only wakes the loop: a handler that did the work could be interrupted by the next one
        ends, wakes = socket.socketpair()
        wakes.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        while sys.stdin not in (ready := select.select([server, ends, sys.stdin], [], [])[0]):
            if ends in ready:
                ends.recv(1 << 16)
                _tell_ends(asking)
            if server not in ready:
                continue
            connection, _ = server.accept()
            text, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
            while text and not text.endswith(b"\n"):
                more = connection.recv(1 << 20)
                text = text + more if more else b""
            # whoever was killed before the request was whole needs nothing
            child = os.fork() if text else None
            if child == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for one in (server, ends, wakes, connection, *asking.values()):
                    one.close()
                return _as_asked(text, streams)
            if child:
                asking[child] = connection
                with suppress(OSError):
                    connection.sendall(f"{child}\n".encode())
            for stream in streams:
                os.close(stream)
    sys.exit()


def _tell_ends(asking: dict[int, socket.socket]) -> None:
    """Tell whoever asked for them how forks have ended."""
    for pid in [*asking]:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with asking.pop(pid) as connection, suppress(OSError):
                connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _as_asked(text: bytes, streams: list[int]) -> list[str]:
    """Make this process what a request asks for: its streams, its variables and its folder."""
    words, folder, environment = json.loads(text)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    os.umask(0o022)
    sys.path[:0] = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    # what a program starts by its own Python is a fork too, where what it starts by name is
    sys.executable = environment.get("PYTHON_EXEC", sys.executable)
    return words


def import_packages() -> None:
    """Import the packages, without most of what they have Python do when it ends.

    It tells how long something took, or frees memory, and takes longer than many a program that a fork runs.
    """
    register, atexit.register = atexit.register, lambda function, *_, **__: function  # type: ignore[assignment]
    for name in PACKAGES.split():
        # where extras are not installed, what needs them does without the head start
        with suppress(ImportError):
            import_module(name)
    atexit.register = register
    for end in (logging.shutdown, multiprocessing.util._exit_function):  # type: ignore[attr-defined]
        atexit.register(end)
    # the first one that a program makes, for a temporary folder perhaps, registers them all again
    weakref.finalize._registry.clear()  # type: ignore[attr-defined]
    weakref.finalize._registered_with_atexit = False  # type: ignore[attr-defined]


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
    import_packages()
    gc.collect()
    gc.freeze()
    run(*asked(sys.argv[1]))
