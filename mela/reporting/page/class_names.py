"""Collect what people called the classes that were found, as the page shows it."""

import unicodedata
from dataclasses import dataclass

import pandas as pd

LETTERS = 60
PEOPLE = 3
LABELS = 8
# they change the direction of what follows, so that a name could pretend to be another
DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True, kw_only=True)
class Written:
    """Hold a label of a class, as people wrote it.

    Attributes
    ----------
    label : str
    people : sequence of str
        The first tasks that use it for the class.
    more : int
        Further tasks that do.
    assigned : int
        How many of all these are held-out tasks.
    """

    label: str
    people: list[str]
    more: int
    assigned: int


@dataclass(frozen=True, kw_only=True)
class Names:
    """Hold the labels of a class, the most frequent first, how many more there are, and what somebody called it."""

    labels: list[Written]
    more: int
    called: str


def names_of_classes(listing: pd.DataFrame) -> dict[int, Names]:
    """Return what people called each class.

    Parameters
    ----------
    listing : DataFrame
        Columns as `mela.io.name_tables.LISTING`.
    """
    found = {}
    for cluster, rows in listing[listing["clustered"]].groupby("cluster"):
        groups = [group for _, group in rows.groupby("label", sort=False)]
        groups.sort(key=len, reverse=True)
        labels = [
            Written(
                label=readable(str(group["label"].iloc[0])),
                people=[readable(str(task)) for task in group["task"].head(PEOPLE)],
                more=max(0, len(group) - PEOPLE),
                assigned=int(group["assigned"].sum()),
            )
            for group in groups[:LABELS]
        ]
        called = readable(str(rows["name"].iloc[0]))
        found[int(float(str(cluster)))] = Names(labels=labels, more=max(0, len(groups) - LABELS), called=called)
    return found


def readable(text: str, letters: int | None = LETTERS) -> str:
    """Shorten a name, and escape line breaks and other control characters."""
    visible = "".join(
        letter.encode("unicode_escape").decode()
        if letter in DIRECTIONS or unicodedata.category(letter) in ("Cc", "Zl", "Zp", "Cs")
        else letter
        for letter in text
    )
    return f"{visible[:letters]}…" if letters and len(visible) > letters else visible


def held_out_counts(listing: pd.DataFrame) -> tuple[int, int] | None:
    """Count the held-out tasks' labels assigned to a class and to none; None without such labels."""
    assigned = listing[listing["assigned"]]
    known = int(assigned["clustered"].sum())
    return (known, len(assigned) - known) if len(assigned) else None
