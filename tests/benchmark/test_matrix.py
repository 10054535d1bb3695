"""What the benchmark is asked to run: the systems that lists make, and what is refused before hours of training."""

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmark import matrix
from benchmark.matrix import Matrix
from benchmark.systems import title
from mela.errors import MelaError
from mela.methods import find_method
from tests.helpers.cells import STAGES
from tests.helpers.docs import MATRIX
from tests.helpers.matrix import write_matrix
from tests.helpers.processes import python
from tests.helpers.project import ROOT


def test_systems_stand_in_the_order_of_the_lists(tmp_path: Path) -> None:
    path = write_matrix(
        tmp_path,
        labels=["oracle", "merged"],
        inferred=["merged", "pruned"],
        pruned=["pruned"],
        task_methods=["protonet", "maml"],
        image_methods=["cmc", "moco"],
        label_methods=["s2m2", "rfs"],
        distill_from=["rfs", "rfs-distill"],
        tuned_methods=["leo", "feat"],
        tuned_from=["merged-rfs-distill", "oracle-s2m2", "merged-s2m2"],
    )
    of_oracle = ["s2m2", "rfs", "rfs-distill", "rfs-distill-distill", "s2m2-leo", "s2m2-feat"]
    of_merged = [*of_oracle[:4], "rfs-distill-leo", "rfs-distill-feat", "s2m2-leo", "s2m2-feat"]
    assert Matrix.read(path).systems == [
        *("initial", "protonet", "maml", "pruned-rfs"),
        *(f"oracle-{name}" for name in of_oracle),
        *(f"merged-{name}" for name in of_merged),
        *("cmc", "moco"),
    ]


def test_the_project_has_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = Matrix.read(ROOT / "benchmark/params.yaml")
    assert len(found.systems) == len(set(found.systems)) > 50
    assert not found.left_out, "every pair can be shown"
    measured = tmp_path / "glyphs/seed2/merged-rfs.parquet"
    measured.parent.mkdir(parents=True)
    measured.touch()
    (measured.parent / "merged-rfs-heads.csv").touch()
    matrix.main(lists=ROOT / "benchmark/params.yaml", results=tmp_path)
    cells = len(found.systems) * len(found.data) * len(found.seeds)
    assert f"with {len(found.seeds)} seeds, of which 1 of {cells:,} are measured" in capsys.readouterr().out


