"""The folder of the presets: in a clone it lies in the project's root, and in an installed wheel inside the package."""

from pathlib import Path

HERE = Path("presets")


def find_presets() -> Path:
    """Return the folder of the presets.

    The folder ``presets`` of the current directory comes first, since users of a clone may have presets of their own
    there. Then come the package itself, as a wheel installs it, and the clone that an editable installation points to.
    """
    package = Path(__file__).parent
    places = (HERE, package / "presets", package.parent / "presets")
    return next((place for place in places if any(place.glob("*.yaml"))), HERE)


def find_preset(name: str) -> Path:
    """Return the file of a preset that is named either by its path or, without ``.yaml``, by its name alone."""
    path = Path(name)
    return path if path.suffix else find_presets() / f"{name}.yaml"
