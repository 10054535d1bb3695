"""Where the stages find each other's files, relative to the project's root."""

from pathlib import Path

CODE = Path("data/code")
IMAGES = Path("data/images/images.npy")
INDEX = Path("data/images/index.parquet")
TASKS = Path("data/images/tasks.parquet")
TRUTH = Path("data/truth.parquet")
TASK_NAMES = Path("data/names/labels.parquet")
IMAGE_NAMES = Path("data/names/images.parquet")
WEIGHTS = Path("data/raw/weights")
GIVEN_FEATURES = Path("data/raw/features")
TRAIN = Path("data/manifest/train.parquet")
VAL = Path("data/manifest/val.parquet")
TEST = Path("data/manifest/test.parquet")
FEATURES = Path("data/features.parquet")
LABELS = Path("data/labels")
MELA_LABELS = LABELS / "mela.parquet"
KMEANS_LABELS = LABELS / "kmeans.parquet"
SOFT_LABELS = LABELS / "mela_soft.parquet"
ORACLE_LABELS = LABELS / "oracle.parquet"
ASSIGNMENTS = LABELS / "mela_tasks.parquet"
CENTROIDS = Path("models/centroids.npy")
LABELER = Path("models/labeler")
INITIAL = Path("models/initial.safetensors")
FINAL = Path("models/final.safetensors")
RESULTS = Path("results")
LISTING = RESULTS / "labels.csv"
EMBED_CURVE = RESULTS / "embed/curve.csv"
LABEL_METRICS = RESULTS / "label/metrics.json"
PASSES = RESULTS / "label/passes.csv"
MERGES = RESULTS / "label/merges.csv"
SIZES = RESULTS / "label/sizes.csv"
CLUSTERS = RESULTS / "label/clusters.csv"
SCORES = RESULTS / "score_labels/metrics.json"
PURITIES = RESULTS / "score_labels/clusters.csv"
PRETRAIN_METRICS = RESULTS / "pretrain/metrics.json"
PRETRAIN_CURVE = RESULTS / "pretrain/curve.csv"
EVALUATE_METRICS = RESULTS / "evaluate/metrics.json"
TEMPERATURES = Path("models/temperatures.json")
PER_TASK = RESULTS / "evaluate/per_task.parquet"
MAP = RESULTS / "map/points.csv"
REPORT = RESULTS / "report"
PAGE = RESULTS / "report.html"
OVERVIEW = RESULTS / "metrics.json"
ACCURACIES = RESULTS / "accuracies.csv"
SWEEP = RESULTS / "sweep.csv"
