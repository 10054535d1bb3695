"""Define the columns of every table that stages exchange, and the names of splits and roles."""

from typing import Literal, get_args

import pyarrow as pa

Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

Role = Literal["support", "query"]
ROLES: tuple[Role, ...] = get_args(Role)

INT, FLOAT, TEXT, FLAG = pa.int64(), pa.float64(), pa.string(), pa.bool_()

INDEX = pa.schema({"image_id": INT, "split": TEXT, "source": TEXT})
TRUTH = pa.schema({"image_id": INT, "class": TEXT})
# with several data sets, the one that each image is from
TRUTH_OF_DATASETS = TRUTH.append(pa.field("dataset", TEXT))
TASKS = pa.schema({"split": TEXT, "task_id": INT, "image_id": INT, "local_label": INT, "role": TEXT})
MANIFEST = TASKS.remove(0)
# of validation and test tasks, for which accuracy is told by data set
MANIFEST_OF_DATASETS = MANIFEST.append(pa.field("dataset", TEXT))
LISTING = pa.schema({"image_id": INT})
LABELS = pa.schema({"image_id": INT, "label": INT})
SOFT_LABELS = LABELS.append(pa.field("weight", FLOAT))
ASSIGNMENTS = pa.schema({"task_id": INT, "local_label": INT, "cluster": INT, "clustered": FLAG})
# pairs of task classes that people say are one class, or are not
LINKS = pa.schema({"task_id": INT, "local_label": INT, "other_task_id": INT, "other_local_label": INT, "same": FLAG})
ACCURACIES = pa.schema({"split": TEXT, "task_id": INT, "model": TEXT, "setting": TEXT, "accuracy": FLOAT})
# what a query was taken for, by its local label
PREDICTIONS = pa.schema(
    {"model": TEXT, "setting": TEXT, "task_id": INT, "image_id": INT, "local_label": INT, "predicted": INT}
)
CONFUSIONS = pa.schema({"setting": TEXT, "class": TEXT, "taken_for": TEXT, "errors": INT, "queries": INT})
MISTAKEN = pa.schema({"class": TEXT, "taken_for": TEXT, "image_id": INT, "times": INT})
RESULTS = pa.schema({"task_id": INT, "setting": TEXT, "accuracy": FLOAT})
HEADS = pa.schema({"head": TEXT, "setting": TEXT, "tasks": INT, "mean": FLOAT, "ci95": FLOAT})
CURVE = pa.schema({"epoch": INT, "loss": FLOAT, "accuracy": FLOAT, "learning_rate": FLOAT})
PASSES = pa.schema(
    {"pass": INT, "clusters": INT, "threshold": FLOAT, "kept": INT, "tasks_clustered": FLOAT, "precision": FLOAT}
)
MERGES = pa.schema({"phase": INT, "clusters": INT, "log_odds": FLOAT, "made": FLAG})
SIZES = pa.schema({"rank": INT, "tasks": INT, "threshold": FLOAT})
CLUSTERS = pa.schema({"label": INT, "images": INT, "task_classes": INT, "certainty": FLOAT})
PURITIES = pa.schema({"label": INT, "class": TEXT, "purity": FLOAT, "classes": INT})
POINTS = pa.schema(
    {"image_id": INT, "label": INT, "before_x": FLOAT, "before_y": FLOAT, "after_x": FLOAT, "after_y": FLOAT}
)
