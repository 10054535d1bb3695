"""The command `mela predict`: what it prints and writes, and how it refuses."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from mela import FewShotClassifier
from mela.evaluation.temperature_files import write_temperatures
from mela.models.untrained import save_nothing
from tests.helpers.classifier import save, some_images, write_model
from tests.helpers.commands import mela
from tests.helpers.starts import SLOW, modules_after

LABELS = ("ash [grey]", "elm", "oak")


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two examples of three labels, three queries and a model in the current directory."""
    monkeypatch.chdir(tmp_path)
    write_model(Path("models/merged.safetensors"))
    examples = some_images(6, 20, 18, 3)
    for number, image in enumerate(examples):
        save(f"support/{LABELS[number // 2]}/{number % 2}.png", image)
    save("query/a.png", examples[0])
    save("query/deeper/[b].png", examples[2])
    save("query/deeper/still/c.png", examples[5])
    Path("query/notes.txt").write_text("no image")
    return tmp_path


USUAL = ("--support", "support", "--query", "query", "--device", "cpu")


def predict(*arguments: str) -> str:
    """What the command prints, which ends well."""
    done = mela("predict", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_it_writes_what_the_classifier_says() -> None:
    printed = predict(*USUAL)
    table = pd.read_csv("predictions.csv")
    assert table.columns.tolist() == ["path", "label", "probability", *(f"p_{label}" for label in LABELS)]
    assert table["path"].tolist() == ["query/a.png", "query/deeper/[b].png", "query/deeper/still/c.png"]
    support = [f"support/{label}/{number}.png" for label in LABELS for number in range(2)]
    classifier = FewShotClassifier.load("models/merged.safetensors", "cpu").fit(support, np.repeat(LABELS, 2))
    expected = classifier.predict_proba(table["path"].tolist())
    np.testing.assert_allclose(table.iloc[:, 3:], expected, rtol=1e-5)
    np.testing.assert_allclose(table["probability"], expected.max(axis=1), rtol=1e-5)
    assert table["label"].tolist() == classifier.predict(table["path"].tolist()).tolist()

    for row in table.itertuples():
        line = next(line for line in printed.splitlines() if str(row.path) in line)
        assert str(row.label) in line
        assert f"{row.probability:.3f}" in line
    assert printed.endswith("predictions.csv: 3 images, by logistic regression\n")


def test_one_image_another_model_and_another_file() -> None:
    write_model(Path("other.safetensors"), channels=1, size=24)
    arguments = ["--support", "support", "--query", "query/a.png", "--model", "other.safetensors", "--out", "new/p.csv"]
    predict(*arguments)
    assert pd.read_csv("new/p.csv")["path"].tolist() == ["query/a.png"]
    assert not Path("predictions.csv").exists()


def test_the_model_is_that_of_the_labels_in_use() -> None:
    """Merged labels without a params file; `--model` goes before it."""
    save_nothing(Path("models/merged.safetensors"))
    write_model(Path("models/pruned.safetensors"), seed=1)
    Path("params.yaml").write_text("use: pruned\n")
    predict(*USUAL, "--out", "by-use.csv")
    Path("params.yaml").write_text("use: merged\n")
    predict(*USUAL, "--model", "models/pruned.safetensors", "--out", "named.csv")
    assert Path("by-use.csv").read_bytes() == Path("named.csv").read_bytes()
    support = [f"support/{label}/{number}.png" for label in LABELS for number in range(2)]
    classifier = FewShotClassifier.load("models/pruned.safetensors", "cpu").fit(support, np.repeat(LABELS, 2))
    table = pd.read_csv("by-use.csv")
    np.testing.assert_allclose(table.iloc[:, 3:], classifier.predict_proba(table["path"].tolist()), rtol=1e-5)


def test_what_is_not_calibrated_is_said() -> None:
    model, temperatures = Path("models/merged.safetensors"), Path("models/temperatures.json")

    def said() -> str:
        return predict(*USUAL).splitlines()[-2]

    start = "probabilities are not calibrated: "
    assert said() == start + "no temperatures.json knows this model; copy it beside the model"
    write_temperatures(temperatures, {model: {}}, C=1.0)
    assert said() == start + "its run had no validation tasks to fit a temperature on"
    write_temperatures(temperatures, {model: {"1_shot": {"temperature": 0.5}}}, C=2.0)
    assert said() == start + "its temperatures are for C = 2, and this head has C = 1"
    write_temperatures(temperatures, {model: {"1_shot": {"temperature": 0.5}}}, C=1.0)
    assert said().startswith("left out: ")


def test_images_of_none_of_the_classes_get_no_label() -> None:
    """An example is like its class, and noise of another seed like none; the table says how alike."""
    save("query/other.png", some_images(1, 20, 18, 3, seed=9)[0])
    model = Path("models/merged.safetensors")
    refused = mela("predict", *USUAL, "--unknown")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("error: unknown: expected a model with thresholds, ")
    assert not Path("predictions.csv").exists()
    predict(*USUAL, "--out", "plain.csv")
    plain = pd.read_csv("plain.csv")
    classifier = FewShotClassifier.load(model, "cpu")
    support = [f"support/{label}/{number}.png" for label in LABELS for number in range(2)]
    similar = classifier.fit(support, np.repeat(LABELS, 2)).similarity(plain["path"].tolist())
    other = plain["path"].tolist().index("query/other.png")
    assert similar[other] < np.delete(similar, other).min()
    threshold = float((similar[other] + np.delete(similar, other).min()) / 2)
    write_temperatures(Path("models/temperatures.json"), {model: {"1_shot": {"threshold": threshold}}}, C=1.0)
    Path("query/b.png").write_text("text")
    printed = predict(*USUAL, "--unknown")
    table = pd.read_csv("predictions.csv").set_index("path").drop("query/b.png")
    np.testing.assert_allclose(table["similarity"], similar, rtol=1e-5)
    assert table["label"].isna().tolist() == (np.arange(4) == other).tolist()
    pd.testing.assert_frame_equal(
        table.drop(columns="similarity").drop("query/other.png"), plain.set_index("path").drop("query/other.png")
    )
    assert ["none of these" in line for line in printed.splitlines() if "other.png" in line] == [True]
    assert printed.count("none of these") == printed.count("not read") == 1


def test_long_lists_are_short_in_print_and_whole_in_the_file() -> None:
    for number, image in enumerate(some_images(30, 16, 16, 3)):
        save(f"many/{number:02}.png", image)
    printed = predict("--support", "support", "--query", "many")
    assert [number for number in range(30) if f"many/{number:02}.png" in printed] == list(range(20))
    assert printed.endswith("predictions.csv: 30 images, 10 of them not shown, by logistic regression\n")
    assert len(pd.read_csv("predictions.csv")) == 30


def test_no_name_is_a_formula() -> None:
    Path(f"support/{LABELS[0]}").rename("support/=1+1")
    Path("query").rename("=query")
    predict("--support", "support", "--query", "=query", "--device", "cpu")
    table = pd.read_csv("predictions.csv")
    assert table["path"].str.startswith("'=query/").all()
    assert "'=1+1" in set(table["label"])
    assert table["probability"].between(0, 1).all()


def test_what_cannot_be_read_costs_itself_alone() -> None:
    predict(*USUAL, "--out", "whole.csv")
    whole = pd.read_csv("whole.csv")
    Path("query/b.png").write_text("text")
    Path("query/z.png").symlink_to("/etc/hosts")
    Path("query/empty").mkdir()
    Path("query/gone.png").symlink_to("nowhere.png")
    Path("query/.gone.png").symlink_to("nowhere.png")
    Path("support/elm/round.png").symlink_to("round.png")
    os.mkfifo("query/deeper/pipe.png")
    save("support/elm/2.png", some_images(1, 20, 18, 3)[0]).write_bytes(b"text")
    printed = predict(*USUAL)
    table = pd.read_csv("predictions.csv")
    assert table["path"].tolist() == ["query/a.png", "query/b.png", *whole["path"][1:]]
    assert table.iloc[1, 1:].isna().all()
    pd.testing.assert_frame_equal(table.drop(index=1).reset_index(drop=True), whole)
    assert next(line for line in printed.splitlines() if "query/b.png" in line).endswith("not read    │")
    told = [line for line in printed.splitlines() if line.startswith("left out: ")]
    expected = [
        r".*: expected at least one image .* in folder 'empty', got none; .*",
        r"image 'query/b.png': expected a readable image, got .*; replace the file",
        r"image 'support/elm/2.png': expected a readable image, got .*; replace the file",
        r"query/.gone.png: hidden",
        r"query/deeper/pipe.png: .*: expected files and folders, got the named pipe \(FIFO\) 'deeper/pipe.png', .*",
        r"query/gone.png: .*: expected a file behind the link 'gone.png', got none at 'nowhere.png'; .*",
        r"query/notes.txt: no image .*",
        r"query/z.png: .*: expected links that stay below this folder, .*",
        r"support/elm/round.png: .*: expected a file behind the link 'elm/round.png', got none at 'round.png'; .*",
        "9 in all",
    ]
    assert len(told) == len(expected)
    for line, pattern in zip(told, expected, strict=True):
        assert re.fullmatch(f"left out: {pattern}", line), line


def test_of_many_that_are_left_out_some_are_shown() -> None:
    for number in range(30):
        Path(f"query/{number}.txt").touch()
    told = [line for line in predict(*USUAL).splitlines() if line.startswith("left out: ")]
    assert len(told) == 21
    assert told[-1] == "left out: 11 more"


def only_one_label() -> None:
    for label in LABELS[1:]:
        shutil.rmtree(f"support/{label}")


class Refusal(NamedTuple):
    """What is said, with HERE for the folder, what is wrong, and further arguments of the command."""

    message: str
    spoil: Callable[[], Any] = lambda: None
    arguments: str = ""


REFUSED: dict[str, Refusal] = {
    "no support folder": Refusal(
        "--support: expected a folder at support, got nothing; set --support to the folder of images",
        lambda: shutil.rmtree("support"),
    ),
    "a label without images": Refusal(
        "HERE/support: expected at least one image (.avif .*) in folder 'yew', got "
        "none; add images or remove the folder",
        Path("support/yew").mkdir,
    ),
    "one label": Refusal(
        "--support: expected the folders of two labels or more in support, got only 'ash [grey]'; add a folder with "
        "examples of what it is not",
        only_one_label,
    ),
    "images in no folder": Refusal(
        "--support: expected support/<label>/<image>, got the image support/a.png; move it into the folder of its "
        "label",
        lambda: shutil.copy("query/a.png", "support"),
    ),
    "images in folders below": Refusal(
        "--support: expected support/<label>/<image>, got the image support/elm/more/[b].png; move it into the folder "
        "of its label",
        lambda: shutil.copytree("query/deeper", "support/elm/more"),
    ),
    "an example that is no image": Refusal(
        "image 'support/elm/0.png': expected a readable image, got UnidentifiedImageError: cannot identify image file "
        "'support/elm/0.png'; replace the file",
        lambda: Path("support/elm/0.png").write_text("text"),
        "--strict",
    ),
    "a query that is no image": Refusal(
        "image 'query/a.png': expected a readable image, got .*; replace the file",
        lambda: Path("query/a.png").write_bytes(Path("query/a.png").read_bytes()[:60]),
        "--strict",
    ),
    "a query that leads elsewhere": Refusal(
        "HERE/query: expected links that stay below this folder, got 'z.png' -> .*; put a copy in its place",
        lambda: Path("query/z.png").symlink_to("/etc/hosts"),
        "--strict",
    ),
    "a link that leads nowhere": Refusal(
        "HERE/query: expected a file behind the link 'gone.png', got none at 'nowhere.png'; remove the link, or put "
        "back what it leads to",
        lambda: Path("query/gone.png").symlink_to("nowhere.png"),
        "--strict",
    ),
    "a pipe among the examples": Refusal(
        "HERE/support: expected files and folders, got the named pipe (FIFO) 'elm/pipe.png', which cannot be "
        "read; remove it",
        lambda: os.mkfifo("support/elm/pipe.png"),
        "--strict",
    ),
    "a label of which no example can be read": Refusal(
        "--support: expected an image of 'elm' that can be read, got none; image 'support/elm/1.png': expected a "
        "readable image, got .*; replace the file",
        lambda: [Path(f"support/elm/{number}.png").write_text("text") for number in range(2)],
    ),
    "no query that can be read": Refusal(
        "--query: expected an image that can be read, got none; image 'query/deeper/still/c.png': expected .*",
        lambda: [path.write_text("text") for path in Path("query").rglob("*.png")],
    ),
    "no query folder": Refusal(
        "--query: expected a folder of images or an image at query, got nothing; correct the path",
        lambda: shutil.rmtree("query"),
    ),
    "no query images": Refusal(
        "--query: expected images in the folder query, got none; add some, or correct the path",
        lambda: (shutil.rmtree("query/deeper"), Path("query/a.png").unlink()),
    ),
    "a query whose name is no text": Refusal(
        r"--query: expected a name in UTF-8, got '\udcff.png'; rename it",
        arguments="--query " + os.fsdecode(b"\xff.png"),
    ),
    "no model": Refusal(
        "models/merged.safetensors: no such file; run `dvc repro`, or the stage that makes it, first",
        Path("models/merged.safetensors").unlink,
    ),
    "a model of labels that nothing was trained on": Refusal(
        "models/pruned.safetensors: expected an embedding, got none, since nothing was trained on these labels; set "
        "compare.pruned to true in the parameters and run the pipeline again, or name another model",
        lambda: (Path("params.yaml").write_text("use: pruned\n"), save_nothing(Path("models/pruned.safetensors"))),
    ),
    "no parameters": Refusal(
        "params.yaml: expected blocks such as `labeler:`, got list", lambda: Path("params.yaml").write_text("- 1\n")
    ),
    "parameters of a former version": Refusal(
        "params.yaml: use: expected this block, found only data, labeler",
        lambda: Path("params.yaml").write_text("data: {}\nlabeler: {}\n"),
    ),
    "labels that cannot be used": Refusal(
        "params.yaml: use: expected merged or pruned, got 'kmeans'",
        lambda: Path("params.yaml").write_text("use: kmeans\n"),
    ),
    "no such device": Refusal("device: expected auto, cpu, cuda or cuda:N, got 'gpu'", arguments="--device gpu"),
    "a query for the output": Refusal(
        "--out: query/a.png lies in query, which this command reads; write to another folder",
        arguments="--out query/a.png",
    ),
    "the one query for the output": Refusal(
        "--out: query/a.png is the file query/a.png, which this command reads; give another name",
        arguments="--query query/a.png --out query/a.png",
    ),
    "a folder of examples for the output": Refusal(
        "--out: link/elm/new.csv lies in support, which this command reads; write to another folder",
        lambda: Path("link").symlink_to("support"),
        "--out link/elm/new.csv",
    ),
    "the model for the output": Refusal(
        "--out: models/merged.safetensors is the file models/merged.safetensors, which this command reads; give "
        "another name",
        arguments="--out models/merged.safetensors",
    ),
    "a folder in the way": Refusal(
        "predictions.csv: Is a directory; move what is there away", Path("predictions.csv").mkdir
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_refuses_in_one_line(folders: Path, capfd: pytest.CaptureFixture[str], case: str) -> None:
    message, spoil, arguments = REFUSED[case]
    spoil()
    before = sorted(Path().rglob("*"))
    done = mela("predict", *USUAL, *arguments.split())
    pattern = re.escape(f"error: {message}\n".replace("HERE", str(folders))).replace(re.escape(".*"), ".*")
    assert re.fullmatch(pattern, done.stderr), done.stderr
    assert (done.returncode, done.stdout, capfd.readouterr()) == (1, "", ("", ""))
    assert sorted(Path().rglob("*")) == before


def test_the_command_line_starts_without_what_only_predictions_need() -> None:
    imported = modules_after("import mela.cli.main")
    assert "mela.cli.predict" in imported
    assert not {name for name in SLOW if name in imported}
