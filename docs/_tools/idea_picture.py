"""Draw docs/images/idea.png, the picture of the README: python docs/_tools/idea_picture.py."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from mela.sources.glyphs import glyphs

COLORS = ["#2a6fbb", "#d9822b", "#3c9a5f"]
# who calls what how: (task, local label) to a column of the hidden classes
TASKS = [
    ("Ann", ["1", "2", "3"], [0, 1, 2]),
    ("Ben", ["x", "y", "z"], [2, 3, 0]),
    ("Cem", ["left", "mid", "right"], [3, 1, 4]),
]
HIDDEN = ["U+044E", "U+00DF", "U+0036", "U+0429", "U+0643"]
DRAWINGS = 4


def main() -> None:
    """Draw three tasks with labels of their own on the left, and the global classes that connect them on the right."""
    source = glyphs(images_per_class=20, size=28, seed=3)
    classes = list(source.classes or [])
    chosen = [classes.index(name) for name in HIDDEN]
    figure = Figure(figsize=(10, 4.2), dpi=120, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 100), ylim=(0, 42))
    axes.axis("off")
    axes.text(21, 39.5, "what there is: tasks, each with labels of its own", ha="center", fontsize=10, weight="bold")
    axes.text(78, 39.5, "what MeLa finds: classes that hold for all", ha="center", fontsize=10, weight="bold")

    seen: dict[int, list[tuple[int, int]]] = {hidden: [] for hidden in range(len(chosen))}
    for number, (person, labels, hidden_classes) in enumerate(TASKS):
        bottom = 26.2 - 12.2 * number
        axes.add_patch(Rectangle((2, bottom), 38, 11.2, fill=False, edgecolor=COLORS[number], linewidth=1.6))
        axes.text(4, bottom + 5.6, person, va="center", fontsize=11, color=COLORS[number], weight="bold")
        for row, (label, hidden) in enumerate(zip(labels, hidden_classes, strict=True)):
            height = bottom + 7.6 - 3.5 * row
            axes.text(15.5, height + 1.6, f"“{label}”", va="center", ha="right", fontsize=10)
            for drawing in range(DRAWINGS):
                index = DRAWINGS * number + drawing
                seen[hidden].append((number, index))
                show(axes, source.load(chosen[hidden] + index), 17.5 + 5.2 * drawing, height, None)

    axes.add_patch(FancyArrowPatch((42, 20), (55, 20), arrowstyle="-|>", mutation_scale=22, linewidth=2, color="#444"))
    axes.text(48.5, 22.3, "initial embedding", ha="center", fontsize=9.5)
    axes.text(48.5, 16.6, "MergeLabeler", ha="center", fontsize=9.5)
    for hidden, drawings in seen.items():
        height = 31.4 - 7.2 * hidden
        axes.text(58, height + 1.6, f"class {hidden}", va="center", fontsize=10)
        for place, (number, index) in enumerate(drawings):
            show(axes, source.load(chosen[hidden] + index), 65 + 4.1 * place, height, COLORS[number])
    figure.savefig(Path(__file__).parents[1] / "images/idea.png")


def show(axes: Axes, image: object, left: float, bottom: float, color: str | None) -> None:
    """Draw one image with a frame in the colour of its task."""
    side = 3.2
    axes.imshow(
        255 - np.asarray(image), cmap="gray", vmin=0, vmax=255, extent=(left, left + side, bottom, bottom + side)
    )
    axes.add_patch(
        Rectangle((left, bottom), side, side, fill=False, edgecolor=color or "#bbb", linewidth=1.6 if color else 0.6)
    )
    axes.set(xlim=(0, 100), ylim=(0, 42))
    axes.set_aspect("equal")


if __name__ == "__main__":
    main()
