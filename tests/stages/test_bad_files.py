"""What is wrong with a file that another stage wrote ends in one line that says what to do about it."""

import json
import shutil
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from mela.io import feature_tables, store
from mela.labeling.labeler_files import save_labeler
from mela.labeling.merge_labeler import MergeLabeler
from mela.models.files import KIND
from stages.common import paths
from tests.helpers.bad_input import RERUN, Case, Change, cell, cut, one_line_each, params
from tests.helpers.labelers import tasks

Fault = Callable[[Path], Any]


class Bad(NamedTuple):
    """What is wrong with a file, and the message, with HERE for the file's path."""

    fault: Fault
    message: str


def rows(change_rows: Change) -> Fault:
    """Other rows in the table that a stage wrote."""

    def fault(path: Path) -> None:
        schema = pq.read_schema(path).remove_metadata()
        store.write_table(path, change_rows(pd.read_parquet(path)), schema, stage="test", params={})

    return fault


def features(keep: slice = slice(None), value: float = 1.0) -> Fault:
    """Features of some of the images; in row 7 one of them is given."""

    def fault(path: Path) -> None:
        ids, found = feature_tables.read_features(path)
        found[7, 3] = value
        batches = [(ids[keep], found[keep])]
        feature_tables.write_features(path, batches, found.shape[1], stage="extract", params={})

    return fault


def unsigned(path: Path) -> None:
    """Leave out who wrote it, as another program would."""
    pq.write_table(pq.read_table(path).replace_schema_metadata({}), path)


def holed(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:2000] + b"\0" * 50 + content[2050:])


def content(found: str | bytes) -> Fault:
    return lambda path: path.write_bytes(found.encode() if isinstance(found, str) else found)


def copy_of(other: Path) -> Fault:
    return lambda path: shutil.copy(other, path)


def values(**changes: Any) -> Fault:
    """Other values in a file of metrics."""
    return lambda path: path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def scores(**changes: Any) -> Fault:
    """Other values in the scores of one kind of labels."""
    return lambda path: values(merged=json.loads(path.read_text())["merged"] | changes)(path)


def only_of(labels: str, path: Path) -> None:
    """Leave the initial embedding, and the one that was trained on these labels."""
    found = json.loads(path.read_text())
    kept = {"initial", labels}
    for key in ("accuracy", "gain", "to_oracle"):
        found[key] = {name: results for name, results in found[key].items() if name in kept}
    path.write_text(json.dumps(found))


def images(array: Any) -> Fault:
    return lambda path: np.save(path, array, allow_pickle=True)


def header(text: bytes) -> Fault:
    """A safetensors file with this header."""
    return content(struct.pack("<Q", len(text)) + text)


def width(number: int) -> Fault:
    """A model whose configuration has another width."""

    def fault(path: Path) -> None:
        with safe_open(path, "pt") as file:
            configuration = json.loads(file.metadata()["mela"])["configuration"]
        facts = {"kind": KIND, "configuration": configuration | {"width": number}}
        save_file(load_file(path), path, metadata={"mela": json.dumps(facts)})

    return fault


def shared_image(path: Path) -> None:
    """An image of the training tasks in the test tasks."""
    rows(cell(3, "image_id", int(pd.read_parquet(paths.TRAIN)["image_id"].iloc[0])))(path)


def halved_shares(path: Path) -> None:
    params(compare__merged_soft=True)()
    rows(lambda rows: rows.assign(weight=rows["weight"] / 2))(path)


def twice(rows: pd.DataFrame) -> pd.DataFrame:
    """The first image again, in the second row."""
    return cell(1, "image_id", rows["image_id"][0])(rows)


