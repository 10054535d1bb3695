"""Tell which version of MeLa this is."""

from importlib.metadata import PackageNotFoundError, version

# what is installed; the name `mela` belongs to another project on the index
NAME = "mela-learn"


def own_version() -> str:
    """Return the version of the installed package; ``unknown`` where only its files are there."""
    try:
        return version(NAME)
    except PackageNotFoundError:
        return "unknown"
