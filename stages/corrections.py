"""Check what people say of labels, and give it the numbers that their tasks and labels have."""

from pathlib import Path

from mela.io import schemas, store
from mela.io.checked_tables import read_manifest
from mela.io.name_tables import TASK_NAMES
from mela.labeling.correction_tables import numbered_links, read_corrections
from mela.params import PARAMS
from mela.runtime.console import log
from stages.common import paths
from stages.common.run import run


def main(
    params: Path = PARAMS,
    corrections: Path = paths.CORRECTIONS,
    train: Path = paths.TRAIN,
    names: Path = paths.TASK_NAMES,
    links: Path = paths.LINKS,
) -> None:
    """Read corrections, training tasks and what people called these; write links between local labels.

    No parameter changes the result. `params` is there to be checked, as every stage does at its start.
    """
    said = read_corrections(corrections)
    found = numbered_links(said, read_manifest(train), store.read_table(names, TASK_NAMES))
    store.write_table(links, found, schemas.LINKS, stage="corrections", params={})
    log.info(f"corrections: {found['same'].sum()} pairs of labels are one class, {(~found['same']).sum()} are not")


if __name__ == "__main__":
    run(main)
