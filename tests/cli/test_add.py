"""`mela add`: new people get the classes that the stages would give them, without a stage."""

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mela.io.name_tables import LISTING
from mela.io.text_tables import as_written, read_text_csv
from mela.labeling.given_names import add_given_name
from mela.labeling.labeler_files import load_labeler
from mela.labeling.merge_labeler import MergeLabeler
from tests.helpers.commands import mela
from tests.helpers.people import SMALL, draw
from tests.helpers.project import change, run_stages

pytestmark = pytest.mark.slow


def added(*arguments: object) -> pd.DataFrame:
    """What the command writes, which ends well."""
    done = mela("add", *arguments, "--device", "cpu")
    assert (done.returncode, done.stderr) == (0, "")
    table = pd.read_csv("added.csv", keep_default_na=False)
    return table.assign(**{name: table[name].map(as_written) for name in ("task", "label", "known_as")})


@pytest.mark.parametrize("named", [False, True])
def test_held_out_people_get_the_classes_of_the_run(people_copied: Path, named: bool) -> None:
    """The stage `assign` places the labels of their tasks in the same way, by what they are called if names count."""
    if named:
        change(Path("params.yaml"), {"merging.names": True})
        run_stages("label_merged", "assign")
        labeler = load_labeler(Path("models/labelers/merged"))
        assert isinstance(labeler, MergeLabeler)
        assert labeler._words is not None
    listing = read_text_csv(Path("results/labels.csv"), LISTING)
    expected = listing[listing["assigned"] & listing["split"].isin(["val", "test"])]
    for task in expected["task"].unique():
        shutil.copytree(Path("mine", task), Path("new", task))
    found = added("new").merge(expected, on=["task", "label"], suffixes=("", "_expected"))
    assert len(found) == len(expected) > 10
    clusters = pd.to_numeric(found["cluster"])
    np.testing.assert_array_equal(clusters, found["cluster_expected"])
    np.testing.assert_allclose(found["certainty"], found["certainty_expected"], atol=0.11)
    for cluster, known_as in zip(clusters, found["known_as"], strict=True):
        called = Counter(listing[~listing["assigned"] & (listing["cluster"] == cluster)]["label"])
        counts = [called[name] for name in known_as.split(", ")] if known_as else []
        assert counts == sorted(called.values(), reverse=True)[:3], (cluster, known_as)
    # a name that somebody gave to a class comes first
    label = listing.query("cluster == 0").iloc[0]
    add_given_name(Path("class_names.csv"), (label["task"], label["label"]), "fly agaric")
    run_stages("assign")
    called = added("new").set_index("cluster")["known_as"]
    assert set(called[pd.to_numeric(called.index) == 0]) == {"fly agaric"}
    assert "fly agaric" not in set(called[pd.to_numeric(called.index) != 0])
    Path("results/labels.csv").write_text(
        Path("results/labels.csv").read_text(encoding="utf-8").replace("fly agaric", ""), encoding="utf-8"
    )
    # where nobody gave names, numbers would say nothing
    Path("data/names/labels.parquet").unlink()
    assert set(added("new")["known_as"]) == {""}


def test_a_table_of_new_people(people_copied: Path) -> None:
    rng = np.random.default_rng(3)
    rows = []
    for label in ("this", "that"):
        for number in range(4):
            draw(0 if label == "this" else 3, Path(f"others/{label}{number}.png"), rng, **SMALL)
            rows.append({"task_id": "zoe", "local_label": label, "path": f"{label}{number}.png"})
    pd.DataFrame(rows).to_csv("others/tasks.csv", index=False)
    of_table = added("others/tasks.csv")
    assert of_table["task"].tolist() == ["zoe", "zoe"]
    assert sorted(of_table["label"]) == ["that", "this"]
    pd.testing.assert_frame_equal(added("others"), of_table)


def test_what_it_refuses(people_copied: Path) -> None:
    for arguments, error in (
        (["nowhere"], "nowhere: expected a folder of images, or a table of them, got nothing; correct the path"),
        (["mine", "--out", "mine/added.csv"], "--out: "),
    ):
        done = mela("add", *arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"error: {error}")
        assert done.stderr.count("\n") == 1
    change(Path("params.yaml"), {"extract.features": "mine.npy"})
    refused = mela("add", "mine")
    assert refused.stderr.startswith("error: add: expected features of MeLa's own network, ")
    change(Path("params.yaml"), {"extract.features": "none"})
    shutil.rmtree("models/labelers")
    assert mela("add", "mine").stderr.startswith("error: models/labelers/merged")
    assert not Path("added.csv").exists()
