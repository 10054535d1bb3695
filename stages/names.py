"""Keep what people called their tasks, labels and images, for readers of the results, and whose the tasks are."""

from pathlib import Path

from mela.io import schemas, store
from mela.io.atomic import together
from mela.io.name_tables import IMAGE_NAMES, TASK_NAMES, TASK_SOURCES, names_of_labels, no_names, sources_of_tasks
from mela.params import PARAMS, DataParams, TaskParams
from mela.runtime.console import log
from mela.sources.open import open_source
from stages.common import paths
from stages.common.run import run


def main(
    params: Path = PARAMS,
    index: Path = paths.INDEX,
    tasks: Path = paths.TASKS,
    task_names: Path = paths.TASK_NAMES,
    image_names: Path = paths.IMAGE_NAMES,
    task_sources: Path = paths.TASK_SOURCES,
) -> None:
    """Read the raw tasks and the numbers that images gave them; write names and sources, if there are any."""
    data, shots = DataParams.read(params), TaskParams.read(params).shots
    given = store.read_table(tasks, schemas.TASKS)
    labels, images = no_names()
    several = data.people is not None and data.people.tasks > 1
    raw = open_source(data, shots=shots).tasks if data.name == "tasks" or several else None
    sources = sources_of_tasks(raw, given)
    # the names of benchmark classes, and of the files in their folders, are the truth, and stay where they are
    if raw is not None and data.name == "tasks":
        labels = names_of_labels(raw, given)
        images = store.read_table(index, schemas.INDEX).rename(columns={"source": "path"})
    made_from = data.made_from()
    with together():
        store.write_table(task_names, labels, TASK_NAMES, stage="names", params=made_from)
        store.write_table(image_names, images, IMAGE_NAMES, stage="names", params=made_from)
        store.write_table(task_sources, sources, TASK_SOURCES, stage="names", params=made_from)
    log.info(f"names: {labels['task'].nunique()} tasks, {len(labels)} labels, {len(images)} images have names")


if __name__ == "__main__":
    run(main)
