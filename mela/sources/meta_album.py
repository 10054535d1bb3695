"""Read images in the layout of Meta-Album (Ullah et al., 2022): a folder of images and a table of their classes."""

import json
from pathlib import Path

from mela.errors import MelaError, one_line
from mela.io.reading_errors import Report
from mela.io.text_tables import find_separator, folded, parse_csv, read_header, read_text
from mela.sources.image_files import walk_images

IMAGES, LABELS, INFO = "images", "labels.csv", "info.json"
TABLES = (LABELS, INFO)
COLUMNS = {"image_column_name": "FILE_NAME", "category_column_name": "CATEGORY"}


def is_meta_album(root: Path) -> bool:
    """Tell whether a folder has images and a table with the usual columns, or with those that its info.json names."""
    if not (root / IMAGES).is_dir() or not (root / LABELS).is_file():
        return False
    wanted = _columns(root)
    try:
        text = read_text(root / LABELS, "data.root")
    except MelaError:
        return False
    # a header that differs in case or blanks is refused by the reader, which says what to rename
    return set(map(folded, wanted)) <= set(map(folded, read_header(text, find_separator(text, wanted))))


def album_names(root: Path, report: Report) -> dict[str, list[str]]:
    """Return the images of each class, by their path below `root`, as a table tells them.

    Parameters
    ----------
    root : Path
        Holds the folder ``images``, and ``labels.csv`` with the columns ``FILE_NAME`` and ``CATEGORY``. An
        ``info.json`` may give the columns other names, as ``image_column_name`` and ``category_column_name``.
    report : callable
        Told of each problem; what is wrong is left out.
    """
    image_column, class_column = _columns(root)
    path = root / LABELS
    table = parse_csv(
        read_text(path, "data.root"), where=str(path), required=(image_column, class_column), report=report
    )
    there = {f"{folder}/{name}" if folder else name for folder, names in walk_images(root / IMAGES) for name in names}
    seen = set[str]()
    names_of: dict[str, list[str]] = {}
    rows = zip(table.lines, table.columns[image_column], table.columns[class_column], strict=True)
    for line, name, label in ((line, name.strip(), label.strip()) for line, name, label in rows):
        if not label:
            report(f"{path}, line {line}: expected a class, got an empty cell; fill it or remove the row")
        elif name in seen:
            report(f"{path}, line {line}: expected every image once, got {name!r} again; remove the row")
        elif name not in there:
            report(f"{path}, line {line}: expected an image in {root / IMAGES}, got no {name!r}; add it")
        else:
            seen.add(name)
            names_of.setdefault(label, []).append(f"{IMAGES}/{name}")
    return {label: sorted(names) for label, names in sorted(names_of.items())}


def _columns(root: Path) -> tuple[str, str]:
    """Return the columns of images and of classes."""
    path, info = root / INFO, {}
    if path.is_file():
        try:
            info = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise MelaError(f"{path}: expected JSON, got {one_line(error)}; correct or remove it") from None
        if not isinstance(info, dict):
            raise MelaError(f"{path}: expected a JSON object, got {type(info).__name__}; correct or remove it")
    image, label = (str(info.get(key, usual)) for key, usual in COLUMNS.items())
    return image, label
