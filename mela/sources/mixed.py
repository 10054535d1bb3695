"""Mix several data sets, so that tasks of each of them can be learned together."""

from collections.abc import Mapping

from PIL import Image

from mela.sources.source import ImageSource


def mixed(sources: Mapping[str, ImageSource]) -> ImageSource:
    """Return the images of several sources, all of which know their classes, one source after the other.

    Parameters
    ----------
    sources : mapping of str to ImageSource
        By the name of the data set, which precedes the names of its classes and images.
    """
    parts = [*sources.values()]
    place_of = [(part, index) for part in parts for index in range(len(part))]

    def load(index: int) -> Image.Image:
        part, own = place_of[index]
        return part.load(own)

    return ImageSource(
        splits=[split for part in parts for split in part.splits],
        sources=[f"{name}/{source}" for name, part in sources.items() for source in part.sources],
        load=load,
        classes=[f"{name}/{label}" for name, part in sources.items() for label in part.classes or ()],
        datasets=[name for name, part in sources.items() for _ in part.sources],
        split_of_names={
            f"{name}/{label}": split
            for name, part in sources.items()
            for label, split in (part.split_of_names or {}).items()
        }
        or None,
    )