NAMES = [
    ("task_methods", "protonets", "expected methods that see tasks, anil, .*, got 'protonets'; c"),
    ("task_methods", "rfs", "expected methods that see tasks, anil, .*, got 'rfs'; correct it"),
    ("label_methods", "frn", "expected methods that see labels, mixup, .*, got 'frn'; corr"),
    (
        "label_methods",
        "distill",
        "expected methods that learn from labels alone, got 'distill', .* under distill_from",
    ),
    ("image_methods", "frn", "expected methods that see images, cmc, moco, got 'frn'; correct"),
    ("tuned_methods", "feet", "expected methods that see tasks, .*, got 'feet'; correct it"),
    ("distill_from", "s2m2", "expected one of rfs, got 's2m2'; correct it"),
    ("distill_from", "rfs-distill", "expected one of rfs, got 'rfs-distill'; correct it"),
    ("tuned_from", "kmeans-rfs", "expected <labels>-<method> .* such as merged-rfs, oracle-rfs, got"),
]
PAIRS = [
    ([["frm", "maml"]], "Better.: method 'frm': there is none of this name"),
    ([["frn", "maml"]] * 2, r".* every pair once, got \['frn', 'maml'\] a"),
    ([["rfs", "frn"]], ".* system 'rfs': expected <labels>-rfs, such as"),
    ([["frn", "frn"]], r".* names of two systems, got \['frn', 'frn'\]; c"),
    ([["frn", None]], r".* names of two systems, got \['frn', None\]; c"),
    ([["frn", "merged-protonet"]], ".*<labels>-<.*, got 'protonet' in place 2"),
    ([["frn", "merged-moco"]], ".*<labels>-<.*, got 'moco' in place 2"),
    ([["frn", "merged-distill"]], ".*<labels>-<.*, got 'distill' in place 2"),
    ([["frn", "merged-rfs-rotation"]], ".*<labels>-<.*, got 'rotation' in place 3"),
    ([["frn", "merged-rfs-frn-distill"]], ".*<labels>-<.*, got 'frn' in place 3"),
    ([["frn", "merged-rfs-distill-moco"]], ".*<labels>-<.*, got 'moco' in place 4"),
    *(
        (wrong, r"Better\?: expected pairs such as \[merged-rfs, .*; correct it")
        for wrong in ([["frn"]], [["frn", "maml", "anil"]], ["frn"], "frn", None, 3)
    ),
]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sytems": ["initial"]}, "sytems: unknown key; remove it or correct its name"),
        ({"task_methods": None, "task_method": ["protonet"]}, r"task_method: unknown key; .* \(and 1 more\)"),
        ({"labels": None}, "labels: missing; expected a value"),
        ({"data": []}, r"data: list should have at least 1 item .*, got \[\]"),
        ({"seeds": [0, "x"]}, "seeds.1: input should be a valid integer, got 'x'"),
        ({"seeds": [-1]}, "seeds.0: input should be greater than or equal to 0, got -1"),
        ({"seeds": [0, 0]}, "seeds: expected every name once, got 0 again; remove it"),
        ({"labels": ["truth"]}, "labels.0: input should be 'kmeans', 'merged' or 'oracle', got 'truth'"),
        ({"inferred": []}, "inferred: expected merged, on which methods are trained, got none; add it"),
        ({"pruned": ["pruned"]}, "inferred: expected pruned, on which methods are trained, got none; add it"),
        ({"comparisons": ["frn"]}, r"comparisons: expected questions, each with .*, got \['frn'\]; correct it"),
        *(({key: [name]}, f"{key}: {message}") for key, name, message in NAMES),
        *(({"comparisons": {"Better?": pairs}}, f"comparisons: {message}") for pairs, message in PAIRS),
    ],
)
def test_what_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(MelaError, match=rf"^\S*params\.yaml: {message}"):
        Matrix.read(write_matrix(tmp_path, **changes))


