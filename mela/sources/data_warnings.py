"""Report what the stage images has to say about the user's own data."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from mela.params import DataParams
from mela.sources.folder_tree import unused_files, unused_in_words
from mela.sources.meta_album import LABELS, TABLES
from mela.sources.pinned_splits import keep_splits, moves
from mela.sources.source import REST, ImageSource
from mela.sources.task_rows import labels_that_are_rest


def remarks(source: ImageSource, data: DataParams) -> Iterator[str]:
    """Yield what is not used, what has moved and what no task is made of; remember the splits for the next run.

    Parameters
    ----------
    source : ImageSource
    data : DataParams
        Name the folder of the data, and the table in it that is in use.
    """
    if source.split_of_names is None:
        return
    root, pins = data.root, source.tasks is not None and not data.table
    table = data.table or (LABELS if data.name == "meta_album" else None)
    also = _tables(data.name, "", None)
    also += [path for one in data.datasets or () for path in _tables(one.name, f"{one.root}/", one.table)]
    for line in unused_in_words(unused_files(Path(root), set(source.sources), table=table, also=also, pins=pins)):
        yield f"not used: {line}"
    yield from moves(root, source.split_of_names)
    if source.tasks is not None:
        rest = source.tasks[source.tasks["split"] == REST].drop_duplicates(["task_id", "local_label"])
        if len(rest):
            yield labels_that_are_rest(len(rest))
    # where nothing can be written, the next run has nothing to tell
    with suppress(OSError):
        keep_splits(root, source.split_of_names)


def _tables(name: str, folder: str, table: str | None) -> list[str]:
    """Return the tables of a data set, by their path below the root."""
    own = [*(TABLES if name == "meta_album" else ()), *([table] if table else [])]
    return [f"{folder}{one}" for one in own]
