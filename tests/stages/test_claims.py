"""What is said of test tasks: new classes where it is known that they are, and new tasks where nobody knows."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from markdown_it import MarkdownIt

from mela.inference.provenance import provenance
from mela.io import store
from mela.io.name_tables import IMAGE_NAMES, LISTING
from mela.io.text_tables import read_text_csv
from stages.common import paths
from tests.helpers.commands import mela
from tests.helpers.people import PEOPLE, draw_people
from tests.helpers.project import change, run_stages

CLASSES = "new classes"
TASKS = "new tasks (their classes may occur in training)"


def said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str, str]:
    """The headline, the caption below the figure of accuracies, and the card of the final model."""
    monkeypatch.chdir(folder)
    page = paths.PAGE.read_text(encoding="utf-8")
    headline = re.search(r'<p class="headline">(.*?)</p>', page)
    caption = re.search(r'id="figure-accuracy">.*?<figcaption>(.*?)</figcaption>', page, flags=re.DOTALL)
    assert headline is not None
    assert caption is not None
    assert mela("export", "--torch", "psi.pt2").returncode == 0
    card = Path("psi.pt2.md").read_text(encoding="utf-8")
    return headline[1], caption[1], card[card.index("## Accuracy") :]


def require_new_classes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    headline, caption, card = said(folder, monkeypatch)
    assert f"1-shot accuracy on {CLASSES}" in headline
    assert "of classes that no training task has" in caption
    assert f"on {CLASSES}, whose images no training task has" in card
    assert "may occur" not in headline + caption + card


def test_classes_of_a_benchmark_are_split(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_new_classes(copied, monkeypatch)


@pytest.mark.slow
def test_classes_are_split_as_the_user_says(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Images in folders of classes, and a table that says which classes are for testing."""
    draw_people(project / "mine")
    for number, person in enumerate(PEOPLE[:12]):
        (project / "classes").mkdir(exist_ok=True)
        (project / "mine" / person).rename(project / f"classes/{number}")
    rows = [("train" if number < 6 else "val" if number < 9 else "test", str(number)) for number in range(12)]
    deep = [(split, f"{name}/{label.name}") for split, name in rows for label in (project / "classes" / name).iterdir()]
    pd.DataFrame(deep, columns=["split", "class"]).to_csv(project / "classes/splits.csv", index=False)
    own = {"data.name": "folder", "data.root": "classes", "data.table": "splits.csv", "labeler.n_clusters": 30}
    few = {"tasks.shots": 1, "tasks.queries": 3, "tasks.ways": 3, "kmeans.n_clusters": 6, "evaluate.shots": [1]}
    change(project / "params.yaml", own | few)
    run_stages()
    require_new_classes(project, monkeypatch)
    # the folders are the truth, which only scores may show
    assert store.read_table(paths.IMAGE_NAMES, IMAGE_NAMES).empty
    listed = read_text_csv(paths.LISTING, LISTING)
    assert listed["label"].str.fullmatch("[0-2]").all()
    assert listed["task"].str.fullmatch("[0-9]+").all()
    assert "<bdi" not in paths.PAGE.read_text(encoding="utf-8")


def test_nobody_knows_the_classes_of_tasks(people_copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    headline, caption, card = said(people_copied, monkeypatch)
    assert f"1-shot accuracy on {TASKS}" in headline
    assert "their classes may occur in training" in caption
    assert f"on {TASKS}, whose images no training task has" in card
    assert "new classes" not in headline + caption + card
    assert "no training task has" not in caption


def test_a_card_names_labels_and_no_people(people_copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said(people_copied, monkeypatch)
    card = Path("psi.pt2.md").read_text(encoding="utf-8")
    (line,) = [line for line in card.splitlines() if line.startswith("- what people called ")]
    shown = HTMLParser()
    text: list[str] = []
    shown.handle_data = text.append  # type: ignore[method-assign]
    shown.feed(MarkdownIt("commonmark").render(line))
    for name in ("pilz", "hund", "=1+1", "<script>alert(1)<", r"two\nlines"):
        assert name in "".join(text)
    assert not [person for person in PEOPLE if person in card]
    assert "<script" not in card
    assert "<img" not in card
    assert "\u202e" not in card


def test_a_card_of_drawn_tasks_names_nothing(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said(copied, monkeypatch)
    assert "what people called" not in Path("psi.pt2.md").read_text(encoding="utf-8")


def test_a_card_without_the_table_of_labels(people_copied: Path) -> None:
    """As after a run of an earlier version."""
    paths.LISTING.unlink()
    found = provenance(paths.MERGED, params=Path("params.yaml"), results=Path("results"), lock=Path("dvc.lock"))
    assert found is not None
    assert found.listing is None
    assert json.loads(paths.SCORES.read_text())["merged"].keys() == {"clusters"}
