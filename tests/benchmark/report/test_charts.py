"""The charts of systems show what the tables say."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmark.comparison import by_setting, summarize_systems
from benchmark.report import charts
from benchmark.systems import GROUPS
from tests.helpers.cells import MATRIX, results


@pytest.fixture
def summary() -> pd.DataFrame:
    """Three systems; the second is best at 1-shot, and the third is not measured at 5-shot."""
    found = results({"merged-rfs": [[60, 70], [62, 72]], "oracle-rfs": [[90, 80], [91, 81]], "moco": [[30, 40]]})
    more = found[found["system"] != "moco"].assign(setting="5_shot", accuracy=95.0)
    rows = by_setting(pd.concat([found, more]))
    return summarize_systems(rows, MATRIX.systems, ["1_shot", "5_shot"], "merged-rfs")


def test_charts_have_all_systems_and_their_values(summary: pd.DataFrame) -> None:
    panels = charts.chart(summary, {"1_shot": "1-shot", "5_shot": "5-shot"}, "merged-rfs").axes
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["MoCo", "MeLa (merged)", "true labels"]
    drawn = {kind.get_label(): kind[0].get_data() for kind in panels[0].containers}
    assert {name: (*means, *heights) for name, (means, heights) in drawn.items()} == {
        GROUPS["mela"]: (66, 1),
        GROUPS["oracle"]: (85.5, 2),
        GROUPS["images"]: (35, 0),
    }
    assert [kind.get_label() for kind in panels[1].containers] == [GROUPS["mela"], GROUPS["oracle"]]
    ends = np.concatenate([lines.get_segments() for lines in panels[0].collections if lines.get_alpha()])
    assert sorted(ends[:, :, 0].tolist()) == [[35, 35], [65, 67], [85, 86]], "the worst and the best seed"


def test_systems_that_the_first_panel_lacks_are_at_the_bottom(summary: pd.DataFrame) -> None:
    figure = charts.chart(summary, {"5_shot": "5-shot", "1_shot": "1-shot"}, "merged-rfs")
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["MoCo", "MeLa (merged)", "true labels"]
    assert GROUPS["images"] in {text.get_text() for text in figure.legends[0].get_texts()}


def test_kinds_of_systems_look_different() -> None:
    kinds = {
        name: charts.style(name)
        for name in ("merged-rfs-feat", "pruned-rfs", "feat", "initial", "kmeans-rfs", "oracle-rfs", "cmc")
    }
    assert kinds["feat"] is kinds["initial"]
    assert kinds["pruned-rfs"] is kinds["merged-rfs-feat"]
    assert len({kind.colour for kind in kinds.values()}) == len({kind.marker for kind in kinds.values()}) == 5


def test_ticks_of_charts_have_room() -> None:
    assert charts.ticks(33, 94) == [40, 50, 60, 70, 80, 85, 90]
    assert charts.ticks(20, 99.5) == [20, 50, 70, 85, 90, 95, 97, 98, 99]
    assert charts.ticks(10, 100)[-1] == 99, "no accuracy is off the scale"
    assert charts.ticks(44, 58) == [45, 50, 55]
    assert charts.ticks(60.5, 75) == [65, 70, 75]
    assert charts.ticks(60.5, 74.5) == [62, 64, 66, 68, 70, 72, 74]
    assert charts.ticks(88.2, 91.5) == [89, 90, 91]
    assert charts.ticks(88.2, 88.6) == [], "none is round"


def test_charts_of_perfect_systems(tmp_path: Path) -> None:
    rows = by_setting(results({"merged-rfs": [[100, 100]]}))
    table = summarize_systems(rows, ["merged-rfs"], ["1_shot"], "merged-rfs")
    charts.chart(table, {"1_shot": "1-shot"}, "merged-rfs").savefig(tmp_path / "chart.png")
