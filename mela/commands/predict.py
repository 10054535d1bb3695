"""Classify images by a few examples of each class."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mela.errors import MelaError

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 20


def predict(
    support: Annotated[Path, typer.Option(readable=False, help="The examples: a folder <label>/<image>.")],
    query: Annotated[Path, typer.Option(readable=False, help="What to classify: a folder of images, or one image.")],
    model: Annotated[
        Path, typer.Option(readable=False, help="An embedding, or what a method of the benchmark has learned.")
    ] = Path("models/final.safetensors"),
    head: Annotated[
        str, typer.Option(help="auto: a method's own rule where the model has one, else logistic; or logistic.")
    ] = "auto",
    out: Annotated[Path, typer.Option(readable=False, help="The csv to write.")] = Path("predictions.csv"),
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
) -> None:
    """Classify images by a few examples of each class; print the labels, and write them with all probabilities.

    Example: `mela predict --support examples --query new --out predictions.csv`
    """
    import pandas as pd

    from mela.classifier import FewShotClassifier
    from mela.text_tables import write_text_csv

    examples, labels = labelled_images(support)
    images = query_images(query)
    classifier = FewShotClassifier.load(model, device, head=head).fit(examples, labels)
    probabilities = classifier.predict_proba(images)
    best = probabilities.argmax(axis=1)
    table = pd.DataFrame(
        {
            "path": [image.as_posix() for image in images],
            "label": classifier.classes_[best],
            "probability": probabilities.max(axis=1),
        }
        | {f"p_{label}": column for label, column in zip(classifier.classes_, probabilities.T, strict=True)}
    )
    write_text_csv(out, table)
    _print(table, out, classifier.head_)


def labelled_images(support: Path) -> tuple[list[Path], list[str]]:
    """Paths and labels of the images below a folder, in the order of their names.

    Raises
    ------
    MelaError
        There is no such folder, a label has no images, an image lies beside or below the folders of labels, or there
        are fewer than two labels.
    """
    from mela.data.files import require_folder, walk_images

    require_folder(support, "--support")
    names_of = dict(walk_images(support))
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
    found = [(support / label / name, label) for label, names in names_of.items() for name in names]
    return [path for path, _ in found], [label for _, label in found]


def query_images(query: Path) -> list[Path]:
    """The images in a folder and the folders below it, in the order of their names, or the one image.

    Raises
    ------
    MelaError
        There is nothing of that name, a folder without an image, or a name that is not valid Unicode.
    """
    from mela.data.files import walk_images

    try:
        str(query).encode()
    except UnicodeEncodeError:
        raise MelaError(f"--query: expected a name in UTF-8, got {str(query)!r}; rename it") from None
    if query.is_file():
        return [query]
    if not query.is_dir():
        raise MelaError(f"--query: expected a folder of images or an image at {query}, got nothing; correct the path")
    return [query / folder / name for folder, names in walk_images(query) for name in names]


def _print(table: "pd.DataFrame", out: Path, head: str) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table("image", "label", "probability")
    for path, label, probability in zip(*(table[name].head(SHOWN) for name in table.columns[:3]), strict=True):
        # as Text: brackets in a name are no markup
        shown.add_row(Text(path, overflow="fold"), Text(label, overflow="fold"), f"{probability:.3f}")
    console = Console()
    console.print(shown)
    more = f", {len(table) - SHOWN} of them not shown" if len(table) > SHOWN else ""
    how = "logistic regression" if head == "logistic" else f"the rule of {head}"
    console.print(Text(f"{out}: {len(table)} images{more}, by {how}"), soft_wrap=True)
