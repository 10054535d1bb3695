"""Names of systems: ``initial``, a method on tasks, or ``<labels>-<method>`` and what follows it, step by step."""

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
# headings of tables, by what a system learns from
GROUPS = {
    "tasks": "The tasks alone",
    "mela": "MeLa's labels",
    "kmeans": "K-means labels",
    "oracle": "True labels",
    "images": "No labels",
}


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
    """Names of the methods that make it, one after the other; those of ``initial`` are none."""
    first, *methods = system.split("-")
    return methods if first in LABELS else [first] if first != "initial" else []


def uses(system: str) -> str | None:
    """Return the labels that a system uses, if any."""
    first = system.split("-")[0]
    return first if first in LABELS else None


def group(system: str) -> str:
    """Return the key of the heading under which a system stands, by what it learns from."""
    labels = uses(system)
    if labels is None:
        return "tasks" if system == "initial" else find_method(system).sees
    return labels if labels in GROUPS else "mela"


def name_in_group(system: str) -> str:
    """Return the title under the heading of a group, where "+ FEAT" adds FEAT to pre-training on its labels."""
    first, plus, more = title(system).partition(" + ")
    return f"+ {more}" if plus else first


def by_group(systems: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Headings of a table, and the systems under each; only those that have some."""
    for key, heading in GROUPS.items():
        inside = [system for system in systems if group(system) == key]
        if inside:
            yield heading, inside


def has_published(data: str, settings: Sequence[str]) -> bool:
    """Whether the paper has figures of a data set, whatever the network, in these settings."""
    return [*settings] == [f"{k}_shot" for k in PUBLISHED_SHOTS] and any(
        published_figures(system, data) for system in SYSTEMS
    )


def published_figures(system: str, data: str) -> tuple[float, float] | None:
    """Accuracies that the paper has of a system on a data set, whatever the network."""
    return SYSTEMS.get(system, {}).get(data.removesuffix("_resnet12"))


def require(system: str) -> None:
    """Raise MelaError unless there is such a system, whether or not lists make it."""
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
