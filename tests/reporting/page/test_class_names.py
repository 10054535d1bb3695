"""Names of people on the page: as they wrote them, and as text whatever they are."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mela.io import schemas, store
from mela.io.name_tables import IMAGE_NAMES, LISTING, WRONG_LABELS
from mela.io.text_tables import read_text_csv, write_text_csv
from mela.reporting.page.class_names import Written, held_out_counts, names_of_classes, readable
from stages.common import paths
from tests.helpers.people import LONG
from tests.helpers.project import change, run_stages


class Elements(HTMLParser):
    """The tags of a page, and the text of its ``bdi`` elements by card."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.names: dict[str, list[str]] = {}
        self._card, self._named = "", False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        assert not [name for name in given if name.startswith("on")], "text has become an attribute that runs"
        if tag == "table":
            self._card = ""
        if tag == "li" and given.get("data-label"):
            self._card = str(given["data-label"])
            self.names[self._card] = []
        self._named = tag == "bdi"

    def handle_data(self, data: str) -> None:
        if self._named and self._card:
            self.names[self._card].append(data)
            self._named = False


@pytest.fixture(scope="module")
def page(of_people: Path) -> str:
    return (of_people / paths.PAGE).read_text(encoding="utf-8")


def test_each_class_has_the_labels_that_people_gave_it(page: str, of_people: Path) -> None:
    shown = Elements(page).names
    table = read_text_csv(of_people / paths.LISTING, LISTING)
    own = table[table["clustered"]]
    assert shown.keys() == {f"{cluster:.0f}" for cluster in own.loc[~own["assigned"], "cluster"]}
    for cluster, rows in own.groupby("cluster"):
        names = {readable(name) for name in rows["label"]}
        assert names <= set(shown[f"{cluster:.0f}"])
        assert readable(rows["task"].iloc[0]) in shown[f"{cluster:.0f}"]


def test_files_are_those_of_the_sheet(page: str, of_people: Path) -> None:
    known = store.read_table(of_people / paths.IMAGE_NAMES, IMAGE_NAMES).set_index("path")["image_id"]
    labels = store.read_table(of_people / paths.MERGED_LABELS, schemas.LABELS).set_index("image_id")["label"]
    plain = {readable(path, letters=None): path for path in known.index}
    files = 0
    for label, names in Elements(page).names.items():
        for name in names:
            if name in plain:
                assert labels[known[plain[name]]] == int(label)
                files += 1
    assert files == len(re.findall("<li><bdi>", page)) > 50


def test_hostile_names_are_text(page: str) -> None:
    tags = Elements(page).tags
    assert tags.count("script") == 1
    assert tags.count("b") == 0
    assert "alert(1)" in page
    assert "<img src=x" not in page
    assert "\u202e" not in page, "it would turn the text that follows"
    assert "\\u202egnp.dog" in page
    assert "two\\nlines" in page
    assert LONG not in re.sub(r"<details>.*?</details>", "", page, flags=re.DOTALL)
    assert f"{LONG[:60]}…" in page


def test_it_says_what_became_of_held_out_labels(page: str, of_people: Path) -> None:
    table = read_text_csv(of_people / paths.LISTING, LISTING)
    new = table[table["assigned"]]
    text = " ".join(page.split())
    assert (
        f"Of these {len(new)} labels, {new['clustered'].sum()} were assigned to one of the classes "
        f"afterwards and {(~new['clustered']).sum()} to none of them."
    ) in text


def test_drawn_tasks_show_no_names_and_no_files(finished: Path) -> None:
    page = (finished / paths.PAGE).read_text(encoding="utf-8")
    assert "<bdi" not in page
    assert "Files" not in page
    assert "the labels that people gave it" not in page


