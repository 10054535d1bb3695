"""What is wrong with a file that another stage wrote ends in one line that says what to do about it."""

import io
import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.torch import load_file, save_file

from mela.io import feature_tables, schemas, store
from mela.labeling.labeler import LearnLabeler
from mela.labeling.labeler_files import save_labeler
from mela.models.files import KIND
from stages.common import paths
from tests.helpers.bad_input import RERUN, Case, Spoil, cut, one_line_each, params
from tests.helpers.labelers import tasks


def table(path: Path, schema: pa.Schema, **columns: Any) -> Spoil:
    """A table in place of one that a stage wrote; columns are functions of those that are there, or values."""

    def spoil() -> None:
        found = pd.read_parquet(path)
        for name, value in columns.items():
            found[name] = value(found) if callable(value) else value
        store.write_table(path, found, schema, stage="test", params={})

    return spoil


def nan_features() -> None:
    ids, features = feature_tables.read_features(paths.FEATURES)
    features[7, 3] = np.nan
    feature_tables.write_features(paths.FEATURES, [(ids, features)], features.shape[1], stage="extract", params={})


def fewer_features() -> None:
    ids, features = feature_tables.read_features(paths.FEATURES)
    feature_tables.write_features(
        paths.FEATURES, [(ids[5:], features[5:])], features.shape[1], stage="extract", params={}
    )


def unsigned_features() -> None:
    """As another program would write them."""
    pq.write_table(pq.read_table(paths.FEATURES).replace_schema_metadata({}), paths.FEATURES)


