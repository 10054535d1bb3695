"""Params files of former versions ask for the same when they are converted, and nothing else in them changes."""

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from mela.cli.former_params import convert
from mela.errors import MelaError
from mela.params import BLOCKS, LABELS, check_document
from tests.helpers.commands import mela
from tests.helpers.project import ROOT

GLYPHS = (ROOT / "presets/glyphs.yaml").read_text(encoding="utf-8")
NEW = ("merging", "compare", "use")
# what was trained on and used, by `labeler.merge` and `pretrain.labels`
FORMER = {
    (True, "mela"): ({"merged"}, "merged"),
    (True, "mela_soft"): ({"merged_soft", "merged"}, "merged"),
    (True, "kmeans"): ({"kmeans", "merged"}, "merged"),
    (True, "oracle"): ({"oracle", "merged"}, "merged"),
    (False, "mela"): ({"pruned"}, "pruned"),
    (False, "kmeans"): ({"kmeans", "pruned"}, "pruned"),
    (False, "oracle"): ({"oracle", "pruned"}, "pruned"),
}
GONE = "expected labels that there still are, got"


def former(merge: bool | str = True, labels: str = "mela") -> str:
    """The preset as it was written before the blocks that are new."""
    text = re.sub(rf"^({'|'.join(NEW)}):.*\n(  .*\n)*\n", "", GLYPHS, flags=re.MULTILINE)
    text = re.sub("^(labeler:.*\n)", rf"\1  merge: {str(merge).lower()}  # or pruning\n", text, flags=re.MULTILINE)
    text = re.sub("^(pretrain:.*\n)", rf"\1  labels: {labels}  # of one kind\n", text, flags=re.MULTILINE)
    text = text.replace("  min_count: 1 ", "  min_count: 2 ").replace("  collisions: drop ", "  collisions: assign ")
    return "# mine\n" + text


def values(text: str) -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load(text)
    return found


def comments(text: str) -> list[str]:
    return re.findall("#.*", text)


@pytest.mark.parametrize(("merge", "labels"), FORMER)
def test_a_former_file_asks_for_what_it_asked_for(tmp_path: Path, merge: bool, labels: str) -> None:
    path, old = tmp_path / "params.yaml", former(merge, labels)
    path.write_text(old, encoding="utf-8")
    with pytest.raises(MelaError, match=r"labeler: merge: merging has a block of its own now, .*--convert"):
        check_document(path)
    done = mela("preset", "--convert", "--params", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{path}: is now a file of this version\n"
    check_document(path)
    text = path.read_text(encoding="utf-8")
    new, before = values(text), values(old)
    trained, used = FORMER[merge, labels]
    assert new["compare"] == {name: name in trained for name in LABELS}
    assert new["use"] == used
    assert new["merging"] == {key: before["labeler"][key] for key in ("collisions", "min_count", "seed")}
    assert new["merging"]["min_count"] == 2
    del before["labeler"]["merge"], before["pretrain"]["labels"]
    assert {name: block for name, block in new.items() if name not in NEW} == before
    assert new.keys() == {block.block for block in BLOCKS}
    kept = [comment for comment in comments(old) if comment not in ("# or pruning", "# of one kind")]
    assert [comment for comment in comments(text) if comment in kept] == kept
    assert kept[0] == "# mine"
    # blocks are apart, and as they were written
    assert "\n\n\n" not in text
    assert text.count("\n\n") == old.count("\n\n") + len(NEW)
    assert convert(text, "params.yaml") == text


@pytest.mark.parametrize("gone", ["labeler:.*\n  merge", "pretrain:.*\n  labels"])
def test_one_of_the_keys_is_enough(gone: str) -> None:
    """The other one is taken for what presets had."""
    (key,) = re.findall(r"\w+$", gone)
    text = re.sub(rf"\n  {key}: .*", "", former())
    assert values(convert(text, "params.yaml")) == values(convert(former(), "params.yaml"))


@pytest.mark.parametrize("merged", [True, False])
def test_the_side_of_images_has_another_name(tmp_path: Path, merged: bool) -> None:
    """Alone, or in a file that is older still; the other keys and all comments stay where they are."""
    today = GLYPHS if merged else former()
    text = re.sub("^  image_size:( 28 +)", r"  size:\1      ", today, flags=re.MULTILINE)
    path = tmp_path / "params.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(MelaError, match=r"data: size: this key is now image_size, .*--convert"):
        check_document(path)
    assert convert(text, "") == convert(today, "")


@pytest.mark.parametrize("path", sorted((ROOT / "presets").glob("*.yaml")), ids=lambda path: path.stem)
def test_a_file_of_today_stays_as_it_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert convert(text, str(path)) == text


def test_it_says_that_there_is_nothing_to_convert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text(GLYPHS, encoding="utf-8")
    done = mela("preset", "--convert")
    assert (done.returncode, done.stdout) == (0, "params.yaml: nothing to convert\n")
    assert Path("params.yaml").read_text(encoding="utf-8") == GLYPHS


NO_PARAMS = "expected the blocks labeler and pretrain, got others; name a params file"
REFUSED = {
    "soft labels of pruning": (
        former(False, "mela_soft"),
        f"pretrain.labels: {GONE} 'mela_soft' with labeler.merge=false; set it to mela, then convert the file",
    ),
    "labels that never were": (
        former(True, "truth"),
        f"pretrain.labels: {GONE} 'truth' with labeler.merge=true; set it to mela, then convert the file",
    ),
    "a merge that is no boolean": (
        former("perhaps"),
        "labeler.merge: expected true or false, got 'perhaps'; correct it, then convert the file",
    ),
    "labels that are a list": (
        former(True, "[mela]"),
        f"pretrain.labels: {GONE} ['mela'] with labeler.merge=true; set it to mela, then convert the file",
    ),
    "both names of a key": (
        GLYPHS.replace("  image_size: 28", "  size: 84\n  image_size: 28"),
        "data: expected image_size alone, got size as well; remove size",
    ),
    "another file": ("stages:\n  one: {}\n", NO_PARAMS),
    "a block without keys": ("labeler: 3\npretrain:\n  labels: mela\n", NO_PARAMS),
    "an empty file": ("", "expected blocks such as `labeler:`, got NoneType"),
    "no YAML": ("labeler: [\n", "expected YAML, got "),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_refuses_in_one_line_and_leaves_the_file(tmp_path: Path, name: str) -> None:
    text, message = REFUSED[name]
    path = tmp_path / "params.yaml"
    path.write_text(text, encoding="utf-8")
    done = mela("preset", "--convert", "--params", path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {path}: {message}")
    assert done.stderr.count("\n") == 1
    assert path.read_text(encoding="utf-8") == text


def test_a_mistake_elsewhere_is_told_once_the_file_is_converted(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(former().replace("  q: 5.0 ", "  q: low "), encoding="utf-8")
    done = mela("preset", "--convert", "--params", path)
    message = f"error: {path}: labeler.q: input should be a valid number, got 'low'\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)
    assert path.read_text(encoding="utf-8") == convert(former(), "").replace("  q: 5.0 ", "  q: low ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "preset: expected the name of a preset, or --convert; `mela preset --help` says more"),
        (
            ("glyphs", "--convert"),
            "preset: expected a name or --convert, got glyphs and --convert; leave one out",
        ),
        (
            ("--convert",),
            "params.yaml: no such file; run from the project's root, or write it with `mela preset glyphs`",
        ),
    ],
)
def test_what_is_wrong_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = mela("preset", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"error: {message}\n")
    assert list(tmp_path.iterdir()) == []
