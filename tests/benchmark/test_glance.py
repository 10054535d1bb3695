"""The table of several data sets: who is in it, what is in bold, and what is missing."""

import pandas as pd

from benchmark.report.glance import at_a_glance


def measured(*rows: tuple[str, str, float, int], setting: str = "1_shot") -> pd.DataFrame:
    """Data set, system, mean and seeds."""
    table = pd.DataFrame(rows, columns=["data", "system", "mean", "seeds"])
    return table.assign(setting=setting, ci95=0.25)


def test_systems_of_several_data_sets() -> None:
    """A data set of which nothing is shown is left out, and true labels are not in bold."""
    table = measured(
        ("glyphs", "initial", 60.04, 3),
        ("glyphs", "protonet", 80, 3),
        ("glyphs", "frn", 99, 3),
        ("glyphs", "merged-rfs", 90.03, 3),
        ("glyphs", "oracle-rfs", 95, 3),
        ("cifar_fs", "merged-rfs", 50, 1),
        ("cifar_fs", "oracle-rfs", 55, 2),
        ("cifar_fs", "initial", 49.96, 1),
        ("omniglot", "protonet", 70.15, 1),
        ("fc100", "shot_free", 40, 1),
        ("omniglot", "merged-rfs", 69.94, 2),
    )
    assert at_a_glance(table, [1], ["initial", "protonet", "frn", "merged-rfs", "oracle-rfs"])[1:] == [
        "| | glyphs 1-shot | cifar_fs 1-shot | omniglot 1-shot | seeds |",
        "|---|---|---|---|---|",
        "| **Local labels only** | | | | |",
        "| initial embedding | 60.0 ± 0.2 | **50.0 ± 0.2** |  | 3, 1, - |",
        "| ProtoNet | 80.0 ± 0.2 |  | **70.2 ± 0.2** | 3, -, 1 |",
        "| MeLa (merged) | **90.0 ± 0.2** | **50.0 ± 0.2** | 69.9 ± 0.2 | 3, 1, 2 |",
        "| **Global labels** | | | | |",
        "| true labels | 95.0 ± 0.2 | 55.0 ± 0.2 |  | 3, 2, - |",
        "",
    ]


def test_figures_of_earlier_code_are_marked() -> None:
    table = measured(("glyphs", "initial", 60, 3), ("omniglot", "initial", 88, 1), ("omniglot", "protonet", 70, 1))
    lines = at_a_glance(
        table, [1], ["initial", "protonet"], frozenset({("omniglot", "initial"), ("glyphs", "protonet")})
    )
    assert lines[-2] == "| initial embedding | **60.0 ± 0.2** | **88.0 ± 0.2**† | 3, 1 |"


def test_settings_stand_beside_each_other() -> None:
    one = measured(("glyphs", "initial", 60, 3), ("omniglot", "initial", 88, 1))
    table = pd.concat([one, one.assign(setting="5_shot", mean=95).head(1)])
    lines = at_a_glance(table, [1, 5], ["initial"])
    assert lines[1] == "| | glyphs 1-shot | glyphs 5-shot | omniglot 1-shot | omniglot 5-shot | seeds |"
    assert lines[-2] == "| initial embedding | **60.0 ± 0.2** | **95.0 ± 0.2** | **88.0 ± 0.2** |  | 3, 1 |"


def test_one_data_set_needs_no_overview() -> None:
    assert at_a_glance(measured(("glyphs", "initial", 60, 3)), [1], ["initial"]) == []
    apart = measured(("glyphs", "initial", 60, 3), ("omniglot", "protonet", 88, 1))
    assert at_a_glance(apart, [1], ["initial", "protonet"]) == []


def test_true_labels_alone_are_nowhere_in_bold() -> None:
    table = measured(("glyphs", "oracle-rfs", 60, 3), ("omniglot", "oracle-rfs", 88, 1))
    assert at_a_glance(table, [1], ["oracle-rfs"])[-2] == "| true labels | 60.0 ± 0.2 | 88.0 ± 0.2 | 3, 1 |"