@pytest.mark.slow
def test_images_that_may_have_a_wrong_label_are_shown_with_names_as_text(people_copied: Path) -> None:
    table = read_text_csv(paths.WRONG_LABELS, WRONG_LABELS)
    known = store.read_table(paths.IMAGE_NAMES, IMAGE_NAMES).head(45)
    written = table.reindex(range(45)).assign(task="carla & <b>co", label="<script>alert(1)<", other="two\nlines")
    probability = np.linspace(99, 20, 45)
    written = written.assign(image_id=known["image_id"], path=known["path"], probability=probability)
    write_text_csv(paths.WRONG_LABELS, written[WRONG_LABELS.names])
    run_stages("report")
    page = paths.PAGE.read_text(encoding="utf-8")
    tags = Elements(page).tags
    assert (tags.count("script"), tags.count("b")) == (1, 0)
    shown = page[page.index('id="wrong-labels"') :].partition("</table>")[0]
    assert shown.count('<img class="mistaken" src="data:image/png') == shown.count("<td") / 6 == 40
    assert re.findall(r'<td class="n">(\d+)</td>', shown) == [f"{one:.0f}" for one in probability[:40]]
    assert "two\\nlines" in shown
    assert f"The first 40 of {len(written)}" in page


@pytest.mark.slow
def test_without_held_out_tasks(people_copied: Path) -> None:
    rate = {"embed.learning_rate": 0.01}
    change(Path("params.yaml"), {"data.split_fractions": [1.0, 0.0, 0.0], "report.sheets": 2} | rate)
    run_stages()
    page = paths.PAGE.read_text(encoding="utf-8")
    assert len(Elements(page).names) == 2
    assert "Validation and test tasks" not in page
    assert not read_text_csv(paths.LISTING, LISTING)["assigned"].any()


def rows() -> Iterator[tuple[str, str, str, float | None]]:
    for number in range(12):
        yield f"p{number}", "pilz" if number < 6 else "mushroom", "train", 2
    yield "late", "mushroom", "test", 2
    yield "later", "unknown", "test", None
    for number in range(10):
        yield "anna", f"label {number}", "train", 3


def test_the_most_frequent_labels_come_first() -> None:
    table = pd.DataFrame(rows(), columns=["task", "label", "split", "cluster"])
    table = table.assign(assigned=table["split"] != "train", clustered=table["cluster"].notna(), name="")
    table.loc[table["cluster"] == 3, "name"] = "fly\nagaric"
    found = names_of_classes(table)
    assert {cluster: names.called for cluster, names in found.items()} == {2: "", 3: r"fly\nagaric"}
    assert found[2].labels == [
        Written(label="mushroom", people=["p6", "p7", "p8"], more=4, assigned=1),
        Written(label="pilz", people=["p0", "p1", "p2"], more=3, assigned=0),
    ]
    assert found[2].more == 0
    assert (len(found[3].labels), found[3].more) == (8, 2)
    assert held_out_counts(table) == (1, 1)
    assert held_out_counts(table[table["split"] == "train"]) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pilz", "pilz"),
        ("\u05e4\u05d8\u05e8\u05d9\u05d9\u05d4", "\u05e4\u05d8\u05e8\u05d9\u05d9\u05d4"),
        ("\U0001f469\u200d\U0001f33e", "\U0001f469\u200d\U0001f33e"),
        ("a\tb\x1b[31m\u2028", "a\\tb\\x1b[31m\\u2028"),
        ("\u2067x\u2069", "\\u2067x\\u2069"),
        ("y" * 61, "y" * 60 + "…"),
        ("y" * 60, "y" * 60),
    ],
)
def test_names_are_readable(text: str, expected: str) -> None:
    assert readable(text) == expected


@pytest.mark.slow
def test_true_classes_that_look_like_formulas(copied: Path) -> None:
    """A spreadsheet shows them with an apostrophe, and the page as they are."""
    truth = store.read_table(paths.TRUTH, schemas.TRUTH)
    store.write_table(paths.TRUTH, truth.assign(**{"class": "=" + truth["class"]}), schemas.TRUTH, stage="t", params={})
    run_stages("score_labels", "report")
    table = pd.read_csv(paths.MERGED_PURITIES)
    assert table["class"].str.startswith("'=").all()
    shown = re.findall(r'data-name="([^"]+)"', paths.PAGE.read_text(encoding="utf-8"))
    assert len(shown) > 50
    assert all(name.startswith("=") for name in shown)
