"""Print the markdown tables of docs/method/labels.md from studies/results/label_grid.csv.

``python -m studies.labels.tables``
"""

from collections.abc import Iterator, Mapping
from typing import Annotated

import pandas as pd
import typer

from studies.cells import ZIPF
from studies.labels.grid import ROWS

EVEN = {"once": "no replacement", "repl": "replacement"}
UNEVEN = {name: f"frequency ~ rank^-{exponent:g}" for name, exponent in ZIPF.items()}
NAMES = {"glyphs": "glyphs", "omniglot": "Omniglot", "cifar_fs": "CIFAR-FS", "fc100": "FC100"}


def span(values: pd.Series, digits: int) -> str:
    """Smallest and largest value, or the one they share."""
    if values.empty:
        return "not run"
    low, high = f"{values.min():.{digits}f}", f"{values.max():.{digits}f}"
    return low if low == high else f"{low} to {high}"


def lines(seeds: list[int], tasks: Mapping[str, str] = EVEN) -> Iterator[str]:
    """Yield a row for each data set, kind of tasks and embedding: merged beside the best and the worst q."""
    table = pd.read_csv(ROWS).query("seed in @seeds")
    pruned = table[table["labeler"].str.startswith("pruned") & ~table["labeler"].str.endswith("assigned")].copy()
    pruned["guard"] = ~pruned["labeler"].str.endswith("no guard")
    yield (
        "| data | tasks | embedding, val. accuracy | true | **clusters** | **accuracy** | **ARI** | **clustered** "
        "| pruned, best q: ARI | pruned, all q: ARI | no guard, all q: ARI |"
    )
    yield "|---" * 11 + "|"
    for name, title in NAMES.items():
        for regime, words in tasks.items():
            for strength in ("weak", "strong"):
                cell = {"data": name, "tasks": regime, "embedding": strength}
                here = (table[[*cell]] == pd.Series(cell)).all(axis=1)
                merged, others = table[here & (table["labeler"] == "merged")], pruned[here.loc[pruned.index]]
                if merged.empty:
                    continue
                guarded, plain = others[others["guard"]], others[~others["guard"]]
                means = guarded.groupby("labeler")["ari"].mean()
                best = guarded[guarded["labeler"] == means.idxmax()] if len(means) else guarded
                cells = [
                    title,
                    words,
                    f"{strength}, {span(merged['validation'], 0)}%",
                    str(merged["true"].iloc[0]),
                    f"**{span(merged['clusters'], 0)}**",
                    f"**{span(merged['accuracy'], 1)}**",
                    f"**{span(merged['ari'], 3)}**",
                    f"**{span(merged['tasks_clustered'], 1)}**",
                    span(best["ari"], 3),
                    span(guarded["ari"], 3),
                    span(plain["ari"], 3),
                ]
                yield "| " + " | ".join(cells) + " |"


def main(
    seeds: Annotated[list[int], typer.Option(help="which, again and again")] = [0, 1, 2],  # noqa: B006
    uneven: Annotated[bool, typer.Option(help="classes of unequal frequency")] = False,
) -> None:
    """Print one row per data set, kind of tasks and embedding: some seeds, merged beside the best and the worst q."""
    for line in lines(seeds, UNEVEN if uneven else EVEN):
        typer.echo(line)


if __name__ == "__main__":
    typer.run(main)
