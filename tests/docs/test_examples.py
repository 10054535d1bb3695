"""Blocks of the documentation that need a finished pipeline are run after one."""

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from mela.io import schemas, store
from tests.helpers.commands import mela
from tests.helpers.docs import MELA, PYTHON, blocks
from tests.helpers.extras import ONNX
from tests.helpers.labelers import tasks
from tests.helpers.project import ROOT


def run(command: str) -> None:
    """A command of `mela`, in this process; it has to succeed."""
    program, *arguments = shlex.split(command)
    assert (program, mela(*arguments).returncode) == ("mela", 0), command


@pytest.mark.slow
@ONNX
def test_using_the_model_does_what_it_says(copied: Path) -> None:
    names: dict[str, Any] = {}
    printed: list[Any] = []
    for block in blocks("docs/guides/using-the-model.md"):
        if block.language == "python":
            exec(block.content, names | {"print": printed.append}, names)
        else:
            assert block.language == "bash"
            run(block.content)
    score, probabilities, left, told, difference = printed
    measured = store.read_table(copied / "results/evaluate/per_task.parquet", schemas.ACCURACIES)
    task = measured.query("split == 'test' and model == 'merged' and setting == '5_shot' and task_id == 0")
    assert 100 * score == pytest.approx(task["accuracy"].item())
    assert probabilities.shape == (3, 5)
    assert left.tolist() == [0, 1, 2, 3]
    classifier, new = names["classifier"], names["images"][names["new"]["image_id"]]
    near = classifier.similarity(new) >= classifier.threshold_
    assert [label is not None for label in told] == near.tolist()
    assert {*told} - {None} <= {0, 1, 2, 3}
    assert difference < 1e-4
    written = pd.read_csv("data/raw/few/predictions.csv")
    right = written["label"] == written["path"].map(
        {f"data/raw/few/new/{row.image_id}.png": f"letter {row.local_label}" for row in names["task"].itertuples()}
    )
    assert np.mean(right) == pytest.approx(score)
    exported = {path.name for path in Path("data/raw/few").glob("final.*")}
    assert exported == {"final.onnx", "final.onnx.md", "final.pt2", "final.pt2.md"}


@pytest.mark.slow
def test_python_of_other_pages_runs(copied: Path) -> None:
    """With what it speaks of: samples of tasks, and a few images of two classes."""
    X, y, groups = tasks(0)
    images = list(np.load("data/images/images.npy")[:6])
    words = np.array(["oak", "elm", "fir"])[y]
    given = {
        "X": X,
        "y": y,
        "groups": groups,
        "words": words,
        "X_new": X[:15],
        "y_new": y[:15],
        "groups_new": groups[:15],
    }
    given |= {"images": images, "labels": ["a", "b"] * 3, "new_images": images[:1]}
    given |= {"people": ["anna"] * 6}
    for page in PYTHON:
        for block in blocks(page):
            if block.language == "python":
                names = dict(given)
                exec(block.content, names)
                assert names.keys() & {"labeler", "classifier", "learner"}, f"{page}:{block.line}"
                if "learner" in names:
                    assert all(parameter.grad is not None for parameter in names["learner"].parameters())
    assert names["labeler"].soft_labels_.shape == (600, 6)


@pytest.fixture(scope="module")
def with_files(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The finished folder with the files that commands speak of, as the current directory."""
    folder = tmp_path_factory.mktemp("files") / "copy"
    shutil.copytree(finished, folder)
    shutil.copytree(ROOT / "presets", folder / "presets")
    images = np.load(folder / "data/images/images.npy")
    for number, image in enumerate(images[:48]):
        person, label = f"data/raw/mine/person{number // 12}", f"pile {number % 12 // 4}"
        path = folder / person / label / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image.squeeze()).save(path)
    shutil.copy(folder / "data/features.parquet", folder / "features.parquet")
    pd.read_parquet(folder / "data/manifest/train.parquet").to_csv(folder / "tasks.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


@pytest.mark.parametrize("command", sorted(MELA))
def test_commands_of_mela_run(command: str, with_files: Path) -> None:
    run(command)


@pytest.mark.parametrize(
    "command", ["mela presets glyphs", "mela preset nobody", "mela label nobody.parquet tasks.csv"]
)
def test_a_wrong_command_would_be_noticed(command: str, with_files: Path) -> None:
    with pytest.raises(AssertionError, match=command):
        run(command)
