"""Say where the benchmark's stages find each other's files, relative to the root of the repository."""

from pathlib import Path

BENCHMARK = Path("benchmark")
RUNS = BENCHMARK / "runs"
RESULTS = BENCHMARK / "results"
MODEL = "model.safetensors"
CURVE = "curve.csv"


def preset(data: str) -> Path:
    """Return the file of a data set's parameters."""
    return BENCHMARK / "data" / f"{data}.yaml"


def shared(data: str) -> Path:
    """Return the folder of images and tasks, the same for all seeds."""
    return RUNS / data


def seeded(data: str, seed: int) -> Path:
    """Return the folder of what depends on a seed, with one folder for each system."""
    return RUNS / data / f"seed{seed}"
