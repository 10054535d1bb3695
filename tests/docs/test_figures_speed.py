"""Times and sizes of docs/results/benchmarks.md and docs/results/scale.md are computed anew from the results."""

import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.helpers.project import ROOT

Row = list[str]
SPEED, SCALE = "docs/results/benchmarks.md", "docs/results/scale.md"
BENCH: list[dict[str, Any]] = json.loads((ROOT / "studies/results/bench.json").read_text(encoding="utf-8"))


def shown(page: str, header: str) -> list[Row]:
    """Cells of the rows of a table, found by how it begins."""
    text = (ROOT / page).read_text(encoding="utf-8").partition(f"\n{header}")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]]


def measured(name: str, **which: str) -> dict[str, Any]:
    rows = [row for row in BENCH if row["name"] == name and which.items() <= row.items()]
    assert len(rows) == 1, (name, which)
    return rows[0]


def rounded(value: float, digits: int) -> str:
    """With thousands set apart."""
    return f"{value:,.{digits}f}"


def seconds(value: float) -> str:
    """As the table of docs/results/scale.md has them: three figures, hundredths at most."""
    return f"{rounded(value, max(0, min(2, 2 - int(np.floor(np.log10(value))))))} s"


STEPS = {
    "packing, 32 px RGB, with index and truth": ("pack", "images"),
    "*decode*: packing JPEG of 500 x 375 at 84 px": ("decode", "images"),
    "channel statistics": ("statistics", "images"),
    "extraction, conv4 of 64 channels, 256 features": ("extract", "images"),
    "extraction, conv4 of 8 channels, 32 features": ("extract_narrow", "images"),
    "writing 640 features": ("write", "images"),
    "reading 640 features": ("read", "images"),
    "K-means, 351 clusters": ("kmeans", "images"),
    "manifest": ("manifest", "tasks"),
    "labels, pruned (J = 1,000, q = 4.5)": ("label_pruned", "tasks"),
    "labels, merged": ("label_merged", "tasks"),
}


def test_the_table_of_scale() -> None:
    expected = []
    for title, (name, unit) in STEPS.items():
        rows = [row for row in BENCH if row["name"] == f"scale_{name}"]
        for number, row in enumerate(rows):
            linear = rounded(row["cpu_ratio"], 2) if number else ""
            memory = [f"{rounded(row[key], 0)} MB" for key in ("own_peak_mb", "peak_mb")]
            size = f"{int(row['data']):,} {unit}"
            expected.append(["" if number else title, size, seconds(row["cpu_seconds"]), linear, *memory])
    assert len(expected) == len([row for row in BENCH if row["name"].startswith("scale_")])
    assert shown(SCALE, "| step | size | CPU |") == expected


def test_the_table_of_meta_testing() -> None:
    def share(value: float) -> str:
        return f"{100 * value:.2f}%" if value < 1 else "100%"

    expected = []
    for title, data in (("glyphs, 64, 600", "pipeline"), ("CIFAR-FS, 256, 1,000", "cifar_fs")):
        for setting in ("1_shot", "5_shot", "5_shot_augmented"):
            row = measured(f"meta_test_{setting}", data=data)
            assert title.endswith(f"{row['dimensions']}, {row['tasks']:,}")
            times = row["reference"] / row["ours"]
            expected.append(
                [
                    title if setting == "1_shot" else "",
                    setting.replace("_augmented", ", 5 copies").replace("_", "-"),
                    f"{rounded(row['reference'], 2)} s",
                    f"{rounded(row['ours'], 3 if row['ours'] < 0.2 else 2)} s",
                    f"{times:.0f}" if times > 10 else f"{times:.1f}",
                    share(row["same_predictions"]),
                    f"{share(row['same_as_fine'])}, {share(row['reference_same_as_fine'])}",
                ]
            )
    assert shown(SPEED, "| data, features, test tasks |") == expected


def test_the_table_of_training() -> None:
    names = {"28 px, crop (glyphs)": "28", "32 px, crop, jitter, flip (CIFAR-FS)": "32"}
    rows = {title: measured(f"train_conv4_{size}") for title, size in names.items()}
    assert shown(SPEED, "| | RFS' way |") == [
        [f"conv4, {title}", *(rounded(row[key], 0) for key in ("reference", "float32", "ours"))]
        for title, row in rows.items()
    ]
    for row in rows.values():
        assert row["reference"] == pytest.approx(max(row["reference_by_workers"].values()), abs=0.1)


