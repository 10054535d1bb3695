"""The one kind of error that users are meant to see, and what they are told when they interrupt."""


def interrupted(signal: str) -> str:
    """What a process says when a signal of this name ends it."""
    return f"error: interrupted by {signal}; run the same command again to go on"


class MelaError(ValueError):
    """Something the user can put right.

    The message is one line: where (key, file, row or task), what was expected, what came, and what to do.
    Stage scripts and the command line print it and exit with status 1.
    """

    def __init__(self, message: str) -> None:
        # what it tells of a file may hold line breaks
        super().__init__(message.replace("\r", "\\r").replace("\n", "\\n"))


def one_line(error: Exception) -> str:
    """What an error says, in one line."""
    return " ".join(str(error).split()) or type(error).__name__
