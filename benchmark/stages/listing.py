"""List the images of training tasks, without the tasks."""

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from mela.data.episodes import Episodes
from mela.io import schemas, store
from mela.io.checked_tables import read_manifest
from stages.common.run import run


def main(train: Annotated[Path, typer.Option()], out: Annotated[Path, typer.Option()]) -> None:
    """Read training tasks; write the ids of their images in ascending order, each once."""
    image_ids = Episodes(read_manifest(train)).image_ids()
    store.write_table(out, pd.DataFrame({"image_id": image_ids}), schemas.LISTING, stage="listing", params={})


if __name__ == "__main__":
    run(main)
