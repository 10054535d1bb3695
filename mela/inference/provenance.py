"""Find where a model comes from: what it was trained on, and what was measured of it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from ruamel.yaml import YAML

from mela.blocks import read_document
from mela.errors import MelaError, one_line
from mela.evaluation.temperature_files import read_entry
from mela.io.name_tables import LISTING
from mela.io.store import read_json
from mela.io.text_tables import read_text_csv
from mela.params import LABELS, by_todays_names

# which stage knows of a block of the parameters
STAGES = {"data": "images", "tasks": "manifest", "evaluate": "evaluate", "use": "map"}
EMBEDDINGS = {f"{name}.safetensors": name for name in ("initial", *LABELS)}
NAMES = {f"models/{file}": name for file, name in EMBEDDINGS.items()}
TEMPERATURES = Path("models/temperatures.json")


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Describe a run of the pipeline, seen from one of its models.

    Attributes
    ----------
    embedding : str
        Name of the embedding: ``initial``, or the labels that it learned.
    data, tasks, head : mapping
        The blocks ``data``, ``tasks`` and ``evaluate`` of the parameters.
    evaluation : mapping
        Metrics of ``evaluate``; empty where there are none.
    label, scores : mapping
        What is known of the labels that it learned, without truth and by the truth; empty where nothing is.
    listing : DataFrame or None
        All labels as people wrote them (`mela.io.name_tables.LISTING`); None where nobody did, or where the list is of
        other labels than it learned.
    """

    embedding: str
    data: Mapping[str, Any]
    tasks: Mapping[str, Any]
    head: Mapping[str, Any]
    evaluation: Mapping[str, Any]
    label: Mapping[str, Any]
    scores: Mapping[str, Any]
    listing: pd.DataFrame | None = None


def provenance(
    model: Path, *, params: Path, results: Path, lock: Path, temperatures: Path = TEMPERATURES
) -> Provenance | None:
    """Return the last run in this folder if the model is one of its embeddings.

    Where DVC's record knows the content of the model, the parameters are those of the record, since ``params.yaml`` may
    have been changed since. A run without DVC leaves its own record: ``evaluate`` writes the SHA-256 of all models
    beside their temperatures. If there is neither, the name of the file decides.

    Parameters
    ----------
    model : Path
    params : Path
        ``params.yaml``.
    results : Path
        Folder of the metrics.
    lock : Path
        ``dvc.lock``.
    temperatures : Path
        What ``evaluate`` wrote about all models.

    Raises
    ------
    MelaError
        A file exists but is damaged.
    """
    evaluation = _metrics(results / "evaluate/metrics.json")
    embedding, blocks = _recorded(model, lock) if lock.is_file() else (None, {})
    if embedding is None and temperatures.is_file():
        embedding, blocks = _measured(model, temperatures, params, evaluation)
    elif embedding is None and not lock.is_file():
        embedding = NAMES.get(model.as_posix())
        blocks = dict(read_document(params)) if embedding and params.is_file() else {}
    blocks = by_todays_names(blocks)
    if embedding is None or not all(isinstance(blocks.get(name), Mapping) for name in ("data", "tasks", "evaluate")):
        return None
    # the soft ones are shares of these
    labels, listing = embedding.removesuffix("_soft"), results / "labels.csv"
    written = blocks["data"].get("name") == "tasks" and listing.is_file() and blocks.get("use") == labels
    return Provenance(
        embedding=embedding,
        data=blocks["data"],
        tasks=blocks["tasks"],
        head=blocks["evaluate"],
        evaluation=evaluation,
        label=_metrics(results / f"label/{labels}.json"),
        scores=_metrics(results / "score_labels/metrics.json").get(labels, {}),
        listing=read_text_csv(listing, LISTING) if written else None,
    )


def _recorded(model: Path, lock: Path) -> tuple[str | None, dict[str, Any]]:
    """Return which model of the last run of ``evaluate`` this is, and the parameters of that run."""
    try:
        stages = YAML(typ="safe").load(lock.read_text(encoding="utf-8"))["stages"]
        used = {str(entry["path"]): entry["md5"] for entry in stages["evaluate"]["deps"] if "md5" in entry}
        blocks = {name: stages[stage]["params"]["params.yaml"][name] for name, stage in STAGES.items()}
    # what a damaged file holds may be of any type
    except Exception as error:
        raise MelaError(
            f"{lock}: expected DVC's record of a whole run, got {one_line(error)}; run `dvc repro`"
        ) from None
    # DVC knows files by it
    md5 = hashlib.md5(model.read_bytes(), usedforsecurity=False).hexdigest()
    return next((name for path, name in NAMES.items() if used.get(path) == md5), None), blocks


def _measured(
    model: Path, temperatures: Path, params: Path, evaluation: Mapping[str, Any]
) -> tuple[str | None, dict[str, Any]]:
    """Return which model of the last run of ``evaluate`` this is, without DVC, and the parameters as they are now."""
    found = read_entry(temperatures, model)
    embedding = None if found is None else EMBEDDINGS.get(found[0])
    if found is None or embedding is None or not params.is_file():
        return None, {}
    fitted = evaluation.get("calibration", {}).get(embedding, {})
    known = {f"{shots}_shot": temperature for shots, temperature in found[1].temperatures.items()}
    if known != {name: values["temperature"] for name, values in fitted.items() if values["temperature"] is not None}:
        # the metrics are of another run
        return None, {}
    blocks = dict(read_document(params))
    head = blocks.get("evaluate")
    # which may have been changed since
    return embedding, blocks | ({"evaluate": head | {"C": found[1].C}} if isinstance(head, dict) else {})


def _metrics(path: Path) -> Mapping[str, Any]:
    return read_json(path) if path.is_file() else {}
