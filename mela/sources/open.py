"""Open the data source that the parameters name."""

from pathlib import Path

from mela.errors import MelaError
from mela.params import DataParams, DatasetParams, PeopleParams
from mela.sources.aircraft import aircraft
from mela.sources.benchmarks import cifar_fs, fc100, omniglot
from mela.sources.class_folders import folder, folder_names
from mela.sources.cub import cub
from mela.sources.meta_album import album_names
from mela.sources.mini_imagenet import MINI_IMAGENET
from mela.sources.mixed import mixed
from mela.sources.source import ImageSource
from mela.sources.superclasses import superclass_of_classes
from mela.sources.tiered_imagenet import TIERED_IMAGENET
from mela.sources.vgg_flower import VGG_FLOWER


def open_source(data: DataParams, *, shots: int) -> ImageSource:
    """Open the source ``data.name`` at ``data.root``.

    Parameters
    ----------
    data : DataParams
    shots : int
        Support images of a task class where a tasks table gives no roles.
    """
    if data.people is not None:
        return _open_by_people(data, data.people, shots=shots)
    root = Path(data.root)
    match data.name:
        case "glyphs":
            from mela.sources.glyphs import glyphs

            return glyphs(images_per_class=data.images_per_class, size=data.image_size, seed=data.seed)
        case "omniglot":
            return omniglot(root, rotations=data.rotations)
        case "cifar_fs":
            return cifar_fs(root)
        case "fc100":
            return fc100(root)
        case "mini_imagenet":
            return MINI_IMAGENET.open(root)
        case "tiered_imagenet":
            return TIERED_IMAGENET.open(root)
        case "cub":
            return cub(boxes=data.boxes).open(root)
        case "aircraft":
            return aircraft(boxes=data.boxes).open(root)
        case "vgg_flower":
            return VGG_FLOWER.open(root)
        case "mixed":
            return mixed({one.root: _open_one(data, one, shots=shots) for one in data.datasets or ()})
        case "folder" | "meta_album":
            table, names = _table(data, root), folder_names if data.name == "folder" else album_names
            return folder(root, split_table=table, split_fractions=data.split_fractions, seed=data.seed, names=names)
        case "tasks":
            from mela.sources.task_folders import tasks

            table = _table(data, root)
            return tasks(root, table=table, shots=shots, split_fractions=data.split_fractions, seed=data.seed)


def _open_one(data: DataParams, dataset: DatasetParams, *, shots: int) -> ImageSource:
    """Open one of several data sets, whose folder must be below the root itself, since DVC follows no links."""
    root = Path(data.root) / dataset.root
    for path in (root, *root.parents[: len(Path(dataset.root).parts) - 1]):
        if path.is_symlink():
            raise MelaError(
                f"data.datasets: expected real folders below data.root ({data.root}), got the symbolic link {path}; "
                "put a copy in its place, or link data.root itself"
            )
    own = dataset.model_dump(exclude={"root"}) | {"root": root.as_posix(), "datasets": None}
    return open_source(data.model_copy(update=own), shots=shots)


def _open_by_people(data: DataParams, people: PeopleParams, *, shots: int) -> ImageSource:
    """Open the source of tasks each of which is one person's."""
    form = {"images_per_class": data.images_per_class, "shots": shots, "size": data.image_size, "seed": data.seed}
    if data.name == "glyphs":
        from mela.sources.glyphs_by_people import glyphs_by_people

        return glyphs_by_people(people, **form)
    from mela.sources.photographs_by_people import photographs_by_people

    photographs = open_source(data.model_copy(update={"people": None}), shots=shots)
    superclasses = superclass_of_classes() if people.subclasses else None
    return photographs_by_people(people, photographs, superclasses=superclasses, **form)


def _table(data: DataParams, root: Path) -> Path | None:
    """Return the path of ``data.table``, whose links must not leave the folder."""
    if not data.table:
        return None
    table = root / data.table
    if table.exists() and not table.resolve().is_relative_to(root.resolve()):
        raise MelaError(
            f"data.table: expected a file below data.root ({root}), got {data.table!r}, a link to "
            f"{str(table.resolve())!r}; put a copy in its place"
        )
    return table
