"""The table of docs/method/labels.md about mixed levels, from studies/results/mixed_levels.csv.

``python -m studies.labels.mixed_tables`` prints it.
"""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from mela.evaluation.intervals import Interval

ROWS = Path("studies/results/mixed_levels.csv")
COLUMNS = [f"{test}, {shots}" for test, shots in product(["fine", "mixed"], ["1_shot", "5_shot"])]


def wide(table: pd.DataFrame, suffix: str = "") -> pd.DataFrame:
    """One row per kind of labels and seed, one column per kind of test tasks and shots."""
    tall = table.melt(["labels", "seed", "test"], [f"{shots}_shot{suffix}" for shots in (1, 5)])
    tall["column"] = tall["test"] + ", " + tall["variable"].str.removesuffix(suffix)
    return tall.pivot(index=["labels", "seed"], columns="column", values="value")[COLUMNS]


def mean(values: pd.Series) -> str:
    """Mean over the seeds and, if there are several, its interval."""
    known = values.dropna().to_numpy(dtype=np.float64)
    if len(known) < 2:
        return "".join(f"{value:+.1f}" for value in known)
    interval = Interval.of(known)
    return f"{interval.mean:+.1f} ± {interval.ci95:.1f}"


def main() -> None:
    """Print accuracies of every seed, and differences to inferred labels: means over seeds with 95% intervals."""
    table = pd.read_csv(ROWS)
    accuracies, gains = wide(table), wide(table, "_less_inferred")
    print("| labels, seeds | " + " | ".join(COLUMNS) + " | classes |\n|---" + "|---" * (len(COLUMNS) + 1) + "|")
    for labels in table["labels"].unique():
        own = accuracies.loc[labels]
        classes = table[table["labels"] == labels].groupby("seed")["classes"].first().astype(int)
        cells = [", ".join(f"{value:.1f}" for value in own[column]) for column in COLUMNS]
        seeds = ", ".join(str(seed) for seed in own.index)
        print(f"| {labels} ({seeds}) | " + " | ".join(cells) + f" | {', '.join(map(str, classes))} |")
        if labels != "inferred":
            print("| less inferred | " + " | ".join(mean(gains.loc[labels, column]) for column in COLUMNS) + " | |")


if __name__ == "__main__":
    main()
