"""What one has to know of a model that leaves this project, as a page of markdown beside it."""

import hashlib
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import pandas as pd

from mela.evaluation.temperatures import Temperatures
from mela.inference.export import Export, Format
from mela.inference.provenance import Provenance
from mela.models.timm_backbones import PREFIX
from mela.reporting.page.named import names_of_classes
from mela.reporting.summary import NAMES, share, tested_on

# classes whose labels the card lists
SHOWN = 10
PAPER = "https://arxiv.org/abs/2108.04055"
KINDS = {"onnx": "ONNX", "torch": "a program of torch.export (.pt2), which needs PyTorch and not MeLa"}
NEEDS: dict[Format, tuple[str, ...]] = {
    "onnx": ("mela", "torch", "onnx", "onnxscript", "onnxruntime"),
    "torch": ("mela", "torch"),
}
ONNX_CODE = """\
import numpy as np, onnxruntime
session = onnxruntime.InferenceSession("{file}", providers=["CPUExecutionProvider"])
images = np.random.rand(8, {channels}, {size}, {size}).astype(np.float32)  # yours: from 0 to 1
(features,) = session.run(["features"], {{"images": images}})
print(features.shape)  # (8, {dimensions})
"""
TORCH_CODE = """\
import torch
embedding = torch.export.load("{file}").module()
images = torch.rand(8, {channels}, {size}, {size})  # yours: from 0 to 1
features = embedding(images)
print(tuple(features.shape))  # (8, {dimensions})
"""


@dataclass(frozen=True, kw_only=True)
class Source:
    """The embedding that it was made of.

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
        Of the logistic head, where a file beside the model knows them.
    """

    file: str
    sha256: str
    configuration: Mapping[str, Any]
    dimensions: int
    parameters: int
    method: str | None = None
    temperatures: Temperatures | None = None


def model_card(export: Export, source: Source, origin: Provenance | None) -> str:
    """The card of an export, in markdown.

    Parameters
    ----------
    export : Export
    source : Source
    origin : Provenance or None
        None where it is not known.
    """
    size, channels = source.configuration["size"], source.configuration["channels"]
    colours = "grey levels" if channels == 1 else "red, green and blue"
    facts = [
        ("format", KINDS[export.kind]),
        ("SHA-256", f"`{hashlib.sha256(export.content).hexdigest()}`"),
        ("made from", f"`{source.file}`, SHA-256 `{source.sha256}`"),
        ("architecture", f"{_architecture(source.configuration)}, {source.parameters:,} parameters"),
        *(
            [("method", f"{source.method}: its embedding, without what it has learned besides")]
            if source.method
            else []
        ),
        (
            "input",
            f"`images`, float32 (n, {channels}, {size}, {size}), any n: {colours} from 0 to 1, channels before rows "
            "and columns",
        ),
        ("preparation", f"a centred square, resized to {size} x {size} pixels (Lanczos), as the training images were"),
        (
            "normalisation",
            f"inside the model: less {_numbers(source.configuration['mean'])}, divided by "
            f"{_numbers(source.configuration['std'])}",
        ),
        ("output", f"`features`, float32 (n, {source.dimensions}), not scaled"),
        (
            "checked",
            f"on random images in batches of 1, 2, 7 and 64: within {export.difference:.1e} of the largest feature",
        ),
    ]
    code = (ONNX_CODE if export.kind == "onnx" else TORCH_CODE).format(
        file=export.file, channels=channels, size=size, dimensions=source.dimensions
    )
    return f"""# {export.file}

An embedding for few-shot classification: it turns images into features, in which new classes can be told apart by a few
examples. Made with MeLa ([Wang, Pontil and Ciliberto]({PAPER})).

{_table(("", ""), facts)}
## Use

```python
{code}```

For a new task scale the features to length 1 and fit logistic regression, all classes weighing the same, to those of a
few images of each class.

## Training

{_training(origin)}
## Accuracy

{_accuracy(origin)}
{_calibration(origin, source.temperatures)}
## Licence

The code of MeLa is under the MIT licence. The licence of the data that the model was trained on is for you to state,
and with it on which terms the model may be used: *not stated*.

## Versions

Python {platform.python_version()}, {", ".join(f"{name} {version(name)}" for name in NEEDS[export.kind])}
"""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in [head, *rows]]
    lines.insert(1, "|---" * len(head) + "|")
    return "\n".join(lines) + "\n"


def _architecture(configuration: Mapping[str, Any]) -> str:
    """Say which network it is; the width belongs to networks of this project, and the side to those of timm."""
    name = configuration["name"]
    if not name.startswith(PREFIX):
        return f"{name}, width {configuration['width']}"
    side = configuration["side"]
    return f"{name} for images that the model resizes to {side} x {side} pixels itself (`model.input_size`)"


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)


