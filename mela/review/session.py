"""Keep a review: what is asked next, what was answered, and what the answers have changed."""

from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np

from mela.data.array_types import Ints
from mela.errors import MelaError
from mela.io.appended_tables import remove_last_row
from mela.labeling.correction_tables import COLUMNS, add_correction, links_by_name, read_corrections
from mela.labeling.given_names import COLUMNS as NAME_COLUMNS
from mela.labeling.given_names import add_given_name, names_of_clusters, problem_of, read_given_names
from mela.labeling.links import Links, Said
from mela.labeling.questions import Question, questions
from mela.review.project import Project

Answer = Literal["same", "different", "skip"]
# of all pairs in one class, the share that an answer has to be expected to change, and no less than a pair
WORTH = 0.001
# images of a task class, task classes of its group, and questions that are counted
IMAGES, MEMBERS, COUNTED = 6, 4, 500


class AnsweredError(MelaError):
    """Tell that a question was answered meanwhile, that an answer contradicts another, or what is wrong with a name."""


@dataclass(frozen=True, kw_only=True)
class _State:
    said: list[Said]
    links: Links
    clusters: Ints
    # those that are worth most
    asked: list[Question]
    # of clusters
    named: dict[int, str]


class Session:
    """Ask about the clusters of a project, and append answers to a table of corrections, and names to another.

    Both live in the tables alone, so that several pages, and people who edit these by hand, see the same.

    Parameters
    ----------
    project : Project
    table : Path
        CSV of corrections; it need not be there yet, but its folder.
    names : Path
        CSV of names of classes; as `table`.

    Raises
    ------
    MelaError
        There is no such folder, or both are one file.
    """

    def __init__(self, project: Project, table: Path, names: Path) -> None:
        for path in (table, names):
            if not path.parent.is_dir():
                raise MelaError(f"{path}: expected a file in a folder that exists, found no {path.parent}; make it")
        if table.resolve() == names.resolve():
            raise MelaError(f"{names}: expected another file for names than for corrections; give another")
        self.table, self.names = table, names
        self._project = project
        # pairs that were passed over, the table of each answer and name, in their order
        self._done: list[tuple[int, int] | Path] = []
        self._lock = Lock()
        self._read: tuple[list[bytes], _State] | None = None

    def state(self) -> dict[str, Any]:
        """Return the next question, and what the answers have changed so far.

        Raises
        ------
        MelaError
            Somebody has written into the tables what is no correction or name, or a contradiction.
        """
        with self._lock:
            return self._told(self._now())

    def answer(self, one: int, other: int, answer: Answer) -> dict[str, Any]:
        """Write an answer about two task classes to the disk, or pass the question over, and return the next state.

        Raises
        ------
        AnsweredError
            The answer follows from others, or contradicts them.
        MelaError
            As `state`.
        """
        with self._lock:
            before = self._now()
            if not (0 <= one < len(before.clusters) and 0 <= other < len(before.clusters)):
                raise AnsweredError("there is no such question; reload the page")
            if answer == "skip":
                self._done.append((one, other))
                return self._told(before) | {"changed": "This question was passed over."}
            pair = np.array([one]), np.array([other])
            if before.links.components[one] == before.links.components[other] or before.links.tell_apart(*pair):
                raise AnsweredError("this was answered meanwhile, perhaps on another page; here is the next question")
            names = self._project.names
            add_correction(self.table, names[one], names[other], same=answer == "same")
            self._done.append(self.table)
            after = self._now()
            return self._told(after) | {"changed": _changed(before.clusters, after.clusters)}

    def name(self, row: int, name: str) -> dict[str, Any]:
        """Write to the disk what the class of a task class is called, or nothing for no name; return the state.

        Raises
        ------
        AnsweredError
            The name is too long, or has letters that cannot be seen.
        MelaError
            As `state`.
        """
        with self._lock:
            before, name = self._now(), name.strip()
            if not 0 <= row < len(before.clusters):
                raise AnsweredError("there is no such label; reload the page")
            if problem := problem_of(name):
                raise AnsweredError(f"expected a name {problem}; give another")
            if name == before.named.get(int(before.clusters[row]), ""):
                return self._told(before)
            add_given_name(self.names, self._project.names[row], name)
            self._done.append(self.names)
            called = f"The class is called {name} now." if name else "The class has no name now."
            return self._told(self._now()) | {"changed": called}

    def undo(self) -> dict[str, Any]:
        """Take back what was done last, else the last correction of the table, and return the next state."""
        with self._lock:
            before = self._now()
            done = self._done.pop() if self._done else self.table
            if done == self.names:
                # unless somebody has emptied the table by hand
                if read_given_names(self.names):
                    remove_last_row(self.names, NAME_COLUMNS)
                return self._told(self._now()) | {"changed": "The name is taken back."}
            if isinstance(done, tuple):
                return self._told(before) | {"changed": "The question that was passed over is back."}
            if not before.said:
                return self._told(before)
            last = before.said[-1]
            remove_last_row(self.table, COLUMNS)
            answer = "the same" if last.same else "different"
            given = f"{last.one[1]} by {last.one[0]} and {last.other[1]} by {last.other[0]} were {answer}"
            return self._told(self._now()) | {"changed": f"Taken back that {given}."}

    def _now(self) -> _State:
        content = [path.read_bytes() if path.exists() else b"" for path in (self.table, self.names)]
        if self._read is None or self._read[0] != content:
            corrections, said = self._project.corrections, read_corrections(self.table)
            links = links_by_name(said, self._project.names, corrections.starts) or Links.nothing(corrections.starts)
            clusters = corrections.after(links)
            sizes = np.bincount(clusters[clusters >= 0])
            least = max(1.0, WORTH * float((sizes * (sizes - 1)).sum()) / 2)
            found = islice(questions(corrections, links, clusters), COUNTED)
            asked = list(takewhile(lambda question: question.worth >= least, found))
            named = names_of_clusters(read_given_names(self.names), self._project.names, clusters, every=False)
            self._read = content, _State(said=said, links=links, clusters=clusters, asked=asked, named=named)
        return self._read[1]

    def _told(self, state: _State) -> dict[str, Any]:
        skipped = {pair for pair in self._done if isinstance(pair, tuple)}
        left = [question for question in state.asked if (question.one, question.other) not in skipped]
        sizes = np.bincount(state.clusters[state.clusters >= 0])
        return {
            "question": self._question(left[0], state) if left else None,
            "left": len(left),
            "more": len(state.asked) == COUNTED,
            "answers": len(state.said),
            "skipped": len(skipped),
            "classes": len(sizes),
            "alone": int((sizes == 1).sum()),
            "expected_ari": self._project.corrections.expected_ari(state.clusters),
            "named": len(state.named),
            "undo": bool(state.said or self._done),
            "changed": "",
            "table": str(self.table),
            "names": str(self.names),
        }

    def _question(self, question: Question, state: _State) -> dict[str, Any]:
        sides = [
            self._side(row, group) | {"row": row, "called": state.named.get(int(state.clusters[row]), "")}
            for row, group in ((question.one, question.groups.one), (question.other, question.groups.other))
        ]
        return {
            "one": question.one,
            "other": question.other,
            "joined": question.groups.joined,
            "same": question.same,
            "pairs": round(question.worth),
            "sides": sides,
        }

    def _side(self, row: int, group: Ints) -> dict[str, Any]:
        others = [int(other) for other in group if other != row]
        return self._shown(row, IMAGES) | {
            "size": len(group),
            "members": [self._shown(other, 1) for other in others[:MEMBERS]],
        }

    def _shown(self, row: int, count: int) -> dict[str, Any]:
        task, label = _text(self._project.names[row])
        return {"task": task, "label": label, "images": self._project.shown[row][:count].tolist()}


def _text(name: tuple[Any, Any]) -> tuple[str, str]:
    return str(name[0]), str(name[1])


def _changed(before: Ints, after: Ints) -> str:
    """Say what an answer has changed in the clusters (n,), in a sentence."""
    number = int(after.max()) - int(before.max())
    one = f"{abs(number)} {'class' if abs(number) == 1 else 'classes'}"
    if number:
        return f"{one} {'more' if number > 0 else 'fewer'} than before."
    if _pairs(before, before) != _pairs(before, after) or _pairs(after, after) != _pairs(before, after):
        return "A label has moved to another class."
    return "This confirms the classes as they are."


def _pairs(one: Ints, other: Ints) -> int:
    """Return how many pairs are together in both partitions."""
    counts = np.unique(np.stack([one, other]), axis=1, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())
