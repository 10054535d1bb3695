"""The README's results are rows of the tables, and its experiments those of the presets that it names."""

import math
from collections.abc import Callable, Iterable, Iterator

import pandas as pd
import pytest
from ruamel.yaml import YAML

from benchmark.matrix import Matrix
from mela.reporting.published import SYSTEMS
from studies.labels.tables import NAMES
from tests.helpers.figures import check, difference, found, labels, on_paper, prose, soft_gains
from tests.helpers.project import ROOT

PRESETS = {"glyphs": "glyphs", "omniglot": "omniglot_cpu", "cifar_fs": "cifar_fs_cpu", "fc100": "fc100_cpu"}
EMBEDDINGS = ["initial", "kmeans-rfs", "merged-rfs", "oracle-rfs"]


def shown(header: str) -> list[list[str]]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = text.partition("\n## Results\n")[2].partition(f"\n{header}")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]]


def measured() -> Iterator[list[str]]:
    for data, title in NAMES.items():
        for shot in (1, 5):
            cells = [found(system, data, shot).interval for system in EMBEDDINGS]
            row = [f"{cell.mean:.1f} ± {cell.ci95:.1f}" for cell in cells]
            row[2] = f"**{row[2]}**"
            apart = difference("merged-rfs", "oracle-rfs", data, shot)
            assert list(apart.seeds) == [0, 1, 2]
            assert apart.anew is not None
            less = f"{apart.interval.mean:+.1f} ± {apart.interval.ci95:.1f}"
            yield [title if shot == 1 else "", str(shot), *row, less, f"± {apart.anew.ci95:.1f}"]


def test_accuracies() -> None:
    rows = shown("| | shots | initial |")
    own = [row for row in rows if "*" not in row[1]]
    assert own == [*measured()]
    for data, (first, second) in {"cifar_fs": (8, 9), "fc100": (10, 11)}.items():
        assert NAMES[data] in rows[first][0]
        for shot, row in enumerate((rows[first], rows[second])):
            accuracies = [float(cell.strip("*").partition(" ±")[0]) for cell in row[4:6]]
            assert accuracies == [SYSTEMS[system][data][shot] for system in ("pruned_unguarded-rfs", "oracle-rfs")]


def span(values: Iterable[float], written: Callable[[float], str]) -> str:
    least, most = written(min(values)), written(max(values))
    return least if least == most else f"{least} to {most}"


def test_labels() -> None:
    expected = []
    for data, title in NAMES.items():
        seeds = labels(data)
        assert len(seeds) == 3
        (classes,) = {f"{seed['clusters']:,} / {seed['true_classes']:,}" for seed in seeds}
        right, index = (min(seed[key] for seed in seeds) for key in ("purity", "ari"))
        share = "100%" if right == 100 else f"{math.floor(100 * right) / 100:.2f}%"
        purities, indices = ([seed["kmeans"][key] for seed in seeds] for key in ("purity", "ari"))
        ours = [title, classes, share, f"{index:.4f}"]
        others = [span(purities, "{:.0f}".format) + "%", span(indices, lambda x: f"{x:.2f}".lstrip("0"))]
        expected.append([*ours, *others])
    assert shown("| | classes found / true |") == expected


def test_labelers() -> None:
    """But for the row of one seed, which is of docs/method/labels.md."""
    grid = pd.read_csv(ROOT / "studies/results/label_grid.csv").query("tasks == 'repl'")
    expected = []
    for data, title in {**NAMES, "omniglot": "omniglot, 2 + 3 images per class"}.items():
        cells = grid[grid["data"] == data]
        assert cells.groupby("embedding")["seed"].nunique().to_dict() == {"strong": 6, "weak": 6}
        merged = cells[cells["labeler"] == "merged"]
        pruned, loose = (cells[cells["labeler"].str.fullmatch(rf"pruned q=[\d.]+{end}")] for end in ("", ", no guard"))
        best = pruned.groupby(["seed", "embedding"])["ari"].max()
        clusters = span(merged["clusters"], "{:.0f}".format)
        ours = span(merged["ari"], lambda x: f"{x:.3f}".removeprefix("0"))
        columns = (best, pruned["ari"], loose["ari"])
        others = [span(values, lambda x: on_paper(x, 2).removeprefix("0")) for values in columns]
        expected.append([title, str(merged["true"].iloc[0]), f"{clusters}, {ours}", *others])
    rows = [row for row in shown("| | true classes | merged") if "one seed" not in row[0]]
    assert rows == expected


def mixed_levels() -> Iterator[str]:
    gains = soft_gains()
    assert all(gain.mean > gain.ci95 for gain in gains["mixed"])
    assert not all(gain.mean > gain.ci95 for gain in gains["fine"])
    one, five = (f"{gain.mean:.1f} ± {gain.ci95:.1f}" for gain in gains["mixed"])
    yield f"learning them is {one} and {five} points (1- and 5-shot, four seeds) ahead of one label per image"
    one, five = (f"{gain.mean:+.1f} ± {gain.ci95:.1f}" for gain in gains["fine"])
    yield f"a gain is not shown ({one}, {five})."


def test_no_other_figures() -> None:
    check(prose("README.md", "## Results"), mixed_levels())


@pytest.mark.parametrize("data", Matrix.read(ROOT / "benchmark/params.yaml").data)
def test_experiments_are_those_of_the_presets(data: str) -> None:
    """But for the number of test tasks, and what only methods beside MeLa need."""
    yaml = YAML(typ="safe")
    preset = yaml.load((ROOT / f"presets/{PRESETS[data]}.yaml").read_text(encoding="utf-8"))
    own = yaml.load((ROOT / f"benchmark/data/{data}.yaml").read_text(encoding="utf-8"))
    for block in ("methods", "tuning", "rates"):
        del own[block]
    if data == "glyphs":
        assert (preset["tasks"].pop("test"), own["tasks"].pop("test")) == (600, 1000)
        assert (preset["evaluate"].pop("support_copies"), own["evaluate"].pop("support_copies")) == (1, 5)
    assert own == preset
    assert preset["labeler"]["merge"]
    assert f"`{PRESETS[data]}`" in prose("README.md", "## Results")
