"""Store a fitted labeler as safetensors arrays and a JSON file that describes them, without pickle."""

import hashlib
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save
from scipy.sparse import csr_array

from mela.errors import MelaError, one_line, raise_if_machine
from mela.io.atomic import replacing
from mela.io.store import read_json, write_json
from mela.labeling.learn_labeler import LearnLabeler
from mela.labeling.memberships import Memberships
from mela.labeling.merge_labeler import MergeLabeler
from mela.labeling.merging import Merged, Phase
from mela.labeling.name_odds import KnownWords, Names
from mela.labeling.shifts import Shifts
from mela.labeling.space import Space
from mela.labeling.task_labeler import TaskLabeler

FORMAT = "mela.labeler/1"
DESCRIPTION = "labeler.json"
ARRAYS = "arrays.safetensors"
RERUN = "rerun the stage that makes it, or save the labeler again"

Arrays = dict[str, npt.NDArray[Any]]


def save_labeler(folder: Path, labeler: TaskLabeler, order: npt.NDArray[np.int64] | None = None) -> None:
    """Write what `predict` and `predict_proba` need, without samples and their labels.

    Where names have changed the clusters, the files also have which of the fitted task classes are named alike, and the
    words that count.

    Parameters
    ----------
    folder : Path
        Gets the files ``labeler.json`` and ``arrays.safetensors``.
    labeler : LearnLabeler or MergeLabeler
        Fitted.
    order : int64 (n_clusters,), optional
        New numbers of the clusters: number v is what the labeler calls ``order[v]``.
    """
    if order is None:
        order = np.arange(len(labeler.cluster_centers_))
    space, model = labeler.space_, labeler.memberships_
    merged, shifts, names, words = isinstance(labeler, MergeLabeler), None, None, None
    if merged:
        space, shifts, names, words = labeler.merged_.space, labeler.shifts_, labeler._names, labeler._words
    told: dict[str, Any] | None = None
    arrays: Arrays = {"centers": labeler.cluster_centers_[order], "counts": labeler.counts_[order]}
    if space is not None:
        arrays |= {f"space.{field.name}": getattr(space, field.name) for field in fields(Space)}
    if shifts is not None and len(shifts.variances):
        arrays |= {f"shifts.{field.name}": getattr(shifts, field.name) for field in fields(Shifts)}
    if model is not None:
        arrays |= {f"memberships.{name}": getattr(model, name)[order].copy() for name in ("weights", "sums", "counts")}
    if names is not None and words is not None:
        written = words.written.tocoo()
        arrays |= {"names.groups": names.groups, "names.owners": names.owners}
        of_clusters = np.argsort(order)[written.col]
        arrays |= {"names.written": written.data, "names.rows": written.row, "names.clusters": of_clusters}
        told = {"concentration": names.concentration, "words": words.groups}
    parameters = labeler.get_params()
    if not isinstance(parameters.get("random_state"), (int, np.integer, type(None))):
        # a generator is no number, and prediction draws nothing
        parameters["random_state"] = None
    content = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    with replacing(folder / ARRAYS) as temporary:
        temporary.write_bytes(content)
    # which is written last and names the arrays, so that those of another run are noticed
    write_json(
        folder / DESCRIPTION,
        {
            "format": FORMAT,
            "sha256": hashlib.sha256(content).hexdigest(),
            "parameters": {
                name: value.item() if isinstance(value, np.generic) else value for name, value in parameters.items()
            },
            "n_features_in": int(labeler.n_features_in_),
            "merged": merged,
            "class_size": labeler.class_size_,
            "memberships": None if model is None else {"gamma": model.gamma, "novelty": model.novelty},
            **({} if told is None else {"names": told}),
        },
    )


def load_labeler(folder: str | Path = "models/labelers/merged") -> TaskLabeler:
    """Read a fitted labeler, which predicts as the saved one did.

    Attributes that tell of the samples, such as ``labels_`` and ``task_classes_``, are not there.

    Raises
    ------
    MelaError
        A file is missing or damaged, is of another format, or does not belong to the other one.
    """
    folder = Path(folder)
    about = read_json(folder / DESCRIPTION)
    if about.get("format") != FORMAT:
        raise MelaError(
            f"{folder / DESCRIPTION}: expected a labeler of the format {FORMAT}, got {about.get('format')!r}; {RERUN}"
        )
    arrays = _read_arrays(folder / ARRAYS, about.get("sha256"))
    try:
        return _restored(about, arrays)
    # what a changed description holds may be of any type
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        got = f"none called {error}" if isinstance(error, KeyError) else one_line(error)
        raise MelaError(f"{folder}: expected the parts of a fitted labeler, got {got}; {RERUN}") from None


