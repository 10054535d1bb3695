"""The one kind of error that users are meant to see, and what they are told of the others that they can put right."""

import errno
import os


class MelaError(ValueError):
    """Something the user can put right.

    The message is one line: where (key, file, row or task), what was expected, what came, and what to do.
    Stage scripts and the command line print it and exit with status 1.
    """

    def __init__(self, message: str) -> None:
        # what it tells of a file may hold line breaks
        super().__init__(message.replace("\r", "\\r").replace("\n", "\\n"))


# as PyTorch says it for CPUs and GPUs, whose errors are RuntimeErrors
OUT_OF_MEMORY = (
    "can't allocate memory",
    "not enough memory",
    "OutOfMemoryError",
    "out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "Failed to CUDA calloc",
)
LESS = "use a machine with more, or lower batch_size or tasks_per_step, raise accumulate, or take smaller images"
ADVICE = {
    errno.EACCES: "check who may read and write it",
    errno.EPERM: "check who may read and write it",
    errno.EROFS: "work in a folder that can be written to",
    errno.ENOSPC: "free some space and run the same command again",
    errno.EDQUOT: "free some space and run the same command again",
    errno.EISDIR: "move what is there away",
    errno.ENOTDIR: "move what is there away",
    errno.EEXIST: "move what is there away",
}


def one_line(error: Exception) -> str:
    """What an error says, in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def interrupted(signal: str) -> str:
    """What a process says when a signal of this name ends it."""
    return f"error: interrupted by {signal}; run the same command again to go on"


def line_of(error: Exception) -> str | None:
    """What users are told of an error that they can put right; None for any other, which is a defect."""
    if isinstance(error, OSError) and error.errno in ADVICE:
        where = f"{error.filename}: " if error.filename else ""
        return f"error: {where}{os.strerror(error.errno)}; {ADVICE[error.errno]}"
    if isinstance(error, MelaError | OSError):
        return f"error: {one_line(error)}"
    if isinstance(error, MemoryError) or any(sign in repr(error) for sign in OUT_OF_MEMORY):
        return f"error: out of memory: {one_line(error)}; {LESS}"
    return None
