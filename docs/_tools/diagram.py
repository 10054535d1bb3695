"""Draw the README's diagram of the pipeline as SVG, which needs no script and no network."""

import re
from xml.sax.saxutils import escape

# of boxes, of columns and of rows, and how far arrows go above and below the boxes
WIDTH, HEIGHT, STEP, ROW, ABOVE, BELOW = 100, 30, 124, 52, 68, 54
# column and row of each box
PLACES = {
    "images": (0, 0),
    "manifest": (1, 0),
    "embed": (2, 0),
    "extract": (3, 0),
    "round": (4, 0),
    "label_merged": (5, 0),
    "pretrain": (6, 0),
    "evaluate": (7, 0),
    "report": (8, 0),
    "names": (0, 1),
    "corrections": (2, 1),
    "label": (5, 1),
    "assign": (6, 1),
    "map": (7, 1),
    "label_kmeans": (5, 2),
    "score_labels": (7, 2),
    "confusions": (8, 3),
    "label_oracle": (5, 3),
    "truth": (1, 3),
}
# edges that pass above or below the boxes between, by so many rows
DETOURS = {
    ("manifest", "evaluate"): -1.3,
    ("embed", "evaluate"): -0.85,
    ("names", "assign"): 0.5,
    ("assign", "report"): 0.6,
    ("truth", "score_labels"): 0.85,
    ("truth", "confusions"): 1.0,
}
KINDS = {"-->": "plain", "==>": "thick", "-.->": "dotted"}
ARROW = re.compile(r"\s*(-->|==>|-\.->)\s*")
Point = tuple[float, float]


def read(mermaid: str) -> tuple[dict[str, str], list[tuple[str, str, str]]]:
    """Return the names and texts of a flowchart's boxes, and its arrows (from, to, kind of line)."""
    texts: dict[str, str] = {}
    edges = []
    for line in mermaid.splitlines()[1:]:
        parts = ARROW.split(line.strip())
        names = []
        for box in parts[::2]:
            found = re.fullmatch(r"(\w+)(?:\[\(?([^\])]+)\)?\])?", box)
            if found is None:
                raise ValueError(f"diagram: expected a box such as name or name[text], got {box!r}")
            names.append(found[1])
            texts[found[1]] = found[2] or texts.get(found[1], found[1])
        edges += [(a, b, KINDS[arrow]) for a, arrow, b in zip(names, parts[1::2], names[1:], strict=False)]
    return texts, edges


def draw(mermaid: str) -> str:
    """Return a figure with the boxes at their places."""
    texts, edges = read(mermaid)
    if missing := sorted(set(texts) - set(PLACES)):
        raise ValueError(f"diagram: expected a place for each box, got none for {', '.join(missing)}; add it to PLACES")
    lines = [f'<path class="{kind}" marker-end="url(#tip)" d="{curve(a, b)}"/>' for a, b, kind in edges]
    boxes = []
    for name, text in texts.items():
        x, y = centre(name)
        shape = "data" if text != name else "stage"
        boxes.append(
            f'<rect class="{shape}" x="{x - WIDTH / 2}" y="{y - HEIGHT / 2}" width="{WIDTH}" height="{HEIGHT}" '
            f'rx="{HEIGHT / 2 if shape == "data" else 6}"/><text x="{x}" y="{y + 4}">{escape(text)}</text>'
        )
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse" markerUnits="userSpaceOnUse"><path class="tip" d="M0 0 8 4 0 8z"/></marker>'  # noqa: E501
    named = "; ".join(f"{texts[a]} to {texts[b]}" for a, b, _ in edges)
    width = max(column for column, _ in PLACES.values()) * STEP + WIDTH + 4
    height = max(row for _, row in PLACES.values()) * ROW + ABOVE + BELOW
    return (
        f'<figure class="pipeline"><svg viewBox="0 0 {width} {height}" role="img" aria-label="Stages and what they pass on: {named}">'  # noqa: E501
        f"<defs>{tip}</defs>{''.join(lines + boxes)}</svg></figure>"
    )


def centre(name: str) -> Point:
    """Return where a box is."""
    column, row = PLACES[name]
    return column * STEP + WIDTH / 2 + 2, row * ROW + ABOVE


def curve(a: str, b: str) -> str:
    """Return the line from one box to another."""
    (x, y), (u, v) = centre(a), centre(b)
    if (a, b) in DETOURS:
        side = 1 if DETOURS[a, b] > 0 else -1
        bend = y + DETOURS[a, b] * ROW
        y, v, u = y + side * HEIGHT / 2, v + side * HEIGHT / 2, u - side * WIDTH / 6 if side < 0 else u
        return f"M{x:g} {y:g}C{x + STEP / 2:g} {bend:g} {u - STEP / 2:g} {bend:g} {u:g} {v:g}"
    if x == u:
        side = 1 if v > y else -1
        return f"M{x:g} {y + side * HEIGHT / 2:g}V{v - side * HEIGHT / 2:g}"
    x += WIDTH / 2
    if v < y:
        # up, and in from below
        return f"M{x:g} {y:g}C{u:g} {y:g} {u:g} {y:g} {u:g} {v + HEIGHT / 2:g}"
    u -= WIDTH / 2
    middle = (x + u) / 2
    return f"M{x:g} {y:g}C{middle:g} {y:g} {middle:g} {v:g} {u:g} {v:g}"
