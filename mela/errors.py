"""Define the errors that users see, and what they are told of others that they can put right."""

import errno
import io
import os
import sys


class MelaError(ValueError):
    """Report something that the user can put right.

    The message is one line: where (key, file, row or task), what is wrong, and what to do.
    Stage scripts and the command line print it and exit with status 1.
    """

    def __init__(self, message: str) -> None:
        # what it tells of a file may hold line breaks, and orders to the terminal
        super().__init__(plain(message))


class DivergedError(MelaError):
    """Report a diverged training: losses, weights or features are not finite, or a head has no solution."""


class UnsolvableError(ValueError):
    """Report that a head has no solution for one of several tasks, number `problem` of the batch, from 0."""

    def __init__(self, problem: int, message: str) -> None:
        super().__init__(message)
        self.problem = problem


def plain(text: str) -> str:
    """Return a text in one line of printable characters, with escapes for all others."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


# as PyTorch says it for CPUs and GPUs, whose errors are RuntimeErrors
OUT_OF_MEMORY = (
    "can't allocate memory",
    "not enough memory",
    "OutOfMemoryError",
    "out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "Failed to CUDA calloc",
    "Cannot allocate memory",
    "bad_alloc",
    "could not create a primitive",
    "Failed to launch worker thread",
    "can't start new thread",
    # of the loader, while libraries are imported
    "failed to map segment from shared object",
)
LESS = (
    "use a machine with more, lower data.image_size, embed.tasks_per_step or pretrain.batch_size, or raise "
    "embed.accumulate or pretrain.accumulate"
)
SPACE = "free some space and run the same command again"
ADVICE = {
    errno.EACCES: "check who may read and write it",
    errno.EPERM: "check who may read and write it",
    errno.EROFS: "work in a folder that can be written to",
    errno.ENOSPC: SPACE,
    errno.EDQUOT: SPACE,
    errno.EFBIG: "raise the largest size of files (ulimit -f), or use another file system",
    errno.EISDIR: "move what is there away",
    errno.ENOTDIR: "move what is there away",
    errno.EEXIST: "move what is there away",
    errno.EMFILE: "raise the number of open files (ulimit -n)",
    errno.ENFILE: "end other programs, or raise the system's number of open files",
    errno.EAGAIN: "end other programs, or raise the number of processes (ulimit -u)",
    errno.EIO: "check the disk",
    errno.ENAMETOOLONG: "use a shorter name",
    errno.ELOOP: "put a copy in the place of the link",
    errno.ENOENT: "correct the path, or make it",
}


def one_line(error: Exception) -> str:
    """Return what an error says, in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def interrupted(signal: str) -> str:
    """Return what a process says when a signal of this name ends it."""
    return f"error: interrupted by {signal}; run the same command again to go on"


# no fault of the file that is read
MACHINE = {errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EIO, errno.ENOMEM, errno.ELOOP}


def raise_if_machine(error: Exception, path: object) -> None:
    """Raise an error of reading `path` again if the machine is at fault, and not the file."""
    if out_of_memory(error):
        raise MemoryError(f"{path}: {one_line(error)}") from None
    if isinstance(error, OSError) and error.errno in MACHINE:
        raise type(error)(error.errno, os.strerror(error.errno), str(path)) from None


def out_of_memory(error: Exception) -> bool:
    """Tell whether an error is due to too little memory, of the machine or of a GPU; errors that name files are not."""
    if isinstance(error, MelaError):
        return False
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or any(sign in repr(error) for sign in OUT_OF_MEMORY)


def told(error: Exception) -> str | None:
    """Return the line that tells users of an error that they can put right; None for any other, which is a defect."""
    if out_of_memory(error):
        return plain(f"out of memory: {one_line(error)}; {LESS}")
    if isinstance(error, OSError) and error.errno is not None:
        where = f"{error.filename}: " if error.filename else ""
        advice = ADVICE.get(error.errno, "check the file and the machine")
        return plain(f"{where}{os.strerror(error.errno)}; {advice}")
    if isinstance(error, MelaError | OSError):
        return plain(one_line(error))
    return None


def line_of(error: Exception) -> str | None:
    """Return the line that a program prints when an error ends it; None for a defect."""
    line = told(error)
    return None if line is None else f"error: {line}"


def print_anything() -> None:
    """Print characters that the terminal's encoding lacks as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
