"""Find presets (in a clone's root, or inside the package in a wheel), and say where they can be run."""

from pathlib import Path

HERE = Path("presets")


def where_it_runs() -> str:
    """Return where `dvc repro` works, as the end of a sentence; nothing in a clone of the project."""
    return "" if Path("dvc.yaml").is_file() else " in a clone of the project"


def preset_files(folder: Path | None = None) -> dict[str, Path]:
    """Return the files of all presets by their names, sorted.

    A preset in the folder ``presets`` of the current directory, where users may have some of their own, comes before
    one of the same name in the package, as a wheel installs it, or in the clone that an editable installation names.

    Parameters
    ----------
    folder : Path, optional
        Look in this folder alone.
    """
    package = Path(__file__).parents[1]
    places = (HERE, package / "presets", package.parent / "presets") if folder is None else (folder,)
    found = {path.stem: path for place in reversed(places) for path in place.glob("*.yaml")}
    return dict(sorted(found.items()))


def find_preset(name: str) -> Path:
    """Return the file of a preset, named by its path or, without ``.yaml``, by its name alone."""
    path = Path(name)
    return path if path.suffix else preset_files().get(name, HERE / f"{name}.yaml")
