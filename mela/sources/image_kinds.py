"""Tell which files are images, by their suffix, or by their content if they have none."""

import shlex
import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from PIL import Image

from mela.errors import one_line

IMAGE_SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".avif", ".ppm", ".pgm", ".pbm", ".pnm"}
)
HEIF_SUFFIXES = frozenset({".heic", ".heif"})
ARCHIVE_SUFFIXES = frozenset({".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar"})
# as Pillow names them
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "AVIF", "PPM")
NEEDS_HEIF = (
    "HEIC without the package pillow-heif: run `pip install -e '.[heic]'` in the clone, or `pip install pillow-heif`"
)


def reads_heif() -> bool:
    """Tell whether HEIC images can be read, by the package pillow-heif, and register it with Pillow."""
    return why_no_heif() is None


@cache
def why_no_heif() -> str | None:
    """Return why HEIC images cannot be read, and what to do; None if they can, and register them with Pillow."""
    if find_spec("pillow_heif") is None:
        return NEEDS_HEIF
    try:
        from pillow_heif import register_heif_opener

        register_heif_opener()
    # whatever a broken installation raises, other images can be read
    except Exception as error:
        return (
            f"HEIC, and the package pillow-heif cannot be imported ({type(error).__name__}: {one_line(error)}); "
            "install it again"
        )
    return None


def suffixes() -> list[str]:
    """Return the suffixes of the images that can be read here, sorted."""
    return sorted(IMAGE_SUFFIXES | (HEIF_SUFFIXES if reads_heif() else frozenset()))


def is_image_name(name: str) -> bool:
    """Tell whether a file of this name counts as an image: a known suffix in any case, and no leading dot."""
    suffix = Path(name).suffix.lower()
    return not name.startswith(".") and (suffix in IMAGE_SUFFIXES or (suffix in HEIF_SUFFIXES and reads_heif()))


def is_image(path: Path) -> bool:
    """Tell whether a file counts as an image: by its name, or by its content if its name has no suffix."""
    return is_image_name(path.name) or (not path.suffix and not path.name.startswith(".") and _holds_image(path))


def _holds_image(path: Path) -> bool:
    formats = (*FORMATS, "HEIF") if reads_heif() else FORMATS
    try:
        with warnings.catch_warnings():
            # an image that is too large is an image, and is refused as such
            warnings.simplefilter("ignore")
            with Image.open(path, formats=formats):
                return True
    except Image.DecompressionBombError:
        return True
    # given bytes of other files, decoders raise almost anything
    except Exception:
        return False


def unpack_it(archive: Path) -> str:
    """Return what to do about an archive that is given in place of a folder."""
    folder = archive.with_suffix("")
    if archive.suffix.lower() != ".zip":
        return "unpack it and name the folder"
    command = shlex.join(["unzip", str(archive), "-d", str(folder)])
    return f"unpack it, for instance by `{command}`, and name the folder"


def why_unused(name: str) -> str:
    """Return why a file that `is_image` refuses is not used, in a few words."""
    suffix = Path(name).suffix.lower()
    if name.startswith("."):
        return "hidden"
    if suffix in HEIF_SUFFIXES and (reason := why_no_heif()):
        return reason
    if suffix in ARCHIVE_SUFFIXES:
        return f"an archive ({suffix}), to be unpacked first"
    return f"no image by its suffix {suffix}" if suffix else "no suffix, and no image inside"
