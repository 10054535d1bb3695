"""Where the benchmark's stages find each other's files, relative to the root of the repository."""

from pathlib import Path

BENCHMARK = Path("benchmark")
RUNS = BENCHMARK / "runs"
RESULTS = BENCHMARK / "results"
MODEL = "model.safetensors"
CURVE = "curve.csv"


def preset(data: str) -> Path:
    """Parameters of a data set."""
    return BENCHMARK / "data" / f"{data}.yaml"


def shared(data: str) -> Path:
    """Images and tasks, the same for all seeds."""
    return RUNS / data


def seeded(data: str, seed: int) -> Path:
    """What depends on a seed, one folder for each system."""
    return RUNS / data / f"seed{seed}"