NO_FILE = "HERE: no such file; run `dvc repro`, or the stage that makes it, first"
NO_PARQUET = f"HERE: expected a parquet file, got .*; {RERUN}"
NO_MODEL = "HERE: expected a safetensors file, got .*; train it again"
NO_IMAGES = r"HERE: expected packed images \(.npy\), got .*; rerun the stage images"
FEW_LABELS = "pretrain: .* 2 global labels or more, .* have"
LABELS = r"HERE: image \d+: expected one label from 0 to 1599, got"
LOCAL_LABELS = r"HERE: row \d+: task 0: expected local labels 0 to ways - 1 of two ways .*"
UNKNOWN = r"packed images: .* names image \d+, .* only"
FAULTS: dict[tuple[str, Path], dict[str, Bad]] = {
    ("label", paths.FEATURES): {
        "no features": Bad(Path.unlink, NO_FILE),
        "truncated features": Bad(cut(1000), NO_PARQUET),
        "labels for features": Bad(
            copy_of(paths.MERGED_LABELS),
            r"HERE: expected columns image_id .* found \(image_id: int64, label: int64\); rerun extract",
        ),
        "features of nobody knows what": Bad(
            unsigned, r"HERE: expected a table written by a stage \(metadata key `mela`\), found none; rerun its .*"
        ),
        "features that are not finite": Bad(
            features(value=np.nan),
            "HERE: row 7: expected finite features, found NaN or infinity; rerun embed and extract",
        ),
        "features of other images": Bad(
            features(slice(5, None)),
            r"features: expected one for every image of the manifest, found none for image \d+; rerun extract",
        ),
    },
    ("label_kmeans", paths.FEATURES): {"features cut in the middle": Bad(holed, NO_PARQUET)},
    ("pretrain@merged", paths.MERGED_LABELS): {
        "another table": Bad(
            copy_of(paths.TRUTH), r"HERE: expected columns \(image_id: int64, label: int64\), found \(.*\); " + RERUN
        ),
        "labels of unknown images": Bad(
            rows(lambda rows: rows.assign(image_id=rows["image_id"] + 10**6)), rf"{UNKNOWN} \d+ images; rerun .*"
        ),
        "labels below 0": Bad(rows(lambda rows: rows.assign(label=rows["label"] - 1)), f"{LABELS} -1; rerun .*"),
        "an image with two labels": Bad(rows(twice), rf"{LABELS} \d+, \d+; rerun .*"),
        "a label that is missing": Bad(
            rows(lambda rows: cell(4, "label", None)(rows.astype({"label": "Int64"}))),
            "HERE: row 4: expected a value in column label, found none; rerun its stage",
        ),
        "one label": Bad(rows(lambda rows: rows.assign(label=0)), f"{FEW_LABELS} 1; .*"),
    },
    ("pretrain@merged_soft", paths.MERGED_SOFT): {
        "shares that do not add up": Bad(halved_shares, rf"HERE: image \d+: .* sum to 1; {RERUN}")
    },
    ("extract", paths.INITIAL): {
        "no model": Bad(Path.unlink, NO_FILE),
        "a truncated model": Bad(cut(5000), NO_MODEL),
        "a model whose header is too long": Bad(content(struct.pack("<Q", 2**62)), NO_MODEL),
        "a model without a header": Bad(
            header(b"{}"), "HERE: expected a model of kind mela.backbone/1, found None; train it again"
        ),
        "a pickled model": Bad(content(b"\x80\x04\x95\x1a\x00\x00\x00cos\nsystem\n(S'exit'\ntR."), NO_MODEL),
        "a model of another width": Bad(width(16), "HERE: its weights do not fit its configuration .*"),
        "a model without channels": Bad(
            width(0), "HERE: expected a backbone's configuration, got width: expected 1 or more, got 0; .*"
        ),
        "a header that is a list": Bad(
            header(b'{"__metadata__":{"mela":"[]"}}'),
            "HERE: expected a safetensors file, got a header that is list, .*; train it again",
        ),
    },
    ("extract", paths.IMAGES): {
        "images of another size": Bad(
            images(np.zeros((2900, 20, 20, 1), dtype=np.uint8)),
            r"models/initial.safetensors: expected images of \(20, 20, 1\), the packed ones, got a model for .*",
        )
    },
    ("embed", paths.IMAGES): {
        "truncated images": Bad(cut(1000), NO_IMAGES),
        "pickled images": Bad(images(np.array([{}], dtype=object)), NO_IMAGES),
        "images of floats": Bad(
            images(np.zeros((4, 16, 16, 1))),
            r"HERE: expected images \(N, side, side, .*, found \(4, 16, 16, 1\) of float64; .*",
        ),
        "fewer images than tasks name": Bad(
            lambda path: np.save(path, np.load(path)[:100]), f"{UNKNOWN} 100 images; rerun .*"
        ),
    },
    ("embed", paths.TRAIN): {
        "no training tasks": Bad(rows(lambda rows: rows[:0]), "train manifest: it has no task; .*"),
        "an image twice in a task": Bad(
            rows(twice), r"HERE: row 1: task 0: expected each image once, got one twice \(.*"
        ),
        "tasks without queries": Bad(
            rows(lambda rows: rows.assign(role="support")),
            r"HERE: row 0: task 0: expected a query image of each local label, got none of one \(.*",
        ),
    },
    ("evaluate", paths.TEST): {
        "test images that were trained on": Bad(
            shared_image,
            r"HERE: task 0: expected images that no training task has, got image \d+ "
            r"\(1 images are in both\); rerun the stage manifest",
        ),
        "a role that nobody knows": Bad(
            rows(cell(7, "role", "Support")),
            r"HERE: row 7: task 0: expected roles support and query, got another one \(image \d+, .*",
        ),
    },
    ("report", paths.MERGED_METRICS): {
        "metrics of something else": Bad(
            content('{"loss": 1.0}'), f"HERE: clusters: field required, got none; {RERUN}"
        ),
        "metrics of labels that were off": Bad(
            content("{}"), r"use: expected labels that this run inferred and trained on \(pruned\), got merged; .*"
        ),
    },
    ("report", paths.SCORES): {
        "metrics of another kind": Bad(
            scores(purity=None), f"HERE: merged.purity: input should be a valid number, got None; {RERUN}"
        ),
        "metrics that are no JSON": Bad(content("{"), f"HERE: expected JSON, got .*; {RERUN}"),
        "a list of metrics": Bad(content("[]"), "HERE: expected a JSON object, got list; .*"),
    },
    ("report", paths.PRETRAIN / "merged.json"): {
        "metrics without a loss": Bad(
            values(proposition1={"task_loss": 1.0}),
            f"HERE: proposition1.global_loss: field required, got none; {RERUN}",
        )
    },
    ("report", paths.EVALUATE_METRICS): {
        "metrics without an interval": Bad(
            values(accuracy={"initial": {"5_shot": {"mean": 50.0}}}),
            f"HERE: accuracy.initial.5_shot.ci95: field required, got none; {RERUN}",
        ),
        "metrics of other settings": Bad(
            values(gain={"merged": {}}), r"HERE: gain\.merged: expected the settings .*, got none; rerun evaluate"
        ),
        "metrics without a gain": Bad(
            values(gain={}), "HERE: gain: expected that of merged, oracle, pruned too; rerun evaluate"
        ),
        "metrics without an accuracy": Bad(
            values(accuracy={}), "HERE: accuracy: expected that of initial, merged, oracle, pruned too; rerun evaluate"
        ),
        "metrics of other trainings": Bad(
            partial(only_of, "pruned"),
            r"use: expected labels that this run inferred and trained on \(pruned\), got merged; rerun the stages .*",
        ),
    },
    ("report", paths.MERGED_SIZES): {
        "points without a column": Bad(
            content("rank,threshold\n1,2\n"), f"HERE: expected the column tasks, found rank, threshold; {RERUN}"
        )
    },
    ("report", paths.PRETRAIN / "merged.csv"): {
        "points that are text": Bad(
            content("epoch,loss,accuracy,learning_rate\n1,low,2,3\n"),
            f"HERE: expected double in the column loss, found .*; {RERUN}",
        )
    },
    ("label", paths.TRAIN): {
        "local labels with a gap": Bad(
            rows(lambda rows: rows.assign(local_label=rows["local_label"] + 1)), LOCAL_LABELS
        )
    },
    ("score_labels", paths.TRAIN): {"local labels without end": Bad(rows(cell(0, "local_label", 2**62)), LOCAL_LABELS)},
    ("score_labels", paths.KMEANS_LABELS): {
        "labels of images that nobody knows": Bad(
            rows(lambda rows: rows.assign(image_id=rows["image_id"] + 10**6)),
            f"HERE: image 100.*: expected an image of the training tasks, got another; {RERUN}",
        )
    },
    ("label_oracle", paths.TRUTH): {
        "two true classes of an image": Bad(
            rows(lambda rows: pd.concat([rows, rows])), rf"HERE: image \d+: expected one class, got several; {RERUN}"
        )
    },
    ("score_labels", paths.MERGED_TASKS): {
        "clusters of other tasks": Bad(
            rows(lambda rows: rows.assign(task_id=rows["task_id"] + 1)),
            rf"HERE: its \d+ rows do not list each of the \d+ classes .*; {RERUN}",
        )
    },
    ("assign", paths.MERGED_LABELER / "labeler.json"): {"no labeler": Bad(Path.unlink, NO_FILE)},
    ("assign", paths.MERGED_LABELER / "arrays.safetensors"): {
        "arrays of another labeler": Bad(
            cut(200), "HERE: expected the arrays that labeler.json .* names, got others; rerun .*"
        )
    },
    ("assign", paths.MERGED_LABELER): {
        "a labeler of other features": Bad(
            lambda path: save_labeler(path, MergeLabeler(soft=True).fit(*tasks(0))),
            r"labeler: .* 4 features and 6 clusters, .* \d+ features and clusters up to \d+; rerun .*",
        )
    },
    ("report", paths.LISTING): {
        "no table of labels": Bad(content("person\nanna\n"), f"HERE: expected the column task, found person; {RERUN}")
    },
    ("report", paths.EMBED_CURVE): {"an empty curve": Bad(content(""), f"HERE: expected a table, got .*; {RERUN}")},
}
CASES = {
    name: Case(stage, partial(bad.fault, path), bad.message.replace("HERE", str(path)))
    for (stage, path), faults in FAULTS.items()
    for name, bad in faults.items()
}


test_what_is_bad_ends_in_one_line = one_line_each(CASES)
