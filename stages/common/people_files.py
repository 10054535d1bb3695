"""Read what only tasks of people have: tasks that are held out, and images whose labels are doubtful."""

from pathlib import Path

import pandas as pd

from mela.data.sampling import given_split
from mela.io import schemas, store
from mela.io.checked_tables import read_manifest
from mela.io.name_tables import IMAGE_NAMES, WRONG_LABELS
from mela.labeling.training_samples import read_samples
from mela.runtime.console import log
from mela.sources.source import REST


def held_out_tasks(val: Path, test: Path, tasks: Path, names: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the manifests of tasks that no labeler was fitted to.

    Drawn tasks, which have no names, are no people's, and their test classes are others than those of training.
    """
    if names.empty:
        return {}
    rest = given_split(store.read_table(tasks, schemas.TASKS), REST)
    return {"val": read_manifest(val), "test": read_manifest(test), REST: rest}


def doubtful_images(
    manifest: pd.DataFrame, features: Path, assigned: pd.DataFrame, names: pd.DataFrame, image_names: Path
) -> pd.DataFrame:
    """Return the training images that may have a wrong label, and log how many probably do.

    Nobody can have made a mistake in drawn tasks, which have no names.
    """
    if names.empty:
        return pd.DataFrame(columns=WRONG_LABELS.names)
    # takes a second, which a wrong parameter need not wait for
    from mela.labeling.wrong_label_listing import wrong_label_listing

    files = store.read_table(image_names, IMAGE_NAMES)
    table, share = wrong_label_listing(*read_samples(manifest, features), assigned, names, files)
    log.info(f"assign: about {share:.1f}% of the training images seem to have a wrong label of their task")
    return table
