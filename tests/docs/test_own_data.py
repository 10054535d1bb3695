"""docs/guides/own-data.md followed word by word under real DVC, with short trainings of a small network."""

import csv
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ruamel.yaml import YAML

from mela.params import LABELS, ROUNDS, DataParams
from tests.helpers import forked
from tests.helpers.docs import blocks
from tests.helpers.dvc import Project, ran
from tests.helpers.people import draw
from tests.helpers.project import ROOT, change
from tests.helpers.teams import Place

pytestmark = pytest.mark.slow

PAGE = "docs/guides/own-data.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
# a file is named right before its block
FILES = {block.before.split("`")[-2]: block.content for block in blocks(PAGE) if block.language == "csv"}
COMMANDS = [line for block in blocks(PAGE) if block.language == "sh" for line in block.content.splitlines()]
SMALL = {"model.width": 8, "evaluate.support_copies": 2, "report.map_classes": 5, "report.map_images": 6}
# so that `mela label` sees the features of which the pipeline's labels come
SMALL |= {f"rounds.{number}": False for number in ROUNDS}
# the trial's for the initial embedding, which is not trained again
SHORT = {"embed.epochs": 2, "embed.milestones": [1], "pretrain.epochs": 1, "pretrain.milestones": []}


MAKES = "mela init ../my-photos"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that the first command makes beside a clone, with the data that the text speaks of."""
    clone = Place(tmp_path_factory.mktemp("own")).clone("mela", ROOT)
    run(MAKES, clone, clone)
    folder = clone.parent / "my-photos"
    rng = np.random.default_rng(0)
    for number in range(40):
        person = "anna" if number == 0 else f"person{number}"
        for label, kind in enumerate(rng.permutation(6)[:3].tolist()):
            for drawing in range(1, 5):
                name = "cat" if label == 0 else f"pile {label}"
                draw(kind, folder / f"data/raw/mine/{person}/{name}/{drawing:03}.png", rng)
    for name, content in FILES.items():
        table = folder / name
        rows = list(csv.DictReader(content.splitlines()))
        if "path" in rows[0]:
            paths = [row["path"] for row in rows]
        elif "task" in rows[0]:
            paths = [f"{row['task']}/{label}/{i}.png" for row in rows for label in ("cup", "key") for i in range(4)]
        else:
            paths = [f"{row['class']}/{i}.png" for row in rows for i in range(6)]
        for path in paths:
            draw(int(rng.integers(6)), table.parent / path, rng)
        table.write_text(content, encoding="utf-8")
    return folder


def run(command: str, folder: Path, clone: Path | None = None) -> str:
    environment = Project(folder).environment() | {"PYTHONPATH": str(clone or folder.parent / "mela")}
    return forked.run(command, folder, environment, timeout=300)


def test_the_text_speaks_of_commands_and_files() -> None:
    assert len(COMMANDS) == 13
    files = ["mine/splits.csv", "leaves/tasks.csv", "animals/splits.csv"]
    assert [*FILES] == [f"data/raw/{name}" for name in files]
    assert Counter(block.language for block in blocks(PAGE)) == {"sh": 10, "csv": 3, "yaml": 1}


def test_parameters_of_several_data_sets_are_valid() -> None:
    (block,) = [block for block in blocks(PAGE) if block.language == "yaml"]
    whole = (
        DataParams.read(ROOT / "presets/metadataset_cpu.yaml").content() | YAML(typ="safe").load(block.content)["data"]
    )
    assert [one.root for one in DataParams.of(whole).datasets or ()] == ["aircraft", "cub", "mushrooms"]


def test_every_command_of_the_text_works(folder: Path) -> None:
    said = {}
    first, *others = COMMANDS
    assert first == MAKES
    for command in others:
        if command == "dvc repro":
            change(folder / "params.yaml", SHORT)
        said[command] = run(command, folder)
        if command.endswith("--write params.yaml"):
            change(folder / "params.yaml", SMALL)
    assert "data/raw/mine: taken for tasks with labels of their own" in said["mela data check data/raw/mine"]
    assert "drawn, 2 of them pinned by splits.csv" in said["mela data check data/raw/mine"]
    assert "data/raw/leaves: taken for tasks" in said["mela data check data/raw/leaves"]
    assert "data/raw/animals: taken for classes" in said["mela data check data/raw/animals"]
    assert "splits given" in said["mela data check data/raw/animals"]
    trainings = [f"pretrain@{labels}" for labels in LABELS]
    rounds = [f"round@{number}" for number in ROUNDS]
    assert ran(said["dvc repro"]) == ["code", *rounds, *trainings, "evaluate", "confusions", "map", "report"]
    assert "MeLa, merged" in said["mela summary"]
    assert "few-shot accuracy" not in said["mela summary"], "nothing was measured"
    for name in re.findall(r"`((?:data|models)/[\w/]+\.(?:parquet|safetensors))`", TEXT):
        assert (folder / name).is_file(), name
    labels = pd.read_csv(folder / "labels.csv")
    inferred = pd.read_parquet(folder / "data/labels/merged.parquet")
    assert set(labels["image_id"]) <= set(pd.read_parquet(folder / "data/features.parquet")["image_id"])
    assert len(labels) == len(inferred)
    assert list(pd.read_csv(folder / "labels_tasks.csv").columns) == ["task_id", "local_label", "cluster"]
    assert run("git status --short results", folder) == "", "figures to compare with are committed"
    assert ran(run("dvc repro", folder)) == ["code"]


@pytest.mark.parametrize("command", ["mela data check data/raw/nobody", "mela data chek data/raw/mine", "mela labels"])
def test_a_wrong_command_would_be_noticed(command: str, folder: Path) -> None:
    with pytest.raises(AssertionError, match=re.escape(command)):
        run(command, folder)
