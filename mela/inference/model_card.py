"""Write what users have to know of an exported model, as a page of markdown beside it."""

import hashlib
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.metadata import version
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined

from mela.evaluation.temperature_files import Temperatures
from mela.inference.export import Export
from mela.inference.provenance import Provenance
from mela.models.timm_backbones import PREFIX
from mela.reporting.page.class_names import Names, names_of_classes
from mela.reporting.summary import NAMES, share, tested_on
from mela.runtime.release import own_version

# classes whose labels the card lists
SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class Source:
    """Describe the embedding from which an export was made.

    Attributes
    ----------
    file : str
    sha256 : str
    configuration : mapping
        Arguments of `mela.models.backbones.build_backbone` but for the seed.
    dimensions, parameters : int
        Numbers of features, and of weights that were learned.
    method : str or None
        What has learned it beside a rule of its own, which is left out.
    temperatures : Temperatures or None
        Temperatures of the logistic head, if a file beside the model has them.
    """

    file: str
    sha256: str
    configuration: Mapping[str, Any]
    dimensions: int
    parameters: int
    method: str | None = None
    temperatures: Temperatures | None = None


def model_card(export: Export, source: Source, origin: Provenance | None) -> str:
    """Fill in the card of an export, ``model_card.md.jinja``.

    Parameters
    ----------
    export : Export
    source : Source
    origin : Provenance or None
        None where it is not known.
    """
    environment = Environment(
        autoescape=False,  # noqa: S701  # the card is no HTML, and `as_text` escapes what Markdown would read
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["as_text"] = _as_text
    template = resources.files("mela.inference").joinpath("model_card.md.jinja").read_text(encoding="utf-8")
    return environment.from_string(template).render(
        export=export,
        sha256=hashlib.sha256(export.content).hexdigest(),
        source=source,
        origin=origin,
        timm=PREFIX,
        label_names=NAMES,
        python=platform.python_version(),
        own_version=own_version(),
        version=version,
        share=share,
        tested_on=tested_on,
        numbers=_numbers,
        largest_classes=_largest_classes,
    )


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)


def _largest_classes(listing: pd.DataFrame) -> tuple[dict[int, Names], bool]:
    """Return what people called the largest classes, and whether these are all.

    The people themselves are not named, since cards are published.
    """
    sizes = listing[listing["clustered"]]["cluster"].value_counts()
    names = names_of_classes(listing)
    largest = sorted(names, key=lambda cluster: (-int(sizes[cluster]), cluster))[:SHOWN]
    return {cluster: names[cluster] for cluster in largest}, len(largest) == len(names)


def _as_text(name: str) -> str:
    """Escape a name so that markdown shows it as it is."""
    entities = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
    return re.sub(r"[!-/:-@\[-`{-~]", lambda found: entities.get(found[0], f"\\{found[0]}"), name)
