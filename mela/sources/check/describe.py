"""Describe in lines of text what was found in a user's data."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from mela.io.schemas import SPLITS
from mela.sources.check.error_kinds import lines
from mela.sources.check.inspect import Classes, Findings, Tasks
from mela.sources.check.pictures import Pictures
from mela.sources.folder_tree import unused_in_words
from mela.sources.plurals import count_of

SUPPORTS = (1, 5, 10)
USUAL_MODES = frozenset({"1", "L", "RGB"})
# what Pillow names by a letter
WORDS = {"1": "black and white", "L": "grey"}
KIND = {
    "tasks": "tasks with labels of their own",
    "classes": "classes, one in each folder",
}
OTHER = {"tasks": "classes", "classes": "tasks"}


def describe(findings: Findings, *, every: bool = False) -> Iterator[str]:
    """Yield what is there, and one line for each kind of warnings or for every one; errors are the caller's."""
    layout, pictures = findings.layout, findings.pictures
    kind = "classes" if layout.name == "meta_album" else KIND[layout.kind]
    yield f"{layout.root}: taken for {kind}, {layout.reason} (--as {OTHER[layout.kind]} overrules)"
    yield ""
    yield _line("images", _pictures(pictures))
    if findings.tasks is not None:
        yield from _tasks(findings.tasks)
    if findings.classes is not None:
        yield from _classes(findings.classes)
    yield from (_line("moved", line) for line in findings.moved)
    for number, line in enumerate(unused_in_words(findings.unused)):
        yield _line("not used" if number == 0 else "", line)
    if findings.warnings:
        yield ""
    yield from in_lines("warning", findings.warnings, every=every)


def in_lines(name: str, problems: Sequence[str], *, every: bool) -> Iterator[str]:
    """Yield a line for each kind of problem, or for every one, and how many a kind stands for."""
    shown = problems if every else list(lines(problems))
    yield from (f"{name}: {line}" for line in shown)
    if len(shown) < len(problems):
        yield f"{len(problems)} {name}s of {count_of(len(shown), 'kind')}; --all prints each of them"


def _line(name: str, text: str) -> str:
    return f"  {name:<13}{text}"


def _pictures(pictures: Pictures) -> str:
    if not pictures.sizes:
        return f"{pictures.count}, none of them readable" if pictures.count else "none"
    parts = [f"{pictures.count}, {_sizes(pictures.sizes)}"]
    parts.append(", ".join(f"{WORDS.get(mode, mode)} {count}" for mode, count in pictures.modes.most_common()))
    odd = sorted(set(pictures.modes) - USUAL_MODES)
    if odd:
        parts.append(f"{', '.join(odd)} {'is' if len(odd) == 1 else 'are'} converted")
    if not pictures.coloured and "RGB" in pictures.modes:
        parts.append("all of them grey")
    return "; ".join(parts)


def _sizes(sizes: Counter[tuple[int, int]]) -> str:
    (size, count), *others = sizes.most_common()
    if not others:
        return f"all {size[0]} x {size[1]} pixels"
    widths, heights = zip(*sizes, strict=True)
    return f"{_range(widths)} x {_range(heights)} pixels, most often {size[0]} x {size[1]} ({count})"


def _range(values: Collection[int]) -> str:
    return f"{min(values)} to {max(values)}" if min(values) < max(values) else str(min(values))


def _tasks(tasks: Tasks) -> Iterator[str]:
    table = tasks.table
    if table.empty:
        yield _line("tasks", "0 tasks")
        return
    yield _line("tasks", f"{len(table)}, ways (local labels of a task): {_range(table['ways'].tolist())}")
    images = _range([*table["fewest"].tolist(), *table["most"].tolist()])
    common = ", ".join(repr(name) for name, _ in tasks.label_names.most_common(3))
    yield _line("labels", f"{len(tasks.label_names)} different names, such as {common}; images of a label: {images}")
    shared = sum(count for count in tasks.label_names.values() if count > 1)
    if shared:
        yield _line("names", f"{shared} labels have one that other tasks use, which merging.names: true makes evidence")
    if tasks.support and tasks.query:
        yield _line(
            "roles", f"given: {_range(tasks.support)} support and {_range(tasks.query)} query images of a label"
        )
    else:
        yield _line("roles", "not given; tasks.shots images of each label become support, the others query")
    counts = Counter(table["split"])
    if set(counts) <= set(SPLITS):
        named = ", ".join(f"{counts[split]} {split}" for split in SPLITS)
        drawn = f"drawn, {tasks.pinned} of them pinned by splits.csv" if tasks.pinned else "drawn"
        yield _line("splits", f"{'given' if tasks.splits_given else drawn}: {named}")
    if tasks.true_classes:
        yield _line("truth", f"{count_of(tasks.true_classes, 'class')} of all tasks, of which no labels are inferred")
    if tasks.unused_columns:
        yield _line("columns", f"not used: {', '.join(map(repr, tasks.unused_columns))}")
    enough = ", ".join(f"{int((table['support'] >= k).sum())} for {k}-shot" for k in SUPPORTS)
    yield _line("allows", f"tasks with enough support images of each label: {enough}")


def _classes(classes: Classes) -> Iterator[str]:
    yield _line("classes", f"{len(classes.table)}, splits {'given' if classes.splits_given else 'drawn'}")
    for split in SPLITS:
        sizes = classes.sizes(split)
        if not sizes:
            yield _line(split, "no classes")
            continue
        name, least = min(sizes.items(), key=lambda item: item[1])
        images = _range(list(sizes.values()))
        yield _line(
            split,
            f"{count_of(len(sizes), 'class')} of {images} {'image' if images == '1' else 'images'}; allows "
            f"{count_of(len(sizes), 'way')}, and {least} shots and queries "
            f"together (the images of {name!r})",
        )
