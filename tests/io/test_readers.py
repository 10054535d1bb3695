"""Readers of damaged files, and the labeler with odd features: an answer or one line, never anything else."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mela.blocks import read_document
from mela.errors import MelaError
from mela.io.text_tables import parse_csv
from mela.labeling.merge_labeler import MergeLabeler
from mela.params import check_document
from mela.sources.split_tables import parse_split_table
from mela.sources.task_folders import natural_key
from mela.training.checkpoint import Checkpoint
from studies.robustness import fuzz
from tests.helpers.processes import python
from tests.helpers.project import ROOT


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_good_files_are_read(name: str, tmp_path: Path) -> None:
    write, read = fuzz.TARGETS[name]
    write(tmp_path / name)
    read(tmp_path / name)


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_damaged_files_are_told_in_one_line(name: str, tmp_path: Path) -> None:
    count = 10 if name == "params.yaml" else 60
    assert [found for seed in range(count) if (found := fuzz.read_damaged(name, seed, tmp_path))] == []


@pytest.mark.slow
@hypothesis_settings(deadline=None, max_examples=60)
@example(seed=123)  # a single pair of task classes
@example(seed=1106535)  # equal samples beside ones that are far apart
@given(seed=st.integers(0, 2**32 - 1))
def test_odd_features_are_labelled_or_told(seed: int) -> None:
    found = fuzz.attempt(lambda: fuzz.label_odd_tasks(seed))
    assert found is None, found


@pytest.mark.slow
@hypothesis_settings(deadline=None, max_examples=200)
@given(text=st.text(max_size=300))
def test_any_text_as_a_table(text: str) -> None:
    for read in (
        lambda: parse_csv(text, where="table", required=("split", "class")),
        lambda: parse_split_table(text, where="table"),
    ):
        assert fuzz.attempt(read) is None


@pytest.mark.slow
@hypothesis_settings(deadline=None, max_examples=200)
@given(content=st.binary(max_size=300))
def test_any_bytes_as_a_file(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp() / "any"
    folder.mkdir(exist_ok=True)
    for name, (_, read) in fuzz.TARGETS.items():
        path = folder / name
        path.write_bytes(content)
        assert fuzz.attempt(lambda read=read, path=path: read(path)) is None, name  # type: ignore[misc]


@hypothesis_settings(deadline=None, max_examples=100)
@given(names=st.lists(st.text(), max_size=20))
def test_natural_order_is_a_total_order(names: list[str]) -> None:
    backwards = names[::-1]
    assert sorted(names, key=natural_key) == sorted(backwards, key=natural_key)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=5,
)


@hypothesis_settings(deadline=None, max_examples=60)
@given(data=st.data(), value=VALUES)
def test_any_value_of_a_parameter(data: st.DataObject, value: object, tmp_path_factory: pytest.TempPathFactory) -> None:
    """JSON is YAML; NaN and infinity are not JSON's, and are errors of YAML or of the value."""
    document = json.loads(json.dumps(read_document(ROOT / "presets/glyphs.yaml")))
    block = data.draw(st.sampled_from(sorted(document)))
    # a block may be a single word
    keys = [None, *sorted(document[block])] if isinstance(document[block], dict) else [None]
    key = data.draw(st.sampled_from(keys))
    if key is None:
        document[block] = value
    else:
        document[block][key] = value
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(json.dumps(document, ensure_ascii=True), encoding="utf-8")
    assert fuzz.attempt(lambda: check_document(path)) is None


def test_features_that_are_all_the_same_are_told() -> None:
    y, groups = np.tile(np.repeat(np.arange(3), 4), 5), np.repeat(np.arange(5), 12)
    with pytest.raises(MelaError, match=r"^features: all samples of each task class"):
        MergeLabeler().fit(np.ones((60, 4)), y, groups)


def test_a_state_without_its_facts_is_told(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    told: list[str] = []
    path = tmp_path / "state"
    save_file({}, path, metadata={"mela": json.dumps({"kind": "mela.checkpoint/1", "fingerprint": "a"})})
    assert Checkpoint(path=path, fingerprint="a", interval=0, tell=told.append).load() is None
    assert len(told) == 1
    assert told[0].startswith(f"{path}: this checkpoint is damaged")


@pytest.mark.slow
def test_a_find_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception, but not a message, which has one line even if what it tells of has several."""

    def fail(error: Exception) -> None:
        raise error

    assert fuzz.attempt(lambda: fail(KeyError("a"))) == "KeyError: 'a'"
    assert fuzz.attempt(lambda: fail(MelaError("a\r\nb"))) is None
    assert str(MelaError("a\r\nb")) == "a\\r\\nb"
    ended = python("-m", "studies", "robustness.fuzz", "--child", "metrics.json", "--count", "3")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == []
