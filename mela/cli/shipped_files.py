"""Find the presets and the files of a project, which lie in a clone's root or, in a wheel, inside the package."""

from pathlib import Path

HERE = Path("presets")
# what a folder needs to run the pipeline; pyproject.toml has the same for the wheel
OF_A_PROJECT = (
    "dvc.yaml",
    ".dvcignore",
    ".gitignore",
    ".dvc/.gitignore",
    ".dvc/plots/*.json",
    "data/raw/features/README.md",
    "data/raw/glyphs/README.md",
    "data/raw/weights/README.md",
    "stages/**/*.py",
)


def shipped() -> Path:
    """Return the folder of what comes with MeLa: of a clone the root, also where it is installed editable."""
    package = Path(__file__).parents[1]
    inside = package / "project"
    return inside if inside.is_dir() else package.parent


def project_files() -> dict[str, Path]:
    """Return the files that are the same in all projects, by their paths there, sorted."""
    root = shipped()
    found = [path for pattern in OF_A_PROJECT for path in root.glob(pattern)]
    return {path.relative_to(root).as_posix(): path for path in sorted(found)}


def where_it_runs() -> str:
    """Return where `dvc repro` works, as the end of a sentence; nothing in a project."""
    return "" if Path("dvc.yaml").is_file() else " in a project, which `mela init` makes"


def preset_files(folder: Path | None = None) -> dict[str, Path]:
    """Return the files of all presets by their names, sorted.

    A preset in the folder ``presets`` of the current directory, where users may have some of their own, comes before
    one of the same name that comes with MeLa.

    Parameters
    ----------
    folder : Path, optional
        Look in this folder alone.
    """
    places = (shipped() / "presets", HERE) if folder is None else (folder,)
    found = {path.stem: path for place in places for path in place.glob("*.yaml")}
    return dict(sorted(found.items()))


def find_preset(name: str) -> Path:
    """Return the file of a preset, named by its path or, without ``.yaml``, by its name alone."""
    path = Path(name)
    return path if path.suffix else preset_files().get(name, HERE / f"{name}.yaml")
