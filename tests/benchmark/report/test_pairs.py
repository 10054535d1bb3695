"""Systems two by two: how far apart they are, on which seeds, and what can be said of seeds that nobody has trained."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmark.comparison import Measured, Results, by_setting
from benchmark.outdated_marks import Outdated
from benchmark.report import pairs
from benchmark.report.markdown import Notes
from benchmark.report.pairs import all_differences, differences, holds_anew, published, two_by_two, versus
from mela.errors import MelaError
from tests.helpers.cells import results, write_results
from tests.helpers.processes import python
from tests.helpers.project import ROOT

FIRST_SEEDS = {0: [62.0, 71.0, 80.0], 1: [62.0, 72.0, 80.0], 2: [63.0, 71.0, 81.0]}
SECOND_SEEDS = {1: [52.0, 62.0, 70.0], 2: [52.0, 62.0, 70.0], 3: [0.0, 0.0, 0.0]}


def measured(*seeds: list[float]) -> Measured:
    return Measured(accuracies=np.array(seeds), seeds=np.arange(len(seeds)))


def test_differences_are_of_the_seeds_that_both_have() -> None:
    one_shot = results({"frn": FIRST_SEEDS, "protonet": SECOND_SEEDS, "maml": {7: [0.0, 0.0, 0.0]}})
    five_shot = results({"frn": {1: [90.0, 90.0, 90.0]}}).assign(setting="5_shot")
    accuracies = by_setting(pd.concat([one_shot, five_shot]))
    found = differences(accuracies, "frn", "protonet")
    assert list(found) == ["1_shot"], "the other one has no five shots"
    assert found["1_shot"].seeds.tolist() == [1, 2]
    assert found["1_shot"].accuracies.tolist() == [[10, 10, 10], [11, 9, 11]]
    assert differences(accuracies, "frn", "maml") == {}
    assert differences(accuracies, "frn", "tadam") == {}


@pytest.mark.parametrize(
    ("found", "clear"),
    [
        (measured([5.0, 5.2, 4.8] * 100), False),  # one seed says nothing of others
        (measured([5.0, 5.2, 4.8] * 100, [5.1, 4.9, 5.3] * 100), True),
        (measured([5.0, 5.2, 4.8] * 100, [1.0, 1.2, 0.8] * 100), False),  # both are ahead, by chance perhaps
        (measured([5.0, 5.2, 4.8] * 100, [5.1, 4.9, 5.3] * 100, [4.9, 5.1, 4.7] * 100), True),
        (measured([-5.0, 5.4] * 10, [-5.0, 5.4] * 10, [-5.0, 5.4] * 10), False),  # seeds agree, tasks do not
        (measured([-5.0, -5.2, -4.8] * 100, [-5.1, -4.9, -5.3] * 100), True),
    ],
)
def test_what_holds_for_trainings_anew(found: Measured, clear: bool) -> None:
    assert holds_anew(found) == clear


def test_the_table_of_pairs() -> None:
    """Missing seeds, settings and data sets; what holds anew is in bold, zeros have no minus."""
    none = {0: [62.0, 71.0, 79.9]}
    rows = results({"frn": FIRST_SEEDS, "protonet": SECOND_SEEDS})
    one, three_shot = (by_setting(pd.concat([rows, rows.assign(setting=name)])) for name in ("5_shot", "3_shot"))
    systems = {"frn": {0: [62.0, 71.0, 80.0]}, "protonet": none, "pruned_unguarded-rfs": none, "merged-rfs": none}
    other = by_setting(results(systems))
    questions = {
        "Which?": [("frn", "protonet"), ("maml", "protonet"), ("protonet", "frn")],
        "Not measured?": [("maml", "anil")],
        "Not there?": [("tadam", "frn")],
        "On one data set, and not published?": [("merged-rfs", "protonet")],
        "And MeLa?": [("pruned_unguarded-rfs", "protonet"), ("protonet", "pruned_unguarded-rfs")],
    }

    def table(accuracies: dict[str, Results], *settings: str, old: Outdated = frozenset()) -> list[str]:
        pairs = [pair for asked in questions.values() for pair in asked]
        return [*two_by_two(all_differences(accuracies, pairs, settings), questions, settings, Notes(2, old))]

    ahead, behind = "**+10.2±1.4**", "**-10.2±1.4**"
    old = frozenset({("cifar_fs", "frn")})
    assert table({"glyphs": one, "cifar_fs": other}, "1_shot", "5_shot", old=old) == [
        "|  | glyphs | CIFAR-FS | published |",
        "|---|---|---|---|",
        "| **Which?** | | | |",
        f"| FRN - ProtoNet | {ahead} / {ahead} | +0.0±0.1 / - (1)† | *+13.6 / +9.8, miniImageNet* |",
        f"| ProtoNet - FRN | {behind} / {behind} | +0.0±0.1 / - (1)† | *-13.6 / -9.8, miniImageNet* |",
        "| **And MeLa?** | | | |",
        "| MeLa (Algorithm 2) - ProtoNet |  | +0.0±0.0 / - (1) | *-0.8 / +2.1, CIFAR-FS* |",
        "| ProtoNet - MeLa (Algorithm 2) |  | +0.0±0.0 / - (1) | *+0.8 / -2.1, CIFAR-FS* |",
        "",
    ]
    assert table({"mine": by_setting(results({"tadam": [[50.0, 60.0]]}))}, "1_shot") == []
    of_other_shots = table({"cifar_fs": three_shot}, "1_shot", "3_shot")
    assert of_other_shots[0] == "|  | CIFAR-FS |", "what is published is of other shots"
    assert of_other_shots[3] == f"| FRN - ProtoNet | {ahead} / {ahead} |"
    assert table({"mine": one}, "1_shot", "5_shot")[0] == "|  | mine |", "what is published is of other data"


def test_what_both_systems_go_on_with_is_said_once() -> None:
    assert versus("merged-s2m2-feat", "oracle-s2m2-feat") == "MeLa (merged) - true labels, both + S2M2 + FEAT"
    assert versus("merged-rfs-feat", "merged-rfs") == "MeLa (merged) + FEAT - MeLa (merged)"
    assert versus("merged-rfs", "oracle-rfs") == "MeLa (merged) - true labels"


def test_published_differences_are_of_one_data_set() -> None:
    assert published("pruned_unguarded-rfs", "oracle-rfs") == "*-0.2 / -0.1, CIFAR-FS*"
    assert published("tadam", "protonet") == "*+2.6 / +3.6, FC100*"
    assert published("tadam", "maml") == "", "never on the same"
    assert published("merged-rfs-feat", "merged-rfs") == ""


@pytest.mark.slow
def test_any_two_on_the_command_line() -> None:
    """The command that the page has; what it prints is what the page says of the pair."""
    page = (ROOT / "docs/results/systems.md").read_text(encoding="utf-8")
    (command,) = [line for line in page.splitlines() if line.startswith("python -m ")]
    _, *words = command.split()
    head, columns, *rows = python(*words, folder=ROOT).stdout.splitlines()
    assert head == "MeLa (merged) + FEAT less true labels + FEAT, points of accuracy with 95% intervals"
    assert " ".join(columns.split()) == "data setting over tasks over tasks and seeds of each seed tasks"
    name = f"| {versus('merged-rfs-feat', 'oracle-rfs-feat')} |"
    of_glyphs = next(line for line in page.splitlines() if line.startswith(name)).replace("*", "")
    found = {(row.split()[0], row.split()[1]): "".join(row.split()[2:5]) for row in rows}
    assert f"| {found['glyphs', '1_shot']} / {found['glyphs', '5_shot']} |" in of_glyphs


@pytest.mark.parametrize(
    ("second", "data", "message"),
    [
        (
            "anil",
            "mine",
            "frn and anil measured with a seed in common, got the seeds mine, frn: 0; mine, anil: none; run `make",
        ),
        ("maml", "mine", "expected two systems on the same tasks, got 4 and 3 tasks; measure both"),
        ("maml", "nope", "--data nope: expected one of .*glyphs, mine, omniglot; correct it"),
        ("fnr", "mine", "method 'fnr': there is none of this name"),
        (
            "merged-rotation-frn",
            "mine",
            r"params\.yaml: expected lists that make merged-rotation-frn, which .*; add what is missing to "
            "labels, tuned_from and tuned_methods, or name another",
        ),
    ],
)
def test_what_the_command_line_cannot_compare(second: str, data: str, message: str, tmp_path: Path) -> None:
    for system, tasks in (("frn", 4), ("maml", 3)):
        rows = results({system: [[50.0, 60.0, 70.0, 80.0][:tasks]]})
        write_results(tmp_path / f"mine/seed0/{system}.parquet", rows)
    with pytest.raises(MelaError, match=message):
        pairs.main("frn", second, data=[data], lists=ROOT / "benchmark/params.yaml", results=tmp_path)


def test_one_seed_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for system, accuracy in (("frn", 60.0), ("maml", 50.0)):
        write_results(tmp_path / f"mine/seed3/{system}.parquet", results({system: [[accuracy, accuracy]]}))
    pairs.main("frn", "maml", data=["mine"], results=tmp_path)
    assert " ".join(capsys.readouterr().out.splitlines()[2].split()) == "mine 1_shot +10.0 ± 0.0 3: +10.0 2"
