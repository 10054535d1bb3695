"""The data sets beside each other: who is in the tables, what is in bold, and what is missing."""

import pandas as pd

from benchmark.comparison import by_setting
from benchmark.report.glance import at_a_glance, who_is_ahead
from benchmark.report.markdown import Notes
from benchmark.systems import GROUPS
from tests.helpers.cells import results


def measured(*rows: tuple[str, str, float, int], setting: str = "1_shot") -> pd.DataFrame:
    """Data set, system, mean and seeds."""
    table = pd.DataFrame(rows, columns=["data", "system", "mean", "seeds"])
    return table.assign(setting=setting, ci95=0.25)


def test_systems_of_all_data_sets() -> None:
    """True labels are not in bold, and a system that a data set lacks is not there."""
    table = measured(
        ("glyphs", "initial", 60.04, 3),
        ("glyphs", "frn", 99, 3),
        ("glyphs", "merged-rfs", 90.03, 3),
        ("glyphs", "oracle-rfs", 95, 3),
        ("cifar_fs", "merged-rfs", 50, 1),
        ("cifar_fs", "oracle-rfs", 55, 2),
        ("cifar_fs", "initial", 49.96, 1),
    )
    systems = ["initial", "protonet", "frn", "merged-rfs", "oracle-rfs"]
    assert [*at_a_glance(table, systems, ["1_shot"], Notes(3))] == [
        "|  | glyphs | CIFAR-FS |",
        "|---|---|---|",
        f"| **{GROUPS['tasks']}** | | |",
        "| initial embedding | 60.0±0.2 | **50.0±0.2** (1) |",
        f"| **{GROUPS['mela']}** | | |",
        "| MeLa (merged) | **90.0±0.2** | **50.0±0.2** (1) |",
        f"| **{GROUPS['oracle']}** | | |",
        "| true labels | 95.0±0.2 | 55.0±0.2 (2) |",
        "",
    ]


def test_figures_of_earlier_code_are_marked() -> None:
    table = measured(("glyphs", "initial", 60, 3), ("omniglot", "initial", 88, 1), ("omniglot", "protonet", 70, 1))
    old = frozenset({("omniglot", "initial"), ("glyphs", "protonet")})
    assert [*at_a_glance(table, ["initial", "protonet"], ["1_shot"], Notes(3, old))][-2] == (
        "| initial embedding | **60.0±0.2** | **88.0±0.2** (1)† |"
    )


def test_settings_stand_beside_each_other() -> None:
    one = measured(("glyphs", "initial", 60, 3), ("omniglot", "initial", 88, 3))
    table = pd.concat([one, one.assign(setting="5_shot", mean=95).head(1)])
    assert [*at_a_glance(table, ["initial"], ["1_shot", "5_shot"], Notes(3))][-2] == (
        "| initial embedding | **60.0±0.2** / **95.0±0.2** | **88.0±0.2** / - |"
    )


def test_one_data_set_needs_no_table() -> None:
    assert [*at_a_glance(measured(("glyphs", "initial", 60, 3)), ["initial"], ["1_shot"], Notes(3))] == []
    apart = measured(("glyphs", "initial", 60, 3), ("omniglot", "protonet", 88, 1))
    assert [*at_a_glance(apart, ["initial", "protonet"], ["1_shot"], Notes(3))] == []


def test_the_best_of_each_group_and_how_far_they_are_apart() -> None:
    """Both seeds of the best on MeLa's labels are ahead, by 4 and by 6 points; Algorithm 2 counts as MeLa's."""
    accuracies = {
        "glyphs": by_setting(
            results(
                {"frn": [[60.0, 62.0]] * 2, "protonet": [[50.0, 51.0]] * 2, "pruned-rfs": [[64.0, 66.0], [66.0, 68.0]]}
            )
        ),
        "mine": by_setting(results({"merged-rfs-feat": [[70.0, 71.0]]})),
    }
    table = measured(
        ("glyphs", "frn", 61, 2),
        ("glyphs", "protonet", 50.5, 2),
        ("glyphs", "pruned-rfs", 66, 2),
        ("glyphs", "kmeans-rfs", 70, 2),
        ("mine", "merged-rfs-feat", 70.5, 1),
    )
    assert [*who_is_ahead(table, accuracies, "here", Notes(2, frozenset({("glyphs", "frn")})))][2:] == [
        "| [glyphs](here/glyphs.md), 1-shot | FRN 61.0±0.2† | MeLa (Algorithm 2, guarded) 66.0±0.2 |  | +5.0±0.0† |",
        "| [mine](here/mine.md), 1-shot |  | + FEAT 70.5±0.2 (1) |  |  |",
        "",
    ]
