"""Read and write the names that somebody gave to classes: a table of labels, and what the class of each is called.

Clusters are numbered anew by each run, so a name belongs to a label and goes wherever this label goes.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from mela.data.array_types import Ints
from mela.errors import MelaError
from mela.io.appended_tables import append_row, read_rows
from mela.io.text_tables import as_written
from mela.labeling.correction_tables import meant_name
from mela.labeling.links import Name, find_name

COLUMNS = ("task", "label", "name")
# letters of a name
LONGEST = 60


class GivenName(NamedTuple):
    """Hold a label, what its class is called, and which line of which file says so."""

    label: Name
    name: str
    place: str


def read_given_names(path: Path) -> list[GivenName]:
    """Read a table of names; none where there is no such file, or it is empty.

    Parameters
    ----------
    path : Path
        CSV with the columns ``task``, ``label`` and ``name``. Tasks and labels are named as in ``results/labels.csv``.

    Raises
    ------
    MelaError
        One line that names the file and the line.
    """
    found = []
    for place, (task, label, name) in read_rows(path, COLUMNS):
        called = as_written(name).strip()
        if problem := problem_of(called):
            raise MelaError(f"{place}: expected a name {problem}; correct it")
        found.append(GivenName((task, label), called, place))
    return found


def problem_of(name: str) -> str | None:
    """Return what is wrong with the name of a class, as the end of "expected a name"; None where it is right."""
    if len(name) > LONGEST:
        return f"of at most {LONGEST} letters, got {len(name)}"
    if not name.isprintable():
        return f"without line breaks and control characters, got {name!r}"
    return None


def add_given_name(path: Path, label: Name, name: str) -> None:
    """Write one more row at the end of a table of names; see `mela.io.appended_tables.append_row`."""
    append_row(path, COLUMNS, (*label, name))


def names_of_clusters(
    given: Sequence[GivenName], labels: Sequence[Name], clusters: Ints, *, every: bool
) -> dict[int, str]:
    """Return the names of clusters.

    The last name that a label of a cluster was given is that of the cluster. An empty one takes it back.

    Parameters
    ----------
    given : sequence of GivenName
    labels : sequence of (task, label) (n,)
        Compared as text.
    clusters : int64 (n,)
        Cluster of each label; -1 is none.
    every : bool
        Whether each name has to be that of one of the labels; others are passed over.

    Raises
    ------
    MelaError
        A label is none of these.
    """
    known = {(str(task), str(label)): row for row, (task, label) in enumerate(labels)}
    found: dict[int, str] = {}
    for one in given:
        label = meant_name(one.label, known)
        if label in known or every:
            cluster = int(clusters[find_name(label, one.place, known)])
            found.pop(cluster, None)
            if one.name and cluster >= 0:
                found[cluster] = one.name
    return found


def with_class_names(listing: pd.DataFrame, given: Sequence[GivenName]) -> pd.DataFrame:
    """Return a listing (`mela.io.name_tables.LISTING`) in which the column ``name`` is that of each label's class.

    Raises
    ------
    MelaError
        Somebody named the class of a label that is not listed.
    """
    clusters: Ints = listing["cluster"].fillna(-1).to_numpy().astype(np.int64)
    labels = list(zip(listing["task"], listing["label"], strict=True))
    names = names_of_clusters(given, labels, clusters, every=True)
    return listing.assign(name=[names.get(cluster, "") for cluster in clusters])