def rewrite(path: Path, schema: pa.Schema, change_rows: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    store.write_table(path, change_rows(store.read_table(path, schema)), schema, stage="test", params={})


def edit_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def header(content: bytes) -> Spoil:
    """A safetensors file with this header."""
    return lambda: paths.INITIAL.write_bytes(struct.pack("<Q", len(content)) + content)


def wrong_model(width: int) -> None:
    with io.BytesIO(paths.INITIAL.read_bytes()) as file:
        size = struct.unpack("<Q", file.read(8))[0]
        configuration = json.loads(json.loads(file.read(size))["__metadata__"]["mela"])["configuration"]
    content = {"kind": KIND, "configuration": configuration | {"width": width}}
    save_file(load_file(paths.INITIAL), paths.INITIAL, metadata={"mela": json.dumps(content)})


def other_labeler() -> None:
    save_labeler(paths.LABELER, LearnLabeler(soft=True).fit(*tasks(0)))


def shared_image() -> None:
    """An image of the training tasks in the test tasks."""
    seen = int(pd.read_parquet(paths.TRAIN)["image_id"].iloc[0])
    table(paths.TEST, schemas.MANIFEST, image_id=lambda rows: rows["image_id"].where(rows.index != 3, seen))()


CASES: dict[str, Case] = {
    "no features": (
        "label",
        lambda: paths.FEATURES.unlink(),
        "data/features.parquet: no such file; run `dvc repro`, or the stage that makes it, first",
    ),
    "truncated features": (
        "label",
        cut(paths.FEATURES, 1000),
        f"data/features.parquet: expected a parquet file, got .*; {RERUN}",
    ),
    "features cut in the middle": (
        "label_kmeans",
        lambda: paths.FEATURES.write_bytes(
            paths.FEATURES.read_bytes()[:2000] + b"\0" * 50 + paths.FEATURES.read_bytes()[2050:]
        ),
        f"data/features.parquet: expected a parquet file, got .*; {RERUN}",
    ),
    "labels for features": (
        "label",
        lambda: shutil.copy(paths.MELA_LABELS, paths.FEATURES),
        r"data/features.parquet: expected columns image_id .* found \(image_id: int64, label: int64\); rerun extract",
    ),
    "features of nobody knows what": (
        "label",
        unsigned_features,
        r"data/features.parquet: expected a table written by a stage \(metadata key `mela`\), found none; rerun its .*",
    ),
    "features that are not finite": (
        "label",
        nan_features,
        "data/features.parquet: row 7: expected finite features, found NaN or infinity; rerun embed and extract",
    ),
    "features of other images": (
        "label",
        fewer_features,
        r"features: expected one for every image of the manifest, found none for image \d+; rerun extract",
    ),
    "another table": (
        "pretrain",
        lambda: shutil.copy(paths.TRUTH, paths.MELA_LABELS),
        r"data/labels/mela.parquet: expected columns \(image_id: int64, label: int64\), found \(.*\); " + RERUN,
    ),
    "labels of unknown images": (
        "pretrain",
        table(paths.MELA_LABELS, schemas.LABELS, image_id=lambda rows: rows["image_id"] + 10**6),
        r"packed images: expected an image \d+, which a task or label names, got \d+ images; rerun .*",
    ),
    "labels below 0": (
        "pretrain",
        table(paths.MELA_LABELS, schemas.LABELS, label=lambda rows: rows["label"] - 1),
        r"data/labels/mela.parquet: image \d+: expected one label from 0 to 1599, got -1; rerun .*",
    ),
    "an image with two labels": (
        "pretrain",
        table(
            paths.MELA_LABELS,
            schemas.LABELS,
            image_id=lambda rows: rows["image_id"].where(rows.index != 1, rows["image_id"][0]),
        ),
        r"data/labels/mela.parquet: image \d+: expected one label from 0 to 1599, got \d+, \d+; rerun .*",
    ),
    "a label that is missing": (
        "pretrain",
        table(
            paths.MELA_LABELS, schemas.LABELS, label=lambda rows: rows["label"].astype("Int64").where(rows.index != 4)
        ),
        "data/labels/mela.parquet: row 4: expected a value in column label, found none; rerun its stage",
    ),
    "no labels": (
        "pretrain",
        lambda: store.write_table(
            paths.MELA_LABELS, pd.DataFrame(columns=["image_id", "label"]), schemas.LABELS, stage="label", params={}
        ),
        "pretrain.labels: expected at least 2 global labels to tell apart, got 0",
    ),
    "one label": (
        "pretrain",
        table(paths.MELA_LABELS, schemas.LABELS, label=0),
        "pretrain.labels: expected at least 2 global labels to tell apart, got 1",
    ),
    "shares that do not add up": (
        "pretrain",
        lambda: (
            params(pretrain__labels="mela_soft")(),
            table(paths.SOFT_LABELS, schemas.SOFT_LABELS, weight=lambda rows: rows["weight"] / 2)(),
        ),
        r"data/labels/mela_soft.parquet: image \d+: expected labels from 0, each once, with positive weights that .*",
    ),
    "no model": (
        "extract",
        lambda: paths.INITIAL.unlink(),
        "models/initial.safetensors: no such file; run `dvc repro`, or the stage that makes it, first",
    ),
    "a truncated model": (
        "extract",
        cut(paths.INITIAL, 5000),
        "models/initial.safetensors: expected a safetensors file, got .*; train it again",
    ),
    "a model whose header is too long": (
        "extract",
        lambda: paths.INITIAL.write_bytes(struct.pack("<Q", 2**62)),
        "models/initial.safetensors: expected a safetensors file, got .*; train it again",
    ),
    "a model without a header": (
        "extract",
        header(b"{}"),
        "models/initial.safetensors: expected a model of kind mela.backbone/1, found None; train it again",
    ),
    "a pickled model": (
        "extract",
        lambda: paths.INITIAL.write_bytes(b"\x80\x04\x95\x1a\x00\x00\x00cos\nsystem\n(S'exit'\ntR."),
        "models/initial.safetensors: expected a safetensors file, got .*; train it again",
    ),
    "a model of another width": (
        "extract",
        lambda: wrong_model(16),
        "models/initial.safetensors: tensors do not fit its configuration: .*",
    ),
    "a model without channels": (
        "extract",
        lambda: wrong_model(0),
        "models/initial.safetensors: expected a backbone's configuration, got width: expected 1 or more, got 0; .*",
    ),
    "images of another size": (
        "extract",
        lambda: np.save(paths.IMAGES, np.zeros((2900, 20, 20, 1), dtype=np.uint8)),
        r"models/initial.safetensors: expected images of \(20, 20, 1\), the packed ones, got a model for .*",
    ),
    "truncated images": (
        "embed",
        cut(paths.IMAGES, 1000),
        r"data/images/images.npy: expected packed images \(.npy\), got .*; rerun the stage images",
    ),
    "pickled images": (
        "embed",
        lambda: np.save(paths.IMAGES, np.array([{}], dtype=object), allow_pickle=True),
        r"data/images/images.npy: expected packed images \(.npy\), got .*; rerun the stage images",
    ),
    "images of floats": (
        "embed",
        lambda: np.save(paths.IMAGES, np.zeros((4, 16, 16, 1))),
        r"data/images/images.npy: expected images \(N, side, side, .*, found \(4, 16, 16, 1\) of float64; .*",
    ),
    "fewer images than tasks name": (
        "embed",
        lambda: np.save(paths.IMAGES, np.load(paths.IMAGES)[:100]),
        r"packed images: expected an image \d+, which a task or label names, got 100 images; rerun .*",
    ),
    "no training tasks": (
        "embed",
        lambda: store.write_table(
            paths.TRAIN, pd.read_parquet(paths.TRAIN)[:0], schemas.MANIFEST, stage="manifest", params={}
        ),
        "train manifest: expected at least one task, found none",
    ),
    "test images that were trained on": (
        "evaluate",
        shared_image,
        r"data/manifest/test.parquet: task 0: expected images that no training task has, got image \d+ "
        r"\(1 images are in both\); rerun the stage manifest",
    ),
    "metrics of something else": (
        "report",
        lambda: Path("results/label/metrics.json").write_text("{}"),
        f"results/label/metrics.json: clusters: field required, got none; {RERUN}",
    ),
    "metrics of another kind": (
        "report",
        lambda: edit_json(paths.SCORES, accuracy=None),
        f"results/score_labels/metrics.json: accuracy: input should be a valid number, got None; {RERUN}",
    ),
    "metrics without a loss": (
        "report",
        lambda: edit_json(paths.PRETRAIN_METRICS, proposition1={"task_loss": 1.0}),
        f"results/pretrain/metrics.json: proposition1.global_loss: field required, got none; {RERUN}",
    ),
    "metrics without an interval": (
        "report",
        lambda: edit_json(paths.EVALUATE_METRICS, mela={"5_shot": {"mean": 50.0}}),
        f"results/evaluate/metrics.json: mela.5_shot.ci95: field required, got none; {RERUN}",
    ),
    "metrics of other settings": (
        "report",
        lambda: edit_json(paths.EVALUATE_METRICS, gain={}),
        "results/evaluate/metrics.json: gain: expected the settings .*, got none; rerun evaluate",
    ),
    "points without a column": (
        "report",
        lambda: paths.SIZES.write_text("rank,threshold\n1,2\n"),
        f"results/label/sizes.csv: expected the column tasks, found rank, threshold; {RERUN}",
    ),
    "points that are text": (
        "report",
        lambda: paths.PRETRAIN_CURVE.write_text("epoch,loss,accuracy,learning_rate\n1,low,2,3\n"),
        f"results/pretrain/curve.csv: expected double in the column loss, found .*; {RERUN}",
    ),
    "a role that nobody knows": (
        "evaluate",
        table(paths.TEST, schemas.MANIFEST, role=lambda rows: rows["role"].where(rows.index != 7, "Support")),
        r"data/manifest/test.parquet: row 7: task 0: expected roles support and query, got another one \(image \d+, .*",
    ),
    "an image twice in a task": (
        "embed",
        table(
            paths.TRAIN,
            schemas.MANIFEST,
            image_id=lambda rows: rows["image_id"].where(rows.index != 1, rows["image_id"][0]),
        ),
        r"data/manifest/train.parquet: row 1: task 0: expected each image once, got one twice \(.*",
    ),
    "local labels with a gap": (
        "label",
        table(paths.TRAIN, schemas.MANIFEST, local_label=lambda rows: rows["local_label"] + 1),
        r"data/manifest/train.parquet: row \d+: task 0: expected local labels 0 to ways - 1 of two ways .*",
    ),
    "local labels without end": (
        "score_labels",
        table(
            paths.TRAIN, schemas.MANIFEST, local_label=lambda rows: rows["local_label"].where(rows.index != 0, 2**62)
        ),
        r"data/manifest/train.parquet: row \d+: task 0: expected local labels 0 to ways - 1 of two ways .*",
    ),
    "tasks without queries": (
        "embed",
        table(paths.TRAIN, schemas.MANIFEST, role="support"),
        r"data/manifest/train.parquet: row 0: task 0: expected a query image of each local label, got none of one \(.*",
    ),
    "labels of images that nobody knows": (
        "score_labels",
        table(paths.KMEANS_LABELS, schemas.LABELS, image_id=lambda rows: rows["image_id"] + 10**6),
        f"data/labels/kmeans.parquet: image 100.*: expected an image of the training tasks, got another; {RERUN}",
    ),
    "no labels to score": (
        "score_labels",
        lambda: store.write_table(
            paths.MELA_LABELS,
            store.read_table(paths.MELA_LABELS, schemas.LABELS).head(0),
            schemas.LABELS,
            stage="t",
            params={},
        ),
        f"data/labels/mela.parquet: expected labels of one image or more, got none; {RERUN}",
    ),
    "two true classes of an image": (
        "label_oracle",
        lambda: rewrite(paths.TRUTH, schemas.TRUTH, lambda rows: pd.concat([rows, rows])),
        rf"data/truth.parquet: image \d+: expected one class, got several; {RERUN}",
    ),
    "clusters of other tasks": (
        "score_labels",
        table(paths.ASSIGNMENTS, schemas.ASSIGNMENTS, task_id=lambda rows: rows["task_id"] + 1),
        r"data/labels/mela_tasks.parquet: expected each of the \d+ task classes .* once, got others .*; rerun label",
    ),
    "no labeler": (
        "assign",
        lambda: (paths.LABELER / "labeler.json").unlink(),
        "models/labeler/labeler.json: no such file; run `dvc repro`, or the stage that makes it, first",
    ),
    "arrays of another labeler": (
        "assign",
        cut(paths.LABELER / "arrays.safetensors", 200),
        "models/labeler/arrays.safetensors: expected the arrays that labeler.json .* names, got others; rerun .*",
    ),
    "a labeler of other features": (
        "assign",
        other_labeler,
        r"labeler: expected one that was fitted to these tasks, with \d+ features and clusters up to \d+, got 4 "
        "features and 6 clusters; rerun label",
    ),
    "no table of labels": (
        "report",
        lambda: paths.LISTING.write_text("person\nanna\n"),
        f"results/labels.csv: expected the column task, found person; {RERUN}",
    ),
    "a header that is a list": (
        "extract",
        header(b'{"__metadata__":{"mela":"[]"}}'),
        "models/initial.safetensors: expected a safetensors file, got a header that is list, .*; train it again",
    ),
    "metrics that are no JSON": (
        "report",
        lambda: paths.SCORES.write_text("{"),
        f"results/score_labels/metrics.json: expected JSON, got .*; {RERUN}",
    ),
    "a list of metrics": (
        "report",
        lambda: paths.SCORES.write_text("[]"),
        "results/score_labels/metrics.json: expected a JSON object, got list",
    ),
    "an empty curve": (
        "report",
        lambda: paths.EMBED_CURVE.write_text(""),
        f"results/embed/curve.csv: expected a table, got .*; {RERUN}",
    ),
}


test_what_is_bad_ends_in_one_line = one_line_each(CASES)
