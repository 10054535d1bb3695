"""Hash the definitions that the scripts of stages reach, which is the code that stages depend on."""

from pathlib import Path

from mela.params import PARAMS, check_document
from stages.code_hashes.hash_files import OF_BENCHMARK, PIPELINE
from stages.common.run import run


def main(benchmark: bool = False) -> None:
    """Read the project's code; write a file of hashes for each script of the pipeline, or of the benchmark."""
    if not benchmark:
        # where code has changed, this stage runs first: a mistake in any block is told before the others begin
        check_document(PARAMS)
    (OF_BENCHMARK if benchmark else PIPELINE).write(Path())


if __name__ == "__main__":
    run(main)