def test_the_table_of_speed() -> None:
    table = {row[0]: row[1:] for row in shown(SPEED, "| | ours | reference | ratio |")}
    for size in ("28", "32"):
        row = measured(f"train_conv4_{size}")
        ours, reference, ratio = table.pop(f"training, conv4 at {size} px")
        assert ours == f"{rounded(row['ours'], 0)} images/s"
        assert reference.endswith(f"{rounded(row['reference'], 0)} images/s")
        assert ratio == f"**{row['ratio']:.1f}**"
    for setting in ("1-shot", "5-shot", "5-shot with 5 copies"):
        name = setting.replace(" with 5 copies", "_augmented").replace("-", "_")
        row = measured(f"meta_test_{name}", data="cifar_fs")
        ours, reference, ratio = table.pop(f"meta-test, CIFAR-FS, {setting}")
        assert ours == f"{rounded(row['ours'], 3)} s"
        assert reference.endswith(f"{rounded(row['reference'], 2)} s")
        assert ratio == f"**{row['reference'] / row['ours']:.0f}**"
    for dtype in ("float64", "float32"):
        product, loop = (measured(f"labeler_vs_{other}", dtype=dtype) for other in ("product", "loop"))
        ours, reference, ratio = table.pop(f"one pass of LearnLabeler, {dtype}")
        assert ours == f"{rounded(product['ours'], 2)} s"
        assert [float(found) for found in re.findall(r"([\d.]+) s", reference)] == [
            float(rounded(row["reference"], 2)) for row in (product, loop)
        ]
        assert ratio == f"{product['ratio']:.2f} x; **{loop['reference'] / loop['ours']:.1f}**"
    experiment = measured("pipeline_glyphs", data="labeler.merge=false labeler.q=5.5")
    ours, reference, ratio = table.pop("`dvc exp run` with another q, outside of training")
    assert (ours, ratio) == (f"{rounded(experiment['ours'], 1)} s", f"{experiment['ratio']:.1f} x")
    starts = measured("stage_start_without_torch")["stages"]
    slowest = max(taken for stage, taken in starts.items() if stage != "report")
    ours, reference, ratio = table.pop("start of a stage without torch, the slowest but `report`")
    assert (ours, ratio) == (f"{slowest:.2f} s", f"{slowest:.1f} x")
    assert {cell for row in table.values() for cell in row} == {"*not measured*", ""}


def test_the_table_of_precision() -> None:
    data = {"cifar_fs": "CIFAR-FS", "glyphs": "glyphs"}
    embeddings = {"initial": "initial embedding", "final": "pre-trained"}
    rows = pd.read_csv(ROOT / "studies/results/precision.csv").set_index(["data", "embedding", "setting"])
    expected = []
    for name, title in data.items():
        for embedding, words in embeddings.items():
            settings = [rows.loc[(name, embedding, setting)] for setting in ("1_shot", "5_shot")]
            cells = [f"{row['difference']:+.2f} ± {row['difference_ci95']:.2f}" for row in settings]
            expected.append([f"{title}, {words}", str(settings[0]["seeds"]), *cells])
    assert shown(SPEED, "| | seeds | 1-shot | 5-shot |") == expected


def test_what_is_said_of_precision() -> None:
    rows = pd.read_csv(ROOT / "studies/results/precision.csv").set_index(["data", "embedding", "setting"])
    sure = rows[rows["difference"].abs() > rows["difference_ci95"]]
    assert {index: row["difference"] > 0 for index, row in sure.iterrows()} == {
        ("glyphs", "final", "1_shot"): False,
        ("cifar_fs", "initial", "5_shot"): True,
    }
    farthest = max(abs(float(seed)) for cell in rows["of_each_seed"] for seed in cell.split())
    text = (ROOT / SPEED).read_text(encoding="utf-8")
    assert (
        "One of the eight differences is a loss by its interval, a third of a point at 1-shot on glyphs, and one a gain"
        in text
    )
    assert f"its accuracy differs by up to {farthest:.0f} points between two" in text


def sentences() -> list[str]:
    """What docs/results/benchmarks.md says in words of the time that things take."""
    passes = {dtype: measured("labeler_vs_product", dtype=dtype)["ratio"] for dtype in ("float64", "float32")}
    longer = measured("labeler_20000_vs_4000_tasks")["ratio"]
    pruned = measured("pipeline_glyphs", data="labeler.merge=false labeler.q=5.5")
    merged = measured("pipeline_glyphs", data="labeler.q=5.5")
    taken = pruned["stages"]
    outside = taken["pretrain"] - pruned["training"]
    starts = measured("stage_start_without_torch")["stages"]
    report = starts.pop("report")
    threads = [measured(f"meta_test_{name}", data="cifar_fs")["one_thread"] for name in ("1_shot", "5_shot")]
    copies = measured("meta_test_5_shot_augmented", data="cifar_fs")
    return [
        f"in {passes['float64']:.2f} times the product's own time (float32: {passes['float32']:.2f})",
        f"Five times the tasks take {longer:.1f} times as long.",
        f"takes {pruned['total']:.1f} s, {pruned['training']:.1f} of them in pre-training's loop.",
        f"The other {pruned['ours']:.1f} s, against the {pruned['reference']:.0f} s that we aimed at:"
        f" `label` {taken['label']:.1f}, `score_labels` {taken['score_labels']:.1f},"
        f" `pretrain` outside of its loop {outside:.1f}, `evaluate` {taken['evaluate']:.1f}, `map` {taken['map']:.1f},"
        f" `report` {taken['report']:.1f}, DVC itself {pruned['dvc']:.1f}.",
        f"the whole experiment takes {merged['total']:.1f} s, of which `label` takes {merged['stages']['label']:.1f}",
        f"after {min(starts.values()):.2f} to {max(starts.values()):.2f} s",
        f"and `report` after {report:.2f} s",
        f"(on CIFAR-FS {threads[0]:.3f}, {threads[1]:.3f} and {copies['one_thread']:.3f} s with one)",
    ]


@pytest.mark.parametrize("sentence", sentences())
def test_what_is_said_of_times(sentence: str) -> None:
    assert sentence in " ".join((ROOT / SPEED).read_text(encoding="utf-8").split())
