"""Hash the definitions that the scripts of stages reach, which is the code that stages depend on."""

from pathlib import Path

from stages.code_hashes.files import OF_BENCHMARK, PIPELINE
from stages.common.run import run


def main(benchmark: bool = False) -> None:
    """Read the project's code; write a file of hashes for each script of the pipeline, or of the benchmark."""
    (OF_BENCHMARK if benchmark else PIPELINE).write(Path())


if __name__ == "__main__":
    run(main)