def _training(origin: Provenance | None) -> str:
    if origin is None:
        return "Not known: this is not a model of the last run in the folder where it was exported.\n"
    data, tasks = origin.data, origin.tasks
    lines = [f"data set: {data['name']}, images of {data['size']} x {data['size']} pixels"]
    if data["name"] == "tasks":
        lines.append("tasks: as the data has them, labelled independently of each other")
    else:
        number = "all" if tasks["train"] is None else f"{tasks['train']:,}"
        lines.append(
            f"tasks: {number} of {tasks['ways']} classes, drawn from the training classes, with {tasks['shots']} + "
            f"{tasks['queries']} images of each"
        )
    if origin.embedding == "initial":
        lines.append("labels: none beside those of each task; learned by ridge regression in each (Eq. 4-5)")
    else:
        labels = origin.evaluation.get("labels", "not known")
        lines.append(f"labels: {NAMES.get(labels, labels)}")
        if labels in ("mela", "mela_soft"):
            lines += _quality(origin)
    return "".join(f"- {line}\n" for line in lines)


def _quality(origin: Provenance) -> list[str]:
    """How good the labels are, as far as it is known."""
    label, scores, lines = origin.label, origin.scores, []
    if "pair_precision" in label:
        right = share(label["pair_precision"], label.get("pair_precision_error"))
        pairs = f"of the pairs in one class {right} belong together" if right else "too few pairs to judge them"
        lines.append(
            f"quality of the labels, judged without any truth: {label['clusters']} classes; {pairs}; "
            f"{label['tasks_clustered']:.1f}% of the tasks used"
        )
    if origin.listing is not None:
        lines.append(_names(origin.listing))
    if "accuracy" in scores:
        lines.append(
            f"against the truth: {scores['true_classes']} classes, clustering accuracy {scores['accuracy']:.1f}%, "
            f"adjusted Rand index {scores['ari']:.3f}"
        )
    return lines


def _names(listing: pd.DataFrame) -> str:
    """Say what people called the largest classes; who they are stays with the data, since cards are published."""
    sizes = listing[listing["clustered"]]["cluster"].value_counts()
    names = names_of_classes(listing)
    largest = sorted(names, key=lambda cluster: (-int(sizes[cluster]), cluster))[:SHOWN]
    classes = [
        f"{cluster}: {', '.join(_as_text(name.label) for name in names[cluster].labels)}"
        f"{' and more' if names[cluster].more else ''}"
        for cluster in largest
    ]
    which = "all classes" if len(classes) == len(names) else f"the {len(classes)} largest classes"
    return f"what people called {which}, by number: {'; '.join(classes)}"


def _as_text(name: str) -> str:
    """Return a name that markdown does not take for anything else."""
    entities = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
    return re.sub(r"[!-/:-@\[-`{-~]", lambda found: entities.get(found[0], f"\\{found[0]}"), name)


def _accuracy(origin: Provenance | None) -> str:
    found = origin.evaluation.get(origin.embedding) if origin else None
    if not origin or not found:
        return "Not measured.\n"
    head = ("setting", "accuracy, %", "95% interval", "test tasks")
    rows = [
        (
            setting.replace("_", "-"),
            f"{values['mean']:.2f}",
            f"± {values['ci95']:.2f}",
            str(origin.evaluation["tasks"][setting]),
        )
        for setting, values in found.items()
    ]
    return (
        f"Of logistic regression (C = {origin.head['C']:g}) on features of length 1, on "
        f"{tested_on(known=origin.data['name'] != 'tasks')}, whose images no training task has; intervals are over "
        f"tasks, of one training.\n\n{_table(head, rows)}"
    )


def _calibration(origin: Provenance | None, temperatures: Temperatures | None) -> str:
    """Say how far probabilities of a logistic head can be trusted, and by which temperatures."""
    found = origin.evaluation.get("calibration", {}).get(origin.embedding, {}) if origin else {}
    rows = [
        (
            setting.replace("_", "-"),
            f"{values['temperature']:.3g}",
            *("not measured" if values[name] is None else f"{values[name]:.1f}" for name in ("ece_before", "ece")),
        )
        for setting, values in found.items()
        if values["temperature"] is not None
    ]
    says = (
        "Divided by the temperature, the logits of {head} give calibrated probabilities; the most probable class "
        "stays the same. Each temperature is fitted on validation tasks."
    )
    if rows:
        head = ("setting", "temperature", "calibration error before, %", "after, %")
        return (
            f"{says.format(head='that head')} The expected calibration error (15 bins) is measured on test tasks.\n\n"
            f"{_table(head, rows)}"
        )
    if temperatures is None:
        return "Probabilities are not calibrated: no `temperatures.json` knows this model; copy it beside the model.\n"
    if not temperatures.temperatures:
        return "Probabilities are not calibrated: there were no validation tasks to fit a temperature on.\n"
    known = [(f"{shots}-shot", f"{value:.3g}") for shots, value in temperatures.temperatures.items()]
    return (
        f"{says.format(head=f'logistic regression (C = {temperatures.C:g})')} The calibration error is not known.\n\n"
        f"{_table(('setting', 'temperature'), known)}"
    )
