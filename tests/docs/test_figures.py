"""Pages with figures are what templates make of the results; what these contradict, or nobody measured, is refused."""

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from benchmark.matrix import Matrix
from docs._tools import template_functions
from docs._tools.pages import TEMPLATES, main, pages, rendered
from docs._tools.template_functions import RUN, Figures
from mela.errors import MelaError
from mela.io import schemas, store
from tests.helpers.cells import write_results
from tests.helpers.copies import ask
from tests.helpers.matrix import write_matrix
from tests.helpers.project import ROOT

PRESETS = {"glyphs": "glyphs", "omniglot": "omniglot_cpu", "cifar_fs": "cifar_fs_cpu", "fc100": "fc100_cpu"}


@pytest.fixture(scope="module")
def figures() -> Figures:
    return Figures()


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The results in another folder, as the current directory; files are links to those of the project."""
    for name in ("benchmark/data", "benchmark/results", "studies/results", "docs/_templates/results"):
        shutil.copytree(ROOT / name, tmp_path / name, copy_function=os.symlink)
    shutil.copy(ROOT / "benchmark/params.yaml", tmp_path / "benchmark")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", [page for page in pages() if page != "README.md"])
def test_pages_are_what_their_templates_make_of_the_results(page: str, figures: Figures) -> None:
    assert (ROOT / page).read_text(encoding="utf-8") == rendered(page, figures), "run `make tables`"


def test_the_readme_shows_the_run_at_hand_or_the_committed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Figures
) -> None:
    """A user's own run, on another processor, differs by chance and makes no page wrong."""
    committed = tmp_path / "metrics.json"
    committed.write_text(ask("git", "show", f"HEAD:{RUN}", where=ROOT), encoding="utf-8")
    found = []
    for run in (RUN, committed):
        monkeypatch.setattr(template_functions, "RUN", run)
        with suppress(MelaError):
            found.append(rendered("README.md", figures))
    assert (ROOT / "README.md").read_text(encoding="utf-8") in found, "run `make tables`"


def test_an_accuracy_that_changes_is_another_one_on_the_page(copy: Path) -> None:
    for path in (copy / TEMPLATES / "results").glob("*.jinja"):
        if path.name != "methods.md.jinja":
            path.unlink()
    table = copy / "studies/results/method_rates.csv"
    text = table.read_text(encoding="utf-8")
    table.unlink()
    table.write_text(re.sub(r"^(cifar_fs,feat,nothing,1,adam,0.0003,.*),50\.37", r"\1,58.37", text, flags=re.MULTILINE))
    main()
    page = Path("docs/results/methods.md")
    changed = (ROOT / page).read_text(encoding="utf-8").replace("50.4 / 65.3", "58.4 / 65.3")
    assert page.read_text(encoding="utf-8") == changed != (ROOT / page).read_text(encoding="utf-8")
    page.unlink()
    write_matrix(Path("benchmark"), data=["glyphs"])
    main()
    assert not page.exists(), "with data of one's own the pages are left as they are"


@pytest.mark.slow
def test_who_is_ahead_cannot_change_unnoticed(copy: Path) -> None:
    for path in copy.glob("benchmark/results/fc100/seed*/protonet.parquet"):
        rows = store.read_table(path, schemas.RESULTS)
        write_results(path, rows.assign(accuracy=rows["accuracy"] + 10))
    problem = r"findings.md.jinja: line \d+: expected that merged-rfs is ahead of protonet on fc100, 1-shot, got -7.*"
    with pytest.raises(MelaError, match=problem):
        main()
    assert not [*Path("docs").rglob("*.md")], "either all pages are written or none"


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("points('kmeans-rfs', 'merged-rfs', 'glyphs')", "kmeans-rfs is ahead of merged-rfs on glyphs, 1-s.*, got -"),
        ("ahead('merged-rfs', 'oracle-rfs', 'glyphs', sure=True)", ".*, 1-shot, with chance in training counted in"),
        ("ahead('feat', 'protonet', 'glyphs', 1, sure=False)", ".* but not with chance in training counted in, got"),
        ("ahead('cmc', 'moco', 'cifar_fs', seeds=[0, 1])", r"cmc is .*, of the seeds \[0, 1\], got {0:"),
        ("ahead('merged-rfs', 'oracle-rfs', 'fc100', 1, each=True)", "merged-rfs is .*, in each seed, got {0:"),
        ("level('merged-rfs', 'kmeans-rfs', 'glyphs')", "merged-rfs is level with kmeans-rfs on glyphs"),
        ("best('frn', matrix.systems, 'glyphs')", "frn is the best of .* on glyphs, 1-shot, got r2d2"),
        ("more(trained('glyphs', 's2m2', 1), trained('glyphs', 'rfs', 1))", ".*'s2m2'.* is ahead of .*'rfs'"),
        ("apart('glyphs', 'even', 'protonet', 50, behind=False)", "protonet is ahead of MeLa on glyphs"),
        ("row('variants', data='glyphs')", "studies/results/variants has one row .*, got . rows"),
        ("require(1 > 2, 'one is more')", "one is more, got other results; correct the words"),
    ],
)
def test_what_the_results_contradict_is_refused(call: str, problem: str, tmp_path: Path, figures: Figures) -> None:
    is_refused(f"{{{{ {call} }}}}", f"expected that {problem}", tmp_path, figures)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("{{ mean('nothing', 'glyphs') }}", "expected nothing measured on glyphs, 1-shot, found none; run"),
        ("{{ nothing }}", "UndefinedError.*'nothing' is undefined"),
        ("{{ mean('merged-rfs') }}", "TypeError.* missing 1 required positional argument: 'data'"),
        ("{% if %}", "TemplateSyntaxError"),
        ("Trained ten times as long it has 97.3.", "expected no figure typed by hand, got 97.3; compute it"),
    ],
)
def test_mistakes_in_a_template_are_told_in_a_line(words: str, problem: str, tmp_path: Path, figures: Figures) -> None:
    is_refused(words, problem, tmp_path, figures)


def is_refused(words: str, problem: str, folder: Path, figures: Figures) -> None:
    (folder / "README.md.jinja").write_text(f"# MeLa\n\n{words}\n", encoding="utf-8")
    with pytest.raises(MelaError, match=f"README.md.jinja: line 3: {problem}"):
        rendered("README.md", figures, folder)


@pytest.mark.parametrize("data", Matrix.read(ROOT / "benchmark/params.yaml").data)
def test_experiments_are_those_of_the_presets(data: str) -> None:
    """But for the number of test tasks, and what only methods beside MeLa need."""
    yaml = YAML(typ="safe")
    preset = yaml.load((ROOT / f"presets/{PRESETS[data]}.yaml").read_text(encoding="utf-8"))
    own = yaml.load((ROOT / f"benchmark/data/{data}.yaml").read_text(encoding="utf-8"))
    for block in ("methods", "tuning", "rates"):
        del own[block]
    if data == "glyphs":
        assert (preset["tasks"].pop("test"), own["tasks"].pop("test")) == (600, 1000)
        assert (preset["evaluate"].pop("support_copies"), own["evaluate"].pop("support_copies")) == (1, 5)
    assert not any(preset.pop("rounds").values())
    assert own == preset
    assert preset["use"] == "merged"
    page = (ROOT / "docs/results/benchmarks.md").read_text(encoding="utf-8")
    results = page.partition("\n## Accuracy\n")[2].partition("\n## ")[0]
    assert f"`{PRESETS[data]}`" in results
