"""Say where the stages find each other's files, relative to the project's root."""

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
ROUND_FEATURES = Path("data/rounds")
LABELS = Path("data/labels")
MERGED_LABELS = LABELS / "merged.parquet"
MERGED_SOFT = LABELS / "merged_soft.parquet"
MERGED_TASKS = LABELS / "merged_tasks.parquet"
PRUNED_LABELS = LABELS / "pruned.parquet"
PRUNED_SOFT = LABELS / "pruned_soft.parquet"
PRUNED_TASKS = LABELS / "pruned_tasks.parquet"
KMEANS_LABELS = LABELS / "kmeans.parquet"
ORACLE_LABELS = LABELS / "oracle.parquet"
MODELS = Path("models")
LABELERS = MODELS / "labelers"
MERGED_LABELER = LABELERS / "merged"
PRUNED_LABELER = LABELERS / "pruned"
INITIAL = MODELS / "initial.safetensors"
MERGED = MODELS / "merged.safetensors"
MERGED_SOFTLY = MODELS / "merged_soft.safetensors"
PRUNED = MODELS / "pruned.safetensors"
KMEANS = MODELS / "kmeans.safetensors"
ORACLE = MODELS / "oracle.safetensors"
RESULTS = Path("results")
ROUNDS = RESULTS / "rounds"
LISTING = RESULTS / "labels.csv"
EMBED_CURVE = RESULTS / "embed/curve.csv"
LABELING = RESULTS / "label"
MERGED_METRICS = LABELING / "merged.json"
MERGED_CLUSTERS = LABELING / "merged_clusters.csv"
MERGED_SIZES = LABELING / "merged_sizes.csv"
MERGES = LABELING / "merges.csv"
PRUNED_METRICS = LABELING / "pruned.json"
PRUNED_CLUSTERS = LABELING / "pruned_clusters.csv"
PRUNED_SIZES = LABELING / "pruned_sizes.csv"
PASSES = LABELING / "passes.csv"
SCORES = RESULTS / "score_labels/metrics.json"
MERGED_PURITIES = RESULTS / "score_labels/merged.csv"
PRUNED_PURITIES = RESULTS / "score_labels/pruned.csv"
PRETRAIN = RESULTS / "pretrain"
EVALUATE_METRICS = RESULTS / "evaluate/metrics.json"
TEMPERATURES = MODELS / "temperatures.json"
PER_TASK = RESULTS / "evaluate/per_task.parquet"
MAP = RESULTS / "map/points.csv"
REPORT = RESULTS / "report"
PAGE = RESULTS / "report.html"
OVERVIEW = RESULTS / "metrics.json"
ACCURACIES = RESULTS / "accuracies.csv"
SWEEP = RESULTS / "sweep.csv"


def round_files(number: str) -> tuple[Path, Path]:
    """Return where the features and the embedding of a round are, which is named as in the block `rounds`."""
    return ROUND_FEATURES / f"{number}.parquet", MODELS / "rounds" / f"{number}.safetensors"


MERGED_FEATURES, MERGED_EMBEDDING = round_files("third")
