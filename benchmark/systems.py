"""Names of systems: ``initial``, a method on tasks, or ``<labels>-<method>`` and what follows it, step by step."""

from collections.abc import Iterator, Sequence

from mela.errors import MelaError
from mela.method import find_method
from mela.published import PUBLISHED_SHOTS, SYSTEMS

LABELS = {"mela": "MeLa", "kmeans": "K-means labels", "oracle": "true labels"}
# the method of self-distillation, which learns from another model besides
DISTILL = "distill"
GROUPS = {"tasks": "Local labels only", "labels": "Global labels", "images": "No labels"}


def title(system: str) -> str:
    """What tables call a system."""
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
    """The labels that a system uses, if any."""
    first = system.split("-")[0]
    return first if first in LABELS else None


def group(system: str) -> str:
    """Under which heading of a table it stands, by what it has seen."""
    labels = uses(system)
    if labels == "oracle":
        return GROUPS["labels"]
    if labels or system == "initial":
        return GROUPS["tasks"]
    return GROUPS[find_method(system).sees]


def by_group(systems: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Headings of a table, and the systems under each; only those that have some."""
    for heading in GROUPS.values():
        inside = [system for system in systems if group(system) == heading]
        if inside:
            yield heading, inside


def has_published(data: str, shots: Sequence[int]) -> bool:
    """Whether the paper has figures of a data set, whatever the network, for these numbers of support images."""
    return tuple(shots) == PUBLISHED_SHOTS and any(published_figures(system, data) for system in SYSTEMS)


def published_figures(system: str, data: str) -> tuple[float, float] | None:
    """Accuracies that the paper has of a system on a data set, whatever the network."""
    return SYSTEMS.get(system, {}).get(data.removesuffix("_resnet12"))


def require(system: str) -> None:
    """Raise MelaError unless there is such a system."""
    first, *methods = system.split("-")
    if first == "initial" and not methods:
        return
    if first in LABELS and not methods:
        raise MelaError(f"system {system!r}: expected {first}-<method>, such as {first}-rfs")
    for name in methods if first in LABELS else [system]:
        find_method(name)
