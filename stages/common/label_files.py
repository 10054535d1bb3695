"""Name the files of stages that infer labels, which are empty if the labels are off."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa

from mela.io import schemas, store
from mela.io.atomic import together
from mela.runtime.console import log


@dataclass(frozen=True, kw_only=True)
class Files:
    """Name where a stage writes its labels: of images, their weights, of task classes, labeler, figures, and tables."""

    labels: Path
    soft_labels: Path
    assignments: Path
    fitted: Path
    metrics: Path
    clusters: Path
    sizes: Path
    steps: Path


def write_nothing(stage: str, out: Files, steps: pa.Schema) -> None:
    """Write the same files without content, if the labels are off; `steps` has the columns of that table."""
    from mela.labeling.labeler_files import DESCRIPTION

    tables = {out.labels: schemas.LABELS, out.soft_labels: schemas.SOFT_LABELS, out.assignments: schemas.ASSIGNMENTS}
    with together():
        for path, schema in tables.items():
            store.write_table(path, schema.empty_table(), schema, stage="label", params={})
        for path in (out.fitted / DESCRIPTION, out.metrics):
            store.write_json(path, {})
        for path, schema in {out.steps: steps, out.sizes: schemas.SIZES, out.clusters: schemas.CLUSTERS}.items():
            store.write_csv(path, pd.DataFrame(columns=schema.names))
    log.info(f"{stage}: no labels, since `compare` has them off")
