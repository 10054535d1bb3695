"""The parts of the page, without a browser."""

import base64
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from mela.io import schemas, store
from mela.reporting import figures
from mela.reporting.drawings import drawing
from mela.reporting.page.assembly import by_doubt, map_points, published_rows
from mela.reporting.page.sheets import choose_images, sheet
from mela.reporting.page.svg import COLOURS, inline
from stages.common import paths
from tests.helpers.outcomes import evaluation, outcome
from tests.helpers.project import change, run_stages

PAGE = Path("results/report.html")


def page_of(*stages: str) -> str:
    """The page after some stages have run."""
    run_stages(*stages)
    return PAGE.read_text(encoding="utf-8")


def rewrite_truth(change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    truth = change(store.read_table(paths.TRUTH, schemas.TRUTH))
    store.write_table(paths.TRUTH, truth, schemas.TRUTH, stage="t", params={})


def opened(address: str) -> Image.Image:
    kind, _, content = address.removeprefix("data:image/").partition(";base64,")
    image = Image.open(io.BytesIO(base64.b64decode(content)))
    assert image.format is not None
    assert image.format.lower() == kind
    return image


@pytest.mark.parametrize(("n", "columns", "rows"), [(1, 1, 1), (2, 2, 1), (5, 3, 2), (16, 4, 4)])
def test_a_sheet_holds_its_images_in_rows(n: int, columns: int, rows: int) -> None:
    images = np.random.default_rng(0).integers(0, 256, (n, 20, 20, 1), dtype=np.uint8)
    image = opened(sheet(images))
    assert image.size == (22 * columns - 2, 22 * rows - 2)
    pixels = np.asarray(image.convert("LA"))
    for position in range(n):
        row, column = divmod(position, columns)
        tile = pixels[22 * row : 22 * row + 20, 22 * column : 22 * column + 20]
        np.testing.assert_array_equal(tile[..., 0], images[position, ..., 0])
    assert (pixels[20:22, :, 1] == 0).all() if rows > 1 else True


def test_large_images_are_made_smaller_in_colour_too() -> None:
    images = np.full((4, 96, 96, 3), [200, 30, 60], dtype=np.uint8)
    image = opened(sheet(images))
    assert image.size == (98, 98)
    np.testing.assert_allclose(np.asarray(image.convert("RGB"))[20, 20], [200, 30, 60], atol=6)


def test_a_quarter_of_the_images_shown_are_the_doubtful_ones() -> None:
    weights = pd.DataFrame({"image_id": np.arange(100), "weight": np.linspace(1, 0.01, 100)})
    chosen = choose_images(weights, 16, np.random.default_rng(0))
    assert chosen[:4].tolist() == [99, 98, 97, 96]
    assert len(set(chosen.tolist())) == 16
    assert np.diff(chosen[4:]).max() < 0, "the others in the same order"
    assert sorted(choose_images(weights.head(3), 16, np.random.default_rng(0)).tolist()) == [0, 1, 2]


def test_figures_take_the_colours_of_the_page() -> None:
    curve = pd.DataFrame({"epoch": [1, 2], "loss": [1.0, 0.5], "accuracy": [50.0, 80.0]})
    svgs = [
        inline(drawing(figures.curves_figure(curve, curve), name).svg, 'with "quotes"')
        for name in ("one", "two", "one")
    ]
    assert svgs[0] == svgs[2]
    ids = [set(re.findall(r'id="([^"]+)"', svg)) for svg in svgs]
    assert ids[0]
    assert not ids[0] & ids[1]
    assert set(re.findall(r"url\(#([^)]+)\)", svgs[0])) <= ids[0]
    assert not [colour for colour in COLOURS if colour in svgs[0]]
    assert 'aria-label="with &quot;quotes&quot;"' in svgs[0]
    assert "training loss" in svgs[0]
    assert "font-family" not in svgs[0]


def test_a_figure_without_anything_is_a_figure() -> None:
    assert inline(drawing(Figure(), "nothing").svg, "nothing").startswith("<svg")


def test_points_lie_within_the_map() -> None:
    points = pd.DataFrame({"label": [4, 4, 9], "before_x": [0.0, 0.5, 1.0], "before_y": [0.0, 1.0, 0.5]})
    found = map_points(points, "before")
    assert [(point["x"], point["y"], point["label"]) for point in found] == [(3, 97, 4), (50, 3, 4), (97, 50, 9)]
    assert found[0]["colour"] == found[1]["colour"] != found[2]["colour"]


def test_published_figures_stand_beside_the_same_benchmark() -> None:
    rows = published_rows(outcome(), "cifar_fs")
    assert [(setting, accuracy) for setting, _, accuracy in rows] == [
        ("1-shot", "71.4"),
        ("1-shot", "71.6"),
        ("5-shot", "85.6"),
        ("5-shot", "85.7"),
    ]
    one_shot = published_rows(outcome(evaluation=evaluation(shots=("1_shot",))), "cifar_fs")
    assert one_shot == rows[:2]
    assert published_rows(outcome(), "glyphs") == []


def test_the_page_of_a_run(finished: Path) -> None:
    page = (finished / PAGE).read_text(encoding="utf-8")
    clusters = pd.read_csv(finished / paths.MERGED_CLUSTERS)
    measured = json.loads((finished / paths.EVALUATE_METRICS).read_text())
    assert f"{len(clusters)} classes (there are 80) were found" in page
    for name in ("merged", "pruned", "oracle"):
        gain = measured["gain"][name]["5_shot"]
        assert f"{gain['mean']:+.2f} ± {gain['ci95']:.2f}" in page
    shown = [int(label) for label in re.findall(r'<li data-label="(\d+)"', page)]
    assert shown == by_doubt(clusters)["label"].tolist(), "the doubtful ones first"
    assert "http" not in re.sub(r'xmlns(:xlink)?="[^"]*"|http-equiv', "", page), "nothing is fetched"


def test_a_class_is_doubtful_by_certainty_and_then_by_the_number_of_its_task_classes() -> None:
    clusters = pd.DataFrame(
        {"label": range(6), "task_classes": [100, 190, 101, 60, 99, 100], "certainty": [100, 100, 99.99, 100, 90, 99.8]}
    )
    assert by_doubt(clusters)["label"].tolist() == [4, 5, 1, 3, 2, 0]


@pytest.mark.slow
def test_a_class_of_one_task_class_is_not_merged(copied: Path) -> None:
    path = paths.MERGED_CLUSTERS
    clusters = pd.read_csv(path)
    clusters.loc[0, "task_classes"], clusters.loc[0, "certainty"] = 1, np.nan
    clusters.to_csv(path, index=False)
    alone = int((clusters["task_classes"] == 1).sum())
    assert 0 in by_doubt(clusters)["label"].tail(alone).tolist()
    page = page_of("report")
    assert len(re.findall(r"<dt>certainty</dt><dd>not merged</dd>", page)) == alone >= 1
    assert "nan%" not in page


@pytest.mark.slow
def test_fewer_classes_and_none(copied: Path) -> None:
    for count in (3, 0):
        change(Path("params.yaml"), {"report.sheets": count, "report.images": 2})
        page = page_of("report")
        assert page.count("<li data-label") == count
        assert ("The 3 most doubtful of" in page) == (count == 3)


@pytest.mark.slow
def test_names_of_classes_are_text_whatever_they_are(copied: Path) -> None:
    evil = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
    rewrite_truth(lambda truth: truth.assign(**{"class": evil + truth["class"]}))
    page = page_of("score_labels", "report")
    assert "alert(1)" in page
    assert page.count("<script>") == 1
    assert "<img src=x" not in page


@pytest.mark.slow
def test_without_truth_nothing_is_said_of_it(copied: Path) -> None:
    rewrite_truth(lambda truth: truth.head(0))
    page = page_of("label_oracle", "score_labels", "pretrain@oracle", "evaluate", "report")
    assert "purity" not in page.partition("<style>")[0] + page.partition("<main>")[2].partition("<script>")[0]
    assert "there are 80" not in page
    assert "true labels reach" not in page
    assert "<td>true labels</td>" not in page
    assert "the quality of labels is not known: this data has no ground truth" in page


@pytest.mark.slow
def test_what_stages_took_is_shown_where_it_is_known(copied: Path) -> None:
    change(Path("params.yaml"), {"report.usage": True})
    assert "What each stage took" not in page_of("report")
    for stage, seconds in {"pretrain@merged": 75.26, "label_merged": 12.0, "unknown": 99.0}.items():
        store.write_json(Path(f"results/usage/{stage}.json"), {"seconds": seconds, "memory_bytes": 2**30})
    page = page_of("report")
    assert "What each stage took" in page
    assert re.findall(r'<th scope="row">(\w+@?\w*)</th><td class="n">([\d.]+ s)</td>', page) == [
        ("label_merged", "12.0 s"),
        ("pretrain@merged", "75.3 s"),
    ]
    assert "1,024 MiB" in page


def test_both_ways_to_the_number_of_classes_are_shown(finished: Path) -> None:
    page = (finished / PAGE).read_text(encoding="utf-8")
    passes = pd.read_csv(finished / paths.PASSES)
    assert 'id="figure-merges"' in page
    assert 'id="figure-passes"' in page
    assert "threshold (tasks)" in page
    assert page.count(f'<td class="n">{passes["threshold"].iloc[0]:.1f}</td>') >= 1


def test_rounds_that_are_off_have_no_table(finished: Path) -> None:
    assert 'id="rounds"' not in (finished / PAGE).read_text(encoding="utf-8")


def test_labels_that_are_off_have_no_figure_and_no_row(of_people: Path) -> None:
    page = (of_people / PAGE).read_text(encoding="utf-8")
    assert 'id="figure-merges"' in page
    assert 'id="figure-passes"' not in page
    assert "threshold (tasks)" not in page
    assert "MeLa, merged" in page
    assert "MeLa, pruned" not in page


@pytest.mark.slow
def test_the_page_is_about_the_labels_in_use(copied: Path) -> None:
    change(Path("params.yaml"), {"use": "pruned"})
    page = page_of("assign", "map", "report")
    measured = json.loads(paths.EVALUATE_METRICS.read_text())
    found = json.loads(paths.PRUNED_METRICS.read_text())["clusters"]
    gain = measured["gain"]["pruned"]["1_shot"]
    sentence = re.findall(r'<p class="headline">(.*)</p>', page)[0]
    assert sentence.startswith(f"{found} classes (there are 80) were found")
    assert f"({gain['mean']:+.1f} ± {gain['ci95']:.1f} points, paired)" in sentence
    assert page.count("<li data-label") == found
    shown = [int(label) for label in re.findall(r'<li data-label="(\d+)"', page)]
    assert shown == by_doubt(pd.read_csv(paths.PRUNED_CLUSTERS))["label"].tolist()
    points = pd.read_csv(paths.MAP)["label"].unique()
    assert set(re.findall(r'<option value="(\d+)">', page)) == set(points.astype(str))
    assert "Pre-training on pruned labels" in page
    assert "They are those of MeLa, pruned, by" in page


@pytest.mark.slow
def test_pictures_that_are_no_longer_made_go(copied: Path) -> None:
    Path("results/report/old.png").write_bytes(b"old")
    run_stages("report")
    found = {path.stem for path in Path("results/report").glob("*.png")}
    assert found == {"accuracy", "curves", "losses", "merges", "passes", "sizes"}
