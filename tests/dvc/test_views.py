"""What DVC shows of runs: its plots are drawn as it describes them, from two commits of a clone."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from PIL import Image
from ruamel.yaml import YAML

from mela.params import CompareParams, RoundsParams
from mela.reporting.summary import NAMES as NAMES_OF_LABELS
from tests.helpers.copies import ask
from tests.helpers.pipeline import STAGES, listed
from tests.helpers.project import ROOT
from tests.helpers.teams import Place

pytestmark = pytest.mark.slow

vl_convert = pytest.importorskip("vl_convert", reason="plots are not drawn without vl-convert-python")

OWN = YAML(typ="safe").load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["plots"]
NAMES = [*(next(iter(plot)) for plot in OWN), *(name for stage in STAGES for name in listed(stage, "plots"))]
COMPARED = CompareParams.read(ROOT / "params.yaml").model_dump()
EMPTY = {f"results/pretrain/{labels}.csv" for labels, compared in COMPARED.items() if not compared}
ROUNDS = RoundsParams.read(ROOT / "params.yaml").model_dump()
EMPTY |= {f"results/rounds/{number}.csv" for number, on in ROUNDS.items() if not on}
# of those at hand; the page that DVC makes loads 5.2
OLDEST = vl_convert.get_vegalite_versions()[0]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two commits: the results in the project, and those of another q."""
    place = Place(tmp_path_factory.mktemp("views"))
    folder = place.clone("mela", ROOT)
    sweep = folder / "results/sweep.csv"
    header, row = sweep.read_text(encoding="utf-8").splitlines()
    values = dict(zip(header.split(","), row.split(","), strict=True)) | {"q": "4", "clusters": "99"}
    sweep.write_text(f"{header}\n{','.join(values.values())}\n", encoding="utf-8")
    metrics = folder / "results/metrics.json"
    content = json.loads(metrics.read_text(encoding="utf-8"))
    metrics.write_text(json.dumps(content | {"pruned": content["pruned"] | {"clusters": 99}}), encoding="utf-8")
    place.run("git commit --quiet --all --message 'another q'", folder)
    return folder


@pytest.fixture(scope="module")
def plots(clone: Path) -> dict[str, dict[str, Any]]:
    told = json.loads(ask("dvc", "plots", "diff", "--json", "HEAD~1", "HEAD", where=clone))
    assert not told.get("errors"), "a clone, without what is in the cache, shows all of them"
    return {name: charts[0] for name, charts in told["data"].items() if charts}


def test_all_are_there_but_what_the_run_has_none_of(plots: dict[str, dict[str, Any]]) -> None:
    assert plots.keys() == set(NAMES) - EMPTY
    for name, chart in plots.items():
        assert chart["type"] == "vega"
        assert chart["revisions"] == ["HEAD~1", "HEAD"], name


@pytest.mark.parametrize("name", [name for name in NAMES if name not in EMPTY])
def test_it_can_be_drawn(name: str, plots: dict[str, dict[str, Any]]) -> None:
    image = Image.open(io.BytesIO(vl_convert.vegalite_to_png(plots[name]["content"], vl_version=OLDEST))).convert("RGB")
    assert image.width > 200
    # the two revisions in colours of their own, or side by side
    colours = image.getcolors(maxcolors=2**24)
    assert colours is not None
    strong = {colour for _, colour in colours if max(colour) - min(colour) > 60}
    assert len(strong) >= 2


def points(chart: dict[str, Any]) -> list[dict[str, Any]]:
    return chart["content"]["data"]["values"]  # type: ignore[no-any-return]


def test_every_run_is_a_point_of_a_sweep(plots: dict[str, dict[str, Any]], clone: Path) -> None:
    found = {
        point["rev"]: (float(point["q"]), float(point["clusters"])) for point in points(plots["sweep: clusters over q"])
    }
    (own,) = csv.DictReader(ask("git", "show", "HEAD~1:results/sweep.csv", where=clone).splitlines())
    assert found == {"HEAD~1": (float(own["q"]), float(own["clusters"])), "HEAD": (4.0, 99.0)}


def test_accuracies_of_the_runs_stand_beside_each_other(plots: dict[str, dict[str, Any]]) -> None:
    assert {(point["rev"], point["name"]) for point in points(plots["accuracy"])} == {
        (revision, f"{shots}-shot: {name}")
        for revision in ("HEAD~1", "HEAD")
        for shots in (1, 5)
        for name in ["none (initial)", *(NAMES_OF_LABELS[labels] for labels, compared in COMPARED.items() if compared)]
    }


def test_metrics_are_few(clone: Path) -> None:
    _, first, *others = ask("dvc", "metrics", "diff", "HEAD~1", where=clone).splitlines()
    before = json.loads(ask("git", "show", "HEAD~1:results/metrics.json", where=clone))["pruned"]["clusters"]
    assert first.split()[:4] == ["results/metrics.json", "pruned.clusters", str(before), "99"]
    assert others == []
    shown = ask("dvc", "exp", "show", "--only-changed", "--drop", ".*/.*", "--csv", where=clone).splitlines()
    columns = shown[0].split(",")
    figures = pd.json_normalize(json.loads((clone / "results/metrics.json").read_text(encoding="utf-8")))
    assert len(columns) <= 5 + len(figures.columns)
