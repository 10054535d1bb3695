"""Read and write what people say of task classes: a table of pairs of labels that are the same, or different."""

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from mela.data.array_types import Ints
from mela.errors import MelaError
from mela.io.appended_tables import append_row, read_rows
from mela.io.name_tables import KEYS, with_names
from mela.io.schemas import LINKS
from mela.io.text_tables import as_written, folded
from mela.labeling.links import Links, Name, Said
from mela.labeling.task_classes import TaskSamples

COLUMNS = ("task", "label", "other_task", "other_label", "answer")
ANSWERS = {"same": True, "different": False}


def read_corrections(path: Path) -> list[Said]:
    """Read a table of corrections; none where there is no such file, or it is empty.

    Parameters
    ----------
    path : Path
        CSV with the columns ``task``, ``label``, ``other_task``, ``other_label``, and ``answer``, which is ``same`` or
        ``different``. Tasks and labels are named as in ``results/labels.csv``.

    Returns
    -------
    list of Said
        With names as the cells are, which `links_by_name` understands.

    Raises
    ------
    MelaError
        One line that names the file and the line.
    """
    said = []
    for place, (task, label, other_task, other_label, answer) in read_rows(path, COLUMNS):
        if folded(answer) not in ANSWERS:
            raise MelaError(f"{place}: expected the answer 'same' or 'different', got {answer!r}; correct it")
        said.append(Said((task, label), (other_task, other_label), ANSWERS[folded(answer)], place))
    return said


def add_correction(path: Path, one: Name, other: Name, *, same: bool) -> None:
    """Write one more row at the end of a table of corrections; see `mela.io.appended_tables.append_row`."""
    append_row(path, COLUMNS, (*one, *other, "same" if same else "different"))


def links_by_name(said: Sequence[Said], names: Sequence[Name], starts: Ints) -> Links | None:
    """Return the links between task classes of these names (n_classes,), compared as text; None where none are said.

    A cell may also be written as `mela.io.text_tables.harmless` does, or have blanks around it.

    Raises
    ------
    MelaError
        As `Links.of`.
    """
    texts = [(str(task), str(label)) for task, label in names]
    known = set(texts)
    meant = [one._replace(one=meant_name(one.one, known), other=meant_name(one.other, known)) for one in said]
    return Links.of(meant, texts, starts) if said else None


def meant_name(name: Name, known: Collection[Name]) -> Name:
    """Return the known name that a pair of cells means, or the cells where there is none."""
    task, label = map(str, name)
    shown = as_written(task), as_written(label)
    ways = [(task, label), shown, (shown[0].strip(), shown[1].strip())]
    return next((way for way in ways if way in known), ways[0])


def numbered_links(said: Sequence[Said], manifest: pd.DataFrame, names: pd.DataFrame) -> pd.DataFrame:
    """Return the links between local labels of a manifest, by number, as `links_between` reads them.

    Parameters
    ----------
    said : sequence of Said
    manifest : DataFrame
        Columns task_id and local_label.
    names : DataFrame
        What people wrote, with columns as `mela.io.name_tables.TASK_NAMES`; perhaps no rows.

    Raises
    ------
    MelaError
        As `Links.of`.
    """
    labels = manifest[KEYS].drop_duplicates().sort_values(KEYS).reset_index(drop=True)
    starts = np.flatnonzero(np.diff(labels["task_id"], prepend=-1, append=-1)).astype(np.int64)
    links = links_by_name(said, names_of(labels, names), starts)
    if links is None:
        return LINKS.empty_table().to_pandas()
    rows = np.concatenate([links.same, links.different])
    one, other = (labels.iloc[rows[:, side]].reset_index(drop=True) for side in (0, 1))
    same = np.arange(len(rows)) < len(links.same)
    return one.join(other.add_prefix("other_")).assign(same=same)


def names_of(labels: pd.DataFrame, names: pd.DataFrame) -> list[Name]:
    """Return the task and the label, as people wrote them, of rows with task_id and local_label (n,)."""
    named = with_names(labels, names)
    return list(zip(named["task"].tolist(), named["label"].tolist(), strict=True))


def links_between(table: pd.DataFrame, samples: TaskSamples) -> Links | None:
    """Return the links between task classes that a table of numbers has; None where it has no rows.

    Raises
    ------
    MelaError
        A link names a label that no sample has.
    """
    if table.empty:
        return None
    known = {name: row for row, name in enumerate(samples.names)}
    columns = LINKS.names[:4]
    try:
        rows = np.array([[known[a, b], known[c, d]] for a, b, c, d in table[columns].to_numpy()], dtype=np.int64)
    except KeyError as error:
        raise MelaError(
            f"links: they name the label {error} of no training task; rerun the stage corrections"
        ) from None
    same = table["same"].to_numpy()
    return Links(same=rows[same], different=rows[~same], starts=samples.starts)