def _read_arrays(path: Path, digest: object) -> Arrays:
    try:
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != digest:
            raise MelaError(f"{path}: expected the arrays that {DESCRIPTION} beside it names, got others; {RERUN}")
        return load(content)
    except MelaError:
        raise
    except FileNotFoundError:
        raise MelaError(f"{path}: no such file; run `dvc repro`, or the stage that makes it, first") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise_if_machine(error, path)
        raise MelaError(f"{path}: expected a safetensors file, got {one_line(error)}; {RERUN}") from None


def _restored(about: dict[str, Any], arrays: Arrays) -> TaskLabeler:
    kind = MergeLabeler if about["merged"] else LearnLabeler
    # files of before hold the parameters of both
    known = kind().get_params()
    labeler = kind(**{name: value for name, value in about["parameters"].items() if name in known})
    labeler.n_features_in_, labeler.class_size_ = int(about["n_features_in"]), float(about["class_size"])
    labeler.cluster_centers_, labeler.counts_ = arrays["centers"], arrays["counts"]
    k, m = len(labeler.counts_), labeler.n_features_in_
    _require_shape(arrays, "centers", k, m)
    labeler.space_, labeler.memberships_ = None, None
    if not about["merged"] and about["memberships"] is None:
        return labeler
    space = Space(**{field.name: arrays[f"space.{field.name}"] for field in fields(Space)})
    d = len(space.between)
    _require_shape(arrays, "space.components", m, d)
    _require_shape(arrays, "space.center", m)
    if isinstance(labeler, MergeLabeler):
        labeler.shifts_ = _shifts(arrays, m)
        if "names" in about:
            labeler._names, labeler._words = _names(about["names"], arrays, k)
        none = Phase(n_items=0, odds=np.empty(0), kept=0)
        classes = np.empty(0, dtype=np.int64)
        labeler.merged_ = Merged(
            space=space, points=np.empty((0, d)), assignments=classes, phases=(none, none), fragments=classes
        )
    if about["memberships"] is not None:
        _require_shape(arrays, "memberships.sums", k, d)
        _require_shape(arrays, "memberships.weights", k)
        _require_shape(arrays, "memberships.counts", k)
        labeler.space_ = space
        labeler.memberships_ = Memberships(
            between=space.between,
            weights=arrays["memberships.weights"],
            sums=arrays["memberships.sums"],
            counts=arrays["memberships.counts"],
            gamma=float(about["memberships"]["gamma"]),
        )
    return labeler


def _shifts(arrays: Arrays, m: int) -> Shifts | None:
    """Return the shifts of a labeler of features (m,); None if it has seen none."""
    if "shifts.variances" not in arrays:
        return None
    r = len(arrays["shifts.variances"])
    for name, shape in {"center": (m,), "axes": (m, r), "variances": (r,), "back": (r, m)}.items():
        _require_shape(arrays, f"shifts.{name}", *shape)
    return Shifts(**{field.name: arrays[f"shifts.{field.name}"] for field in fields(Shifts)})


def _names(about: dict[str, Any], arrays: Arrays, k: int) -> tuple[Names, KnownWords]:
    """Return the names of the task classes that a labeler of k clusters was fitted to, and the words in them."""
    _require_shape(arrays, "names.owners", *arrays["names.groups"].shape)
    names = Names(
        groups=arrays["names.groups"], owners=arrays["names.owners"], concentration=float(about["concentration"])
    )
    table = arrays["names.written"], (arrays["names.rows"], arrays["names.clusters"])
    groups = {word: int(group) for word, group in about["words"].items()}
    if not all(0 <= group < names.n_groups for group in groups.values()):
        raise ValueError(f"a word of a group that is none of {names.n_groups}")
    return names, KnownWords(groups=groups, written=csr_array(table, shape=(names.n_groups, k)), names=names)


def _require_shape(arrays: Arrays, name: str, *shape: int) -> None:
    if arrays[name].shape != shape:
        raise ValueError(f"{name} of the shape {arrays[name].shape} in place of {shape}")
