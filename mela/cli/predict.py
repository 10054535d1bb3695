"""Define ``mela predict``: classify images by a few examples of each class."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mela.errors import MelaError
from mela.io.overwriting import require_apart

if TYPE_CHECKING:
    import pandas as pd

    from mela.inference.classifier import FewShotClassifier

SHOWN = 20
LeaveOut = Callable[[Path, str], object]


def predict(
    support: Annotated[Path, typer.Option(readable=False, help="The examples: a folder <label>/<image>.")],
    query: Annotated[Path, typer.Option(readable=False, help="What to classify: a folder of images, or one image.")],
    model: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            help="An embedding, or what a method of the benchmark has learned.",
            show_default="that of `use` in params.yaml",
        ),
    ] = None,
    head: Annotated[
        str, typer.Option(help="auto: a method's own rule where the model has one, else logistic; or logistic.")
    ] = "auto",
    unknown: Annotated[
        bool, typer.Option("--unknown", help="Give no label to images that are near none of the classes.")
    ] = False,
    out: Annotated[Path, typer.Option(readable=False, help="The csv to write.")] = Path("predictions.csv"),
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first image that cannot be read.")] = False,
) -> None:
    """Classify images by a few examples of each class; print the labels, and write them with all probabilities.

    Files that are no images or cannot be read are left out and named; the exit status is 0 all the same. `--unknown`
    needs the thresholds that the stage `evaluate` leaves beside the model, and adds a column `similarity`: the cosine
    with the nearest class.

    Example: `mela predict --support examples --query new --out predictions.csv`
    """
    from mela.params import UseParams

    model = model or UseParams.model()
    require_apart("--out", out, (support, query, model))
    import numpy as np
    import pandas as pd

    from mela.inference.classifier import FewShotClassifier
    from mela.inference.input_images import readable_blocks
    from mela.io.text_tables import write_text_csv

    left_out: list[str] = []

    def leave_out(path: Path, reason: str) -> None:
        if strict:
            raise MelaError(reason)
        left_out.append(reason if str(path) in reason else f"{path}: {reason}")

    examples, labels = labelled_images(support, leave_out, left_out)
    images = query_images(query, leave_out, left_out)
    classifier = FewShotClassifier.load(model, device, head=head).fit(examples, labels)
    if unknown:
        # what keeps it from telling is told before all images are read
        classifier.predict(examples[:1], unknown=True)
    embedding, similarities = classifier.embedding_, np.full(len(images), np.nan)
    probabilities = np.full((len(images), len(classifier.classes_)), np.nan)
    for rows, block in readable_blocks(images, size=embedding.size, channels=embedding.channels, leave_out=leave_out):
        probabilities[rows] = classifier.predict_proba(block)
        if unknown:
            similarities[rows] = classifier.similarity(block)
    read = np.isfinite(probabilities).all(axis=1)
    if not read.any():
        raise MelaError(f"--query: expected an image that can be read, got none; {left_out[-1]}")
    best = np.where(read, probabilities.argmax(axis=1), 0)
    named = read & ~(similarities < classifier.threshold_) if unknown else read
    table = pd.DataFrame(
        {
            "path": [image.as_posix() for image in images],
            "label": np.where(named, classifier.classes_[best], ""),
            "probability": probabilities.max(axis=1),
        }
        | ({"similarity": similarities} if unknown else {})
        | {f"p_{label}": column for label, column in zip(classifier.classes_, probabilities.T, strict=True)}
    )
    write_text_csv(out, table)
    _print(table, left_out, out, classifier)


def labelled_images(support: Path, leave_out: LeaveOut, left_out: list[str]) -> tuple[list[Path], list[str]]:
    """Return paths and labels of the images below a folder, in the order of their names.

    Parameters
    ----------
    support : Path
    leave_out : callable
        Told every image that cannot be read, and why.
    left_out : list of str
        Gets a line about everything that is no image.

    Raises
    ------
    MelaError
        There is no such folder, a label has no images, an image lies beside or below the folders of labels, or there
        are fewer than two labels.
    """
    from mela.sources.image_files import open_image, require_folder

    require_folder(support, "--support")
    # a label of which all examples are missing would never be predicted
    names_of = _images_below(support, leave_out, left_out, empty_folders=False)
    for folder, names in names_of.items():
        if folder == "" or "/" in folder:
            raise MelaError(
                f"--support: expected {support}/<label>/<image>, got the image {support / folder / names[0]}; "
                "move it into the folder of its label"
            )
    if len(names_of) < 2:
        raise MelaError(
            f"--support: expected the folders of two labels or more in {support}, got only {next(iter(names_of))!r}; "
            "add a folder with examples of what it is not"
        )
    found = []
    for label, names in names_of.items():
        readable = []
        for path in (support / label / name for name in names):
            try:
                open_image(path, str(path))
                readable.append((path, label))
            except MelaError as error:
                leave_out(path, str(error))
        if not readable:
            raise MelaError(f"--support: expected an image of {label!r} that can be read, got none; {left_out[-1]}")
        found += readable
    return [path for path, _ in found], [label for _, label in found]


def query_images(query: Path, leave_out: LeaveOut, left_out: list[str]) -> list[Path]:
    """Return the images in a folder and below it, in the order of their names, or the one image.

    `leave_out` and `left_out` are as in `labelled_images`.

    Raises
    ------
    MelaError
        There is nothing of that name, a folder without an image, or a name that is not valid Unicode.
    """
    try:
        str(query).encode()
    except UnicodeEncodeError:
        raise MelaError(f"--query: expected a name in UTF-8, got {str(query)!r}; rename it") from None
    if query.is_file():
        return [query]
    if not query.is_dir():
        raise MelaError(f"--query: expected a folder of images or an image at {query}, got nothing; correct the path")
    names_of = _images_below(query, leave_out, left_out, empty_folders=True)
    if not names_of:
        raise MelaError(f"--query: expected images in the folder {query}, got none; add some, or correct the path")
    return [query / folder / name for folder, names in names_of.items() for name in names]


def _images_below(root: Path, leave_out: LeaveOut, left_out: list[str], *, empty_folders: bool) -> dict[str, list[str]]:
    """Return the image names of every folder with images below one; other folders are an error or left out."""
    from mela.io.reading_errors import AboutFile, refuse
    from mela.sources.folder_tree import check_files
    from mela.sources.image_files import walk_images

    def report(problem: str) -> None:
        if isinstance(problem, AboutFile):
            leave_out(root / problem.path, problem)
        elif empty_folders:
            left_out.append(problem)
        else:
            refuse(problem)

    def note(path: str, reason: str) -> None:
        left_out.append(f"{root / path}: {reason}")

    def report_special(problem: str) -> None:
        # all others are met where images are read, and hidden ones passed over
        if isinstance(problem, AboutFile) and not any(part.startswith(".") for part in Path(problem.path).parts):
            path = root / problem.path
            if not os.path.isfile(path) and not os.path.isdir(path):  # noqa: PTH112, PTH113
                leave_out(path, problem)

    check_files(root, report=report_special)
    return dict(walk_images(root, report=report, note=note))


def _print(table: "pd.DataFrame", left_out: list[str], out: Path, classifier: "FewShotClassifier") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table("image", "label", "probability")
    for path, label, probability in zip(*(table[name].head(SHOWN) for name in table.columns[:3]), strict=True):
        # as Text: brackets in a name are no markup; an image that could not be read has no probability
        told = "not read" if probability != probability else f"{probability:.3f}"
        none = not label and probability == probability
        shown.add_row(Text(path, overflow="fold"), Text("none of these" if none else label, overflow="fold"), told)
    console = Console()
    console.print(shown)
    if left_out:
        for line in sorted(left_out)[:SHOWN]:
            console.print(Text(f"left out: {line}"), soft_wrap=True)
        rest = len(left_out) - SHOWN
        console.print(f"left out: {rest} more" if rest > 0 else f"left out: {len(left_out)} in all", highlight=False)
    more = f", {len(table) - SHOWN} of them not shown" if len(table) > SHOWN else ""
    head = classifier.head_
    if head == "logistic" and not classifier.calibrated_:
        console.print(f"probabilities are not calibrated: {_why(classifier)}", soft_wrap=True, highlight=False)
    how = "logistic regression" if head == "logistic" else f"the rule of {head}"
    console.print(Text(f"{out}: {len(table)} images{more}, by {how}"), soft_wrap=True)


def _why(classifier: "FewShotClassifier") -> str:
    """Say why a logistic head has no temperature."""
    known = classifier.embedding_.temperatures
    if known is None:
        return "no temperatures.json knows this model; copy it beside the model"
    if not known.temperatures:
        return "its run had no validation tasks to fit a temperature on"
    return f"its temperatures are for C = {known.C:g}, and this head has C = {classifier.C:g}"
