"""Define what the benchmark runs: data sets, seeds, labels and methods, and the systems that they make."""

import re
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from benchmark import places, settings
from benchmark.systems import DISTILL, LABELS, methods_of, require, title, uses
from mela.blocks import first_problem, read_yaml
from mela.errors import MelaError
from mela.learners.base import Student
from mela.learners.method import Sees
from mela.methods import find_method, method_names, methods_that_see
from mela.params import RatesParams, Seed
from mela.runtime.console import log
from stages.common.run import run

PARAMS = places.BENCHMARK / "params.yaml"
SEES: dict[str, Sees] = {
    "task_methods": "tasks",
    "tuned_methods": "tasks",
    "label_methods": "labels",
    "image_methods": "images",
}
# from which names of systems and of files are made
NO_METHODS = ("initial", "labels", *LABELS)
# labels on which one method alone is trained
PRUNED, PLAIN = ("pruned_unguarded", "pruned"), "rfs"
NAME = re.compile("[a-z][a-z0-9_]*")


class Matrix(BaseModel):
    """Hold the parameters of the benchmark.

    Attributes
    ----------
    data : list of str
        Files of ``benchmark/data``.
    seeds : list of int
    labels : list of {"kmeans", "merged", "oracle"}
    inferred : list of {"merged", "pruned", "pruned_unguarded"}
        Labels that LearnLabeler infers from the tasks; all of them are scored.
    pruned : list of {"pruned", "pruned_unguarded"}
        Those by Algorithm 2, on which RFS alone is trained.
    task_methods, image_methods, label_methods : list of str
        What is trained from nothing: on tasks, on images alone, and on each of the labels.
    distill_from : list of str
        Methods on labels, and what is distilled from them, of which the next generation learns.
    tuned_methods, tuned_from : list of str
        Methods on tasks that go on from a pre-trained embedding, and these: systems on labels.
    comparisons : dict of str to list of (str, str)
        Pairs of systems under a question; those that the matrix does not have are not shown.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    data: Annotated[list[str], Field(min_length=1)]
    seeds: Annotated[list[Seed], Field(min_length=1)]
    labels: list[Literal["kmeans", "merged", "oracle"]]
    inferred: list[Literal["merged", "pruned", "pruned_unguarded"]]
    pruned: list[Literal["pruned", "pruned_unguarded"]]
    task_methods: list[str]
    image_methods: list[str]
    label_methods: list[str]
    distill_from: list[str]
    tuned_methods: list[str]
    tuned_from: list[str]
    comparisons: dict[str, list[tuple[str, str]]] = {}

    @classmethod
    def read(cls, path: Path = PARAMS) -> Self:
        """Read the matrix from a file, beside which ``data`` has the data sets.

        Raises
        ------
        MelaError
            There is no such file, a key is missing or unknown, or there is no such data set, method or system.
        """
        if not path.exists():
            raise MelaError(f"{path}: no such file; run from the project's root")
        try:
            matrix = cls.model_validate(read_yaml(path))
        except ValidationError as error:
            raise MelaError(f"{path}: {first_problem('', error)}") from None
        known = sorted(file.stem for file in (path.parent / "data").glob("*.yaml"))
        for name in matrix.data:
            if name not in known:
                raise MelaError(
                    f"{path}: data: expected files of {path.parent / 'data'}, which are {', '.join(known) or 'none'}, "
                    f"got {name!r}; correct it, or add {name}.yaml"
                )
        for name in matrix.data:
            source = path.parent / "data" / f"{name}.yaml"
            settings.require_complete(source)
            for method in RatesParams.read(source).by_name:
                _require_rated(source, method)
        return matrix

    @field_validator("comparisons", mode="before")
    @classmethod
    def _pairs(cls, asked: object) -> dict[str, list[tuple[str, str]]]:
        """Return questions with pairs of systems."""
        if not isinstance(asked, dict | None):
            raise ValueError(f"expected questions, each with pairs of systems, got {asked}; correct it")
        found: dict[str, list[tuple[str, str]]] = {}
        for question, pairs in (asked or {}).items():
            for pair in pairs if isinstance(pairs, list) else [pairs]:
                if not isinstance(pair, list) or len(pair) != 2:
                    raise ValueError(
                        f"{question}: expected pairs such as [merged-rfs, initial], got {pair}; correct it"
                    )
                first, second = pair
                if not isinstance(first, str) or not isinstance(second, str) or first == second:
                    raise ValueError(f"{question}: expected names of two systems, got {pair}; correct it")
                try:
                    require(first)
                    require(second)
                except MelaError as error:
                    raise ValueError(f"{question}: {error}") from None
                if (first, second) in found.setdefault(str(question), []):
                    raise ValueError(f"{question}: expected every pair once, got {pair} again; remove it")
                found[str(question)].append((first, second))
        return found

    @model_validator(mode="after")
    def _names(self) -> Self:
        """Check that each name exists and occurs once."""
        for key, values in self:
            if isinstance(values, list) and (repeated := {str(one) for one in values if values.count(one) > 1}):
                raise ValueError(f"{key}: expected every name once, got {', '.join(sorted(repeated))} again; remove it")
        for key, sees in SEES.items():
            for name in getattr(self, key):
                _require_method(key, name, sees)
        for name in (*self.pruned, *({"merged"} & {*self.labels})):
            if name not in self.inferred:
                raise ValueError(f"inferred: expected {name}, on which methods are trained, got none; add it")
        trained = [*self.label_methods]
        for name in self.distill_from:
            if name not in trained:
                raise ValueError(
                    f"distill_from: expected one of {', '.join(trained) or 'label_methods'}, got {name!r}; correct it"
                )
            trained.append(f"{name}-{DISTILL}")
        starts = [f"{labels}-{name}" for labels in self.labels for name in trained]
        for name in self.tuned_from:
            if name not in starts:
                raise ValueError(
                    f"tuned_from: expected <labels>-<method> of labels and label_methods, such as "
                    f"{', '.join(starts[:3]) or 'merged-rfs'}, got {name!r}; correct it, or remove it"
                )
        files: dict[str, str] = {}
        for name in dict.fromkeys(part for system in self.systems[1:] for part in methods_of(system)):
            other = files.setdefault(find_method(name).title, name)
            if other != name:
                raise ValueError(
                    f"mela/methods/{name}.py: expected a title of its own, got {find_method(name).title!r}, which "
                    f"mela/methods/{other}.py has; change one"
                )
        called = Counter(map(title, self.systems))
        for name in self.systems:
            if called[title(name)] > 1:
                raise ValueError(f"{name}: expected a title of its own, got {title(name)!r} again; change its METHOD")
        return self

    @property
    def systems(self) -> list[str]:
        """Systems that are trained and measured, in the order of the tables: that of the lists, labels after labels."""
        found = ["initial", *self.task_methods]
        found += [f"{labels}-{PLAIN}" for labels in self.pruned]
        for labels in self.labels:
            found += [f"{labels}-{name}" for name in self.label_methods]
            found += [f"{labels}-{name}-{DISTILL}" for name in self.distill_from]
            starts = [name for name in self.tuned_from if name.startswith(f"{labels}-")]
            found += [f"{start}-{name}" for start in starts for name in self.tuned_methods]
        return [*found, *self.image_methods]

    def lists_of(self, system: str) -> str:
        """Return which lists make a system that there is, or would make it."""
        methods = methods_of(system)
        if uses(system) is None:
            return "image_methods" if find_method(methods[0]).sees == "images" else "task_methods"
        if len(methods) == 1:
            return "pruned" if uses(system) in PRUNED else "labels and label_methods"
        if methods[-1] == DISTILL:
            return "labels and distill_from"
        return "labels, tuned_from and tuned_methods"

    @property
    def left_out(self) -> list[tuple[str, str]]:
        """Pairs of `comparisons` with a system that the lists do not make."""
        known = set(self.systems)
        return [pair for pairs in self.comparisons.values() for pair in pairs if not set(pair) <= known]


def _require_method(key: str, name: str, sees: Sees) -> None:
    """Raise ValueError unless there is such a method, for what it has to learn from."""
    if name in method_names() and (name in NO_METHODS or not NAME.fullmatch(name)):
        raise ValueError(
            f"{key}: expected a name of lower case letters, digits and _, and none of {', '.join(NO_METHODS)}, from "
            f"which other names are made, got {name!r}; rename mela/methods/{name}.py"
        )
    if name not in method_names() or find_method(name).sees != sees:
        known = ", ".join(one for one in methods_that_see(sees) if not _learns_from_another(one))
        raise ValueError(f"{key}: expected methods that see {sees}, {known}, got {name!r}; correct it")
    if _learns_from_another(name):
        raise ValueError(
            f"{key}: expected methods that learn from labels alone, got {name!r}, which learns from another model "
            "besides; name that one under distill_from"
        )


def _require_rated(source: Path, name: str) -> None:
    """Raise MelaError unless a method with a learning rate in a data set's file learns from tasks."""
    if (sees := find_method(name).sees) != "tasks":
        raise MelaError(
            f"{source}: rates.{name}: expected methods that see tasks, {', '.join(methods_that_see('tasks'))}, got one "
            f"that sees {sees}, which has its rate elsewhere; remove it"
        )


def _learns_from_another(name: str) -> bool:
    """Tell whether a method needs another model, as distillation does."""
    return issubclass(find_method(name).learner, Student)


def main(lists: Path = PARAMS, results: Path = places.RESULTS) -> None:
    """Check what has to run, and tell how much of it is measured."""
    matrix = Matrix.read(lists)
    cells = [
        results / data / f"seed{seed}" / f"{system}.parquet"
        for data in matrix.data
        for seed in matrix.seeds
        for system in matrix.systems
    ]
    log.info(
        f"matrix: {len(matrix.systems)} systems on {', '.join(matrix.data)} with {len(matrix.seeds)} seeds, of which "
        f"{sum(cell.is_file() for cell in cells):,} of {len(cells):,} are measured"
    )
    if left_out := [f"{first} - {second}" for first, second in matrix.left_out]:
        few = ", ".join(left_out[:3]) + (", ..." if left_out[3:] else "")
        log.info(f"matrix: comparisons: {len(left_out)} with systems that the lists do not make are left out: {few}")


if __name__ == "__main__":
    run(main)
