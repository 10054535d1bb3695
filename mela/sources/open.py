"""The data source that the parameters name."""

from collections.abc import Callable
from pathlib import Path

from mela.errors import MelaError
from mela.params import DataParams
from mela.sources.source import ImageSource


def open_source(data: DataParams, *, shots: int) -> ImageSource:
    """Open the source ``data.name`` at ``data.root``.

    Parameters
    ----------
    data : DataParams
    shots : int
        Support images of a task class where a tasks table gives no roles.
    """
    root = Path(data.root)
    sources: dict[str, Callable[[], ImageSource]] = {
        "glyphs": lambda: _glyphs(data),
        "omniglot": lambda: _omniglot(data, root),
        "cifar_fs": lambda: _cifar(data, root),
        "fc100": lambda: _cifar(data, root),
        "folder": lambda: _folder(data, root),
        "tasks": lambda: _tasks(data, root, shots),
    }
    return sources[data.name]()


def _glyphs(data: DataParams) -> ImageSource:
    from mela.sources.glyphs import glyphs

    return glyphs(images_per_class=data.images_per_class, size=data.size, seed=data.seed)


def _omniglot(data: DataParams, root: Path) -> ImageSource:
    from mela.sources.benchmarks import omniglot

    return omniglot(root, rotations=data.rotations)


def _cifar(data: DataParams, root: Path) -> ImageSource:
    from mela.sources import benchmarks

    return {"cifar_fs": benchmarks.cifar_fs, "fc100": benchmarks.fc100}[data.name](root)


def _folder(data: DataParams, root: Path) -> ImageSource:
    from mela.sources.class_folders import folder

    table = _table(data, root)
    return folder(root, split_table=table, split_fractions=data.split_fractions, seed=data.seed)


def _tasks(data: DataParams, root: Path, shots: int) -> ImageSource:
    from mela.sources.task_folders import tasks

    table = _table(data, root)
    return tasks(root, table=table, shots=shots, split_fractions=data.split_fractions, seed=data.seed)


def _table(data: DataParams, root: Path) -> Path | None:
    """Where ``data.table`` is, whatever links it takes."""
    if not data.table:
        return None
    table = root / data.table
    if table.exists() and not table.resolve().is_relative_to(root.resolve()):
        raise MelaError(
            f"data.table: expected a file below data.root ({root}), got {data.table!r}, a link to "
            f"{str(table.resolve())!r}; put a copy in its place"
        )
    return table