def test_data_sets_that_do_not_exist(tmp_path: Path) -> None:
    path = write_matrix(tmp_path, data=["mine", "tiny"])
    path.write_text(path.read_text("utf-8").replace("mine", "mien"), encoding="utf-8")
    with pytest.raises(MelaError, match=r"data: expected files of \S+data, which are mine, tiny, got 'mien'; correct"):
        Matrix.read(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(MelaError, match=r"none\.yaml: no such file; run from the project's root$"):
        Matrix.read(tmp_path / "none.yaml")


def test_questions(tmp_path: Path) -> None:
    asked = {"Better?": [["frn", "maml"], ["merged-rfs", "initial"]], "Nothing?": []}
    found = Matrix.read(write_matrix(tmp_path, comparisons=asked)).comparisons
    assert found == {"Better?": [("frn", "maml"), ("merged-rfs", "initial")]}
    assert Matrix.read(write_matrix(tmp_path)).comparisons == {}
    path = write_matrix(tmp_path)
    path.write_text(path.read_text("utf-8") + "comparisons:\n", encoding="utf-8")
    assert Matrix.read(path).comparisons == {}


@pytest.mark.parametrize("name", ["initial", "merged", "labels", "my-net", "my.net", "MyNet", "2net"])
def test_names_that_systems_cannot_have(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "method_names", lambda: [name])
    message = rf"task_methods: expected a name of lower case letters, .*; rename mela/methods/{name}"
    with pytest.raises(MelaError, match=message):
        Matrix.read(write_matrix(tmp_path, task_methods=[name]))


def test_titles_that_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    same = replace(find_method("maml"), title="ProtoNet")
    monkeypatch.setattr(matrix, "find_method", lambda name: same if name == "maml" else find_method(name))
    expected = r"methods/maml\.py: expected a title of its own, got 'ProtoNet', which mela/methods/protonet\.py has; c"
    tuned = {"task_methods": ["protonet"], "tuned_methods": ["maml"], "tuned_from": ["merged-rfs"]}
    for lists in ({"task_methods": ["protonet", "maml"]}, tuned):
        with pytest.raises(MelaError, match=f"mela/{expected}"):
            Matrix.read(write_matrix(tmp_path, **lists))
    Matrix.read(write_matrix(tmp_path, task_methods=["protonet"]))
    monkeypatch.setattr(matrix, "title", lambda name: "MeLa (merged)" if name == "protonet" else title(name))
    with pytest.raises(MelaError, match=r"protonet: .* title of its own, got 'MeLa \(merged\)' again; change"):
        Matrix.read(write_matrix(tmp_path, task_methods=["protonet"]))


def test_data_sets_are_read_as_well(tmp_path: Path) -> None:
    path = write_matrix(tmp_path)
    file = tmp_path / "data/tiny.yaml"
    text = file.read_text("utf-8")
    for wrong, message in [
        (text.replace("momentum:", "momentun:", 1), r"tiny\.yaml: \w+\.momentun: unknown key; .*"),
        (re.sub("(?m)^methods:.*(\n .*)*", "", text), r"tiny\.yaml: methods: expected this block, found only .*"),
        ("data: [", r"tiny\.yaml.*"),
    ]:
        file.write_text(wrong, encoding="utf-8")
        with pytest.raises(MelaError, match=message):
            Matrix.read(path)


def test_pairs_that_are_left_out_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = [["merged-rfs", "initial"], ["frn", "maml"], ["merged-rfs-feat", "feat"], ["cmc", "moco"], ["feat", "frn"]]
    path = write_matrix(tmp_path, comparisons={"Better?": pairs})
    matrix.main(lists=path, results=tmp_path)
    found = capsys.readouterr().out
    assert "comparisons: 4 with systems that the lists do not make are left out: frn - maml, merged-rfs-" in found
    assert "maml, merged-rfs-feat - feat, cmc - moco, ...\n" in found
    matrix.main(lists=write_matrix(tmp_path, comparisons={"Better?": pairs[:1]}), results=tmp_path)
    assert "left out" not in capsys.readouterr().out


def test_which_lists_make_a_system(tmp_path: Path) -> None:
    lists = {
        "frn": "task_methods",
        "moco": "image_methods",
        "merged-rfs": "labels and label_methods",
        "merged-rfs-distill": "labels and distill_from",
        "merged-rfs-distill-feat": "labels, tuned_from and tuned_methods",
    }
    found = Matrix.read(write_matrix(tmp_path))
    assert {system: found.lists_of(system) for system in lists} == lists


@pytest.mark.slow
def test_nothing_is_trained_where_a_name_is_wrong(tmp_path: Path) -> None:
    """What `make benchmark` runs first."""
    first = "\t@python -m benchmark.matrix\n\tcells=$$(python -m benchmark.due) || exit"
    assert first in (ROOT / "Makefile").read_text("utf-8")
    path = write_matrix(tmp_path, task_methods=["protonets"])
    (words,) = map(shlex.split, MATRIX)
    ended = python(*words[1:], "--lists", str(path), folder=ROOT)
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"error: {path}: task_methods: expected methods that see tasks")
    assert len(ended.stderr.splitlines()) == 1


def test_dvc_has_the_same_lists() -> None:
    """No list of the matrix that no stage has, and none of a stage that is not checked."""
    used = {value[2:-1] for stage in STAGES.values() for value in stage.get("matrix", {}).values()}
    assert used == set(Matrix.model_fields) - {"comparisons"}
