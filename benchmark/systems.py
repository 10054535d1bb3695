"""Name systems: ``initial``, a method on tasks, or ``<labels>-<method>`` and the steps that follow."""

from collections.abc import Iterator, Sequence

from mela.errors import MelaError
from mela.learners.base import Student
from mela.methods import find_method
from mela.reporting.published import PUBLISHED_SHOTS, SYSTEMS

LABELS = {
    "kmeans": "K-means labels",
    "pruned_unguarded": "MeLa (Algorithm 2)",
    "pruned": "MeLa (Algorithm 2, guarded)",
    "merged": "MeLa (merged)",
    "oracle": "true labels",
}
# the method of self-distillation, which learns from another model besides
DISTILL = "distill"
GROUPS = {"tasks": "Local labels only", "labels": "Global labels", "images": "No labels"}


def title(system: str) -> str:
    """Return what tables call a system."""
    if system == "initial":
        return "initial embedding"
    first, *methods = system.split("-")
    if first not in LABELS:
        return find_method(first).title
    titles = [find_method(name).title for name in methods]
    if titles[:1] == ["RFS"]:
        titles = titles[1:]
    generations = titles.count("distilled")
    if generations > 1:
        titles = [name for name in titles if name != "distilled"] + [f"distilled, generation {generations}"]
    return LABELS[first] + (f" + {' + '.join(titles)}" if titles else "")


def methods_of(system: str) -> list[str]:
    """Return the methods that make a system, one after the other; none for ``initial``."""
    first, *methods = system.split("-")
    return methods if first in LABELS else [first] if first != "initial" else []


def uses(system: str) -> str | None:
    """Return the labels that a system uses, if any."""
    first = system.split("-")[0]
    return first if first in LABELS else None


def group(system: str) -> str:
    """Return the heading of a table under which a system stands, by what it has seen."""
    labels = uses(system)
    if labels == "oracle":
        return GROUPS["labels"]
    if labels or system == "initial":
        return GROUPS["tasks"]
    return GROUPS[find_method(system).sees]


def by_group(systems: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the headings of a table that have systems, and the systems under each."""
    for heading in GROUPS.values():
        inside = [system for system in systems if group(system) == heading]
        if inside:
            yield heading, inside


def has_published(data: str, shots: Sequence[int]) -> bool:
    """Tell whether the paper has figures of a data set, for any network, for these numbers of support images."""
    return tuple(shots) == PUBLISHED_SHOTS and any(published_figures(system, data) for system in SYSTEMS)


def published_figures(system: str, data: str) -> tuple[float, float] | None:
    """Return the accuracies that the paper has of a system on a data set, for any network."""
    return SYSTEMS.get(system, {}).get(data.removesuffix("_resnet12"))


def require(system: str) -> None:
    """Raise MelaError unless there is such a system, in the lists or not."""
    first, *methods = system.split("-")
    if system == "initial":
        return
    if first not in LABELS:
        if find_method(system).sees == "labels":
            raise MelaError(f"system {system!r}: expected <labels>-{system}, such as merged-{system}")
        return
    if not methods:
        raise MelaError(f"system {system!r}: expected {first}-<method>, such as {first}-rfs")
    for place, name in enumerate(methods):
        method = find_method(name)
        on_labels = method.sees == "labels" and issubclass(method.learner, Student) == bool(place)
        tuned = method.sees == "tasks" and 0 < place == len(methods) - 1
        if not on_labels and not tuned:
            raise MelaError(
                f"system {system!r}: expected <labels>-<method on labels>, then {DISTILL}, once or more, then a method "
                f"on tasks, or none of either, got {name!r} in place {place + 2}; correct it"
            )
