"""The columns of every table that stages hand to each other, and the names of splits and roles."""

from typing import Literal, get_args

import pyarrow as pa

Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

Role = Literal["support", "query"]
ROLES: tuple[Role, ...] = get_args(Role)


INDEX = pa.schema([("image_id", pa.int64()), ("split", pa.string()), ("source", pa.string())])
TRUTH = pa.schema([("image_id", pa.int64()), ("class", pa.string())])
TASKS = pa.schema(
    [
        ("split", pa.string()),
        ("task_id", pa.int64()),
        ("image_id", pa.int64()),
        ("local_label", pa.int64()),
        ("role", pa.string()),
    ]
)
MANIFEST = TASKS.remove(0)
LISTING = pa.schema([("image_id", pa.int64())])
LABELS = pa.schema([("image_id", pa.int64()), ("label", pa.int64())])
SOFT_LABELS = LABELS.append(pa.field("weight", pa.float64()))
ASSIGNMENTS = pa.schema(
    [("task_id", pa.int64()), ("local_label", pa.int64()), ("cluster", pa.int64()), ("clustered", pa.bool_())]
)
ACCURACIES = pa.schema(
    [
        ("split", pa.string()),
        ("task_id", pa.int64()),
        ("model", pa.string()),
        ("setting", pa.string()),
        ("accuracy", pa.float64()),
    ]
)
RESULTS = pa.schema([("task_id", pa.int64()), ("setting", pa.string()), ("accuracy", pa.float64())])
HEADS = pa.schema(
    [
        ("head", pa.string()),
        ("setting", pa.string()),
        ("tasks", pa.int64()),
        ("mean", pa.float64()),
        ("ci95", pa.float64()),
    ]
)
CURVE = pa.schema(
    [("epoch", pa.int64()), ("loss", pa.float64()), ("accuracy", pa.float64()), ("learning_rate", pa.float64())]
)
PASSES = pa.schema(
    [
        ("pass", pa.int64()),
        ("clusters", pa.int64()),
        ("threshold", pa.float64()),
        ("kept", pa.int64()),
        ("tasks_clustered", pa.float64()),
        ("precision", pa.float64()),
    ]
)
MERGES = pa.schema([("round", pa.int64()), ("clusters", pa.int64()), ("log_odds", pa.float64()), ("made", pa.bool_())])
SIZES = pa.schema([("rank", pa.int64()), ("tasks", pa.int64()), ("threshold", pa.float64())])
CLUSTERS = pa.schema(
    [("label", pa.int64()), ("images", pa.int64()), ("task_classes", pa.int64()), ("certainty", pa.float64())]
)
PURITIES = pa.schema([("label", pa.int64()), ("class", pa.string()), ("purity", pa.float64()), ("classes", pa.int64())])
POINTS = pa.schema(
    [
        ("image_id", pa.int64()),
        ("label", pa.int64()),
        ("before_x", pa.float64()),
        ("before_y", pa.float64()),
        ("after_x", pa.float64()),
        ("after_y", pa.float64()),
    ]
)
