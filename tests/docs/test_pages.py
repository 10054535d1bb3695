"""The documentation: every block of code is run or checked by a test, links lead somewhere, and the site is built."""

import csv
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from html.parser import HTMLParser
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from shutil import which
from typing import Any

import pandas as pd
import pytest
import typer
from ruamel.yaml import YAML

from mela.cli.main import app
from mela.params import BLOCKS
from studies.grid import command as study
from tests.helpers import docs
from tests.helpers.docs import PAGES, Block, all_blocks, blocks, commands, tokens
from tests.helpers.pipeline import STAGES, listed
from tests.helpers.project import ROOT

PARAMS: dict[str, Any] = YAML(typ="safe").load((ROOT / "params.yaml").read_text(encoding="utf-8"))
PARAMETERS = [block for block in all_blocks() if block.language == "yaml" and block.page not in docs.FOLLOWED]
TAGS = ("li", "tr", "pre", "h2", "h3")
# beginnings of the names of pages that may have sentences of more than 30 words; others may not
LONG_SENTENCES = ("CHANGELOG", "docs/results/systems", "docs/reference", "docs/project")
PLAIN = [page for page in PAGES if not page.startswith(LONG_SENTENCES)]


def where(block: Block) -> str:
    return f"{block.page}:{block.line}"


def untold(block: Block) -> str | None:
    """What is wrong with a block that no test runs or checks."""
    if not block.language:
        return "an indented block, or one without a language; put it between ``` and say what it is"
    _, followed = docs.FOLLOWED.get(block.page, ("", set()))
    if block.language in followed | docs.CHECKED | docs.PROSE:
        return None
    if block.language == "python":
        return None if block.page in docs.PYTHON else "nothing runs this Python; see tests/helpers/docs.py"
    if block.language == "sh":
        known = {*docs.RUN, *docs.NOT_RUN, *shell_commands(docs.FOLLOWED)}
        new = [command for command in commands(block) if command not in known]
        return f"nothing runs {new}; see tests/helpers/docs.py" if new else None
    return f"nothing is known of the language {block.language!r}; see tests/helpers/docs.py"


def shell_commands(pages: Iterable[str]) -> set[str]:
    of_shell = (block for page in pages for block in blocks(page) if block.language == "sh")
    return {command for block in of_shell for command in commands(block)}


def test_every_block_is_run_or_checked() -> None:
    wrong = [f"{where(block)}: {problem}" for block in all_blocks() if (problem := untold(block))]
    assert not wrong, "\n".join(wrong)
    assert len(all_blocks()) > 50


@pytest.mark.parametrize(
    ("page", "language", "content", "problem"),
    [
        ("README.md", "", "make repro\n", "an indented block"),
        ("README.md", "sh", "dvc exp run -S labeler.q=7\n", "nothing runs ['dvc exp run -S labeler.q=7']"),
        ("docs/guides/faq.md", "sh", "dvc repro && rm -r data # really\n", "nothing runs ['rm -r data']"),
        ("docs/results/scale.md", "python", "1 / 0\n", "nothing runs this Python"),
        ("docs/guides/faq.md", "julia", "1\n", "nothing is known of the language 'julia'"),
        ("docs/guides/teams.md", "python", "1\n", "nothing runs this Python"),
    ],
)
def test_a_new_block_would_be_noticed(page: str, language: str, content: str, problem: str) -> None:
    assert str(untold(Block(page, 1, language, content, ""))).startswith(problem)


def test_what_is_told_of_is_there() -> None:
    """No command or page is listed that the documentation has not, and every test that is named exists."""
    assert {*docs.RUN, *docs.NOT_RUN} - shell_commands(PAGES) == set()
    assert {page: sum(block.language == "python" for block in blocks(page)) for page in docs.PYTHON} == docs.PYTHON
    for page, (test, languages) in docs.FOLLOWED.items():
        assert languages <= {block.language for block in blocks(page)}
        assert Path(page).name in (ROOT / test).read_text(encoding="utf-8"), f"{test} says nothing of {page}"


def understand(command: str) -> None:
    """Raise if a program would not understand its arguments, or a parameter is unknown or out of range."""
    match shlex.split(command):
        case ["make", *arguments]:
            subprocess.run(["make", "--dry-run", *arguments], cwd=ROOT, check=True, capture_output=True)
        case ["dvc", *arguments]:
            understand_dvc(arguments)
        case ["python", "-m", "studies", name, *arguments]:
            single = typer.Typer()
            single.command()(study(name))
            typer.main.get_command(single).make_context("bench", arguments)
        case ["cd", folder]:
            assert not Path(folder).is_absolute()
        case ["mela", *arguments]:
            context = typer.main.get_command(app).make_context("mela", arguments)
            name, found, rest = context.command.resolve_command(context, arguments)  # type: ignore[attr-defined]
            assert found is not None, name
            found.make_context(name, rest, parent=context)
        case ["torchrun", *arguments]:
            torchrun = import_module("torch.distributed.run").get_args_parser()
            assert find_spec(torchrun.parse_args(arguments).training_script), command
        case ["python", "-m", "pytest", *names]:
            assert all((ROOT / name).is_file() for name in names), command
        case ["source", name]:
            assert f"{name.partition('/')[0]}/.ready" in (ROOT / "Makefile").read_text(encoding="utf-8")
        case ["uv", *arguments]:
            understand_uv(arguments)
        case ["pre-commit", "install"]:
            understand_hooks(ROOT / ".pre-commit-config.yaml")
        case _:
            raise ValueError(f"nothing is known of {command}")


def understand_dvc(arguments: list[str]) -> None:
    from dvc.cli.parser import get_main_parser

    parsed = get_main_parser().parse_args(arguments)
    for assignment in getattr(parsed, "set_param", None) or []:
        key, _, text = assignment.partition("=")
        block, _, name = key.partition(".")
        kind = next(kind for kind in BLOCKS if kind.block == block)
        # what has to go with a value that is allowed
        others = {"epochs": {"milestones": []}, "milestones": {"epochs": 2}}.get(name, {})
        if key == "tasks.train":
            others = {"replacement": False}
        for value in [text] if text.startswith("[") else text.split(","):
            kind.model_validate(PARAMS[block] | others | {name: YAML(typ="safe").load(value)}, strict=True)


def understand_uv(arguments: list[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert arguments[arguments.index("--extra") + 1] in project["optional-dependencies"]
    assert (ROOT / arguments[arguments.index("-o") + 1]).is_file()
    uv = [sys.executable, "-m", "uv", *arguments[:2], "--help"]
    help_text = subprocess.run(uv, check=True, capture_output=True, text=True).stdout
    for option in (word for word in arguments if word.startswith("-")):
        assert re.search(rf"(^|\s){option}\b", help_text), option


def understand_hooks(config: Path) -> None:
    subprocess.run([sys.executable, "-m", "pre_commit", "validate-config", config], check=True, capture_output=True)
    hooks = [hook for repo in YAML(typ="safe").load(config)["repos"] for hook in repo["hooks"]]
    for hook in hooks:
        program = shlex.split(hook["entry"])[0]
        assert which(program.removeprefix(".venv/bin/"), path=f"{Path(sys.executable).parent}:{os.defpath}"), program


@pytest.mark.parametrize("command", docs.NOT_RUN)
def test_what_is_not_run_would_be_understood(command: str) -> None:
    understand(command)


@pytest.mark.parametrize(
    "command",
    [
        "make nothing",
        "dvc exp runn",
        "dvc exp run -S labeler.qq=5.5",
        "dvc exp run -S labelers.q=5.5",
        "dvc exp run -S labeler.q=-1",
        "dvc exp run -S compare.others=true",
        "dvc exp run --queue -S labeler.q=4.5,x",
        "python -m studies.nothing",
        "python -m studies labels.tables --nothing",
        "python -m studies labels.nothing",
        "python -m studies labels.weights --nothing 1",
        "python -m studies labels.grid --seeds few",
        "mela downloads cifar100",
        "mela download",
        "torchrun --nodes 2 -m stages.pretrain",
        "torchrun -m stages.nothing",
        "python -m pytest tests/test_nothing.py",
        "uv pip compile --extra others -o requirements.txt",
        "uv pip compile --extra dev --no-heading -o requirements.txt",
    ],
)
def test_a_wrong_command_would_be_noticed(command: str) -> None:
    with pytest.raises((Exception, SystemExit)):
        understand(command)


@pytest.mark.parametrize("block", PARAMETERS, ids=where)
def test_parameters_in_blocks_exist(block: Block) -> None:
    for name, values in YAML(typ="safe").load(block.content).items():
        kind = next(kind for kind in BLOCKS if kind.block == name)
        kind.model_validate(PARAMS[name] | values, strict=True)
        assert set(values) <= set(kind.model_fields)


@pytest.mark.parametrize("block", [block for block in all_blocks() if block.language == "csv"], ids=where)
def test_tables_have_as_many_cells_in_each_row(block: Block) -> None:
    assert len({len(row) for row in csv.reader(block.content.splitlines())}) == 1


@pytest.fixture
def diagram(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "docs/_tools")
    return import_module("diagram")


def test_the_diagram_is_the_pipeline(diagram: Any) -> None:
    """Each arrow is a file that one stage writes and the other reads, and no stage is missing."""
    (block,) = [block for block in all_blocks() if block.language == "mermaid"]
    texts, edges = diagram.read(block.content)
    assert set(texts) == {*STAGES, "truth"}
    writes = {stage: set(listed(stage, "outs", "metrics", "plots")) for stage in STAGES}
    reads = {stage: set(listed(stage, "deps")) for stage in STAGES}
    writes["truth"] = reads["truth"] = {"data/truth.parquet"}
    for a, b, _ in edges:
        assert writes[a] & reads[b], f"{a} --> {b}: nothing is passed on"
    assert len(edges) == len(set(edges)) > len(STAGES)


def test_the_diagram_has_room_for_all_boxes(diagram: Any) -> None:
    drawn = diagram.draw("flowchart LR\n " + " --> ".join(diagram.PLACES))
    width, height = map(float, re.findall(r'viewBox="0 0 (\S+) (\S+)"', drawn)[0])
    boxes = re.findall(r'<rect class="\w+" x="(\S+)" y="(\S+)" width="(\S+)" height="(\S+)"', drawn)
    assert len(boxes) == len(diagram.PLACES)
    for x, y, wide, high in (map(float, box) for box in boxes):
        assert x >= 0
        assert y >= 0
        assert x + wide <= width
        assert y + high <= height


def test_a_diagram_with_an_unknown_box_is_refused(diagram: Any) -> None:
    with pytest.raises(ValueError, match="expected a place for each box, got none for other; add it to PLACES"):
        diagram.draw("flowchart LR\n images --> other\n")
    with pytest.raises(ValueError, match="expected a box such as"):
        diagram.draw("flowchart LR\n images --> a b\n")


def headings(page: str) -> set[str]:
    """Anchors of a page, as code hosts make them."""
    found: dict[str, int] = {}
    anchors = set()
    for opened, inline in pairwise(tokens(page)):
        if opened.type == "heading_open":
            text = "".join(child.content for child in inline.children or [])
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            anchors.add(f"{slug}-{found[slug]}" if slug in found else slug)
            found[slug] = found.get(slug, 0) + 1
    return anchors


def broken_links(page: str, hrefs: list[str]) -> list[str]:
    """Relative links of a page that lead nowhere."""
    broken = []
    for href in hrefs:
        if re.match("[a-z]+:", href):
            continue
        path, _, anchor = href.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        name = target.resolve().relative_to(ROOT).as_posix()
        if not target.exists() or (anchor and anchor not in headings(name)):
            broken.append(href)
    return broken


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    children = [child for token in tokens(page) for child in token.children or []]
    links = [str(child.attrs["href"]) for child in children if child.type == "link_open"]
    images = [str(child.attrs["src"]) for child in children if child.type == "image"]
    assert broken_links(page, links + images) == []
    without_text = [child for child in children if child.type == "image" and not child.content]
    assert not without_text, "for those who cannot see them"


def split_sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.:;!?])\**\s", text)


def long_sentences(page: str, most: int = 30) -> list[str]:
    """Sentences of a page's text, without blocks of code and tables, that have more words than `most`."""
    texts = [inline.content for opened, inline in pairwise(tokens(page)) if opened.type == "paragraph_open"]
    plain = [re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text) for text in texts]
    sentences = [sentence for text in plain for sentence in split_sentences(text)]
    return [sentence for sentence in sentences if len(sentence.split()) > most]


@pytest.mark.parametrize("page", PLAIN)
def test_sentences_are_short(page: str) -> None:
    assert long_sentences(page) == []


def claims_of_new_classes(text: str) -> list[str]:
    """Sentences which say that the classes of new tasks are new: where tasks are split, not classes, nobody knows."""
    sentences = split_sentences(" ".join(text.split()))
    return [sentence for sentence in sentences if "new task" in sentence and "never seen" in sentence]


@pytest.mark.parametrize("page", PLAIN)
def test_classes_of_new_tasks_are_not_said_to_be_new(page: str) -> None:
    assert claims_of_new_classes((ROOT / page).read_text(encoding="utf-8")) == []


def long_lines(page: str, most: int = 120) -> list[str]:
    """Lines of a page, without blocks of code and tables, that have more characters than `most`."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    for token in tokens(page):
        if token.type in ("fence", "code_block", "table_open") and token.map:
            start, end = token.map
            lines[start:end] = [""] * (end - start)
    return [line for line in lines if len(line) > most]


@pytest.mark.parametrize("page", PLAIN)
def test_lines_are_short(page: str) -> None:
    assert long_lines(page) == []


def test_long_lines_and_sentences_would_be_noticed() -> None:
    assert len(claims_of_new_classes("It measures new tasks, of classes\nthat it has never seen.")) == 1
    assert long_lines("docs/results/methods.md", most=40)
    assert long_sentences("docs/results/methods.md", most=10)


def test_a_broken_link_would_be_noticed() -> None:
    broken = ["nothing.md", "../method/labels.md#nothing", "#nothing"]
    good = ["../method/labels.md", "../method/labels.md#soft-labels", "../../README.md#results"]
    assert broken_links("docs/guides/faq.md", good + broken) == broken


def test_the_commands_page_is_what_the_program_says(tmp_path: Path) -> None:
    if f"typer=={version('typer')}" not in (ROOT / "requirements.txt").read_text().split():
        pytest.skip("the page is written with the Typer of requirements.txt; others name arguments differently")
    make = ["typer", "mela.cli.main", "utils", "docs", "--name", "mela", "--title", "Commands", "--output"]
    made = tmp_path / "commands.md"
    subprocess.run([sys.executable, "-m", *make, str(made)], cwd=ROOT, check=True, capture_output=True)
    same = made.read_bytes() == (ROOT / "docs/reference/commands.md").read_bytes()
    assert same, f"the page is not of this program; run `{' '.join(make)} docs/reference/commands.md`"


def test_the_citation_is_that_of_the_paper_and_of_this_version() -> None:
    citation = YAML(typ="safe").load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (last, *_) = re.findall(r"^## (\S+)", changes, flags=re.MULTILINE)
    assert (citation["version"], citation["license"]) == (last, project["license"])
    paper = citation["preferred-citation"]
    (block,) = [block for block in all_blocks() if block.language == "bibtex"]
    fields = dict(re.findall(r"^  (\w+) = \{(.*)\},?$", block.content, flags=re.MULTILINE))
    names = [f"{author['family-names']}, {author['given-names']}" for author in paper["authors"]]
    assert fields["author"] == " and ".join(names)
    assert (fields["title"], fields["year"]) == (paper["title"], str(paper["year"]))
    number = paper["identifiers"][0]["value"].removeprefix("arXiv:")
    assert number in fields["journal"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert paper["title"] in readme
    assert paper["url"] in readme
    assert paper["url"].endswith(number)


def test_our_figures_beside_the_papers_are_those_of_other_pages() -> None:
    """The page on the paper invents nothing."""
    pages = ("README.md", "docs/results/benchmarks.md", "docs/method/labels.md", "docs/results/systems.md")
    known = " ".join((ROOT / page).read_text(encoding="utf-8") for page in pages).replace("±", " ± ").replace("  ", " ")
    spans = re.findall(r"([\d.]+)\u2013([\d.]+)%", known)
    known += " ".join(f"{float(low):.0f} to {float(high):.0f}" for low, high in spans)
    # runs on a GPU, which stand on this page alone
    measured = pd.read_csv(ROOT / "studies/results/resnet12.csv")
    for column in [name for name in measured if f"{name}_ci95" in measured]:
        form = "{:+z.1f}" if "less" in column else "{:.1f}"
        known += " ".join(measured[column].map(form.format) + measured[f"{column}_ci95"].map(" ± {:.1f} ".format))
    # qualities of labels, of one run or from the smallest to the largest of three seeds
    grid = pd.read_csv(ROOT / "studies/results/label_grid.csv").query("seed < 3")
    single = pd.read_csv(ROOT / "studies/results/resnet12_labels.csv")
    for column in ("tasks_clustered", "accuracy"):
        found = grid.groupby(["data", "tasks", "embedding", "labeler"])[column]
        spans = " ".join(found.min().map("{:.1f}".format) + found.max().map(" to {:.1f}".format))
        known += spans.replace("100.0", "100")
        known += " ".join(single[column].map(" {:.1f} ".format))
    rows = re.findall(r"^\| ours(.*)$", (ROOT / "docs/method/paper.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    figures = [figure for row in rows for figure in re.findall(r"[-\d.]+ ± [\d.]+|[\d.]+ to [\d.]+|\d+\.\d", row)]
    assert len(figures) > 30
    assert [figure for figure in figures if figure not in known] == []


class Counter(HTMLParser):
    """How often some tags occur in the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside |= tag == "article"
        if self.inside:
            self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.inside &= tag != "article"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does; a broken link or a page that is in no menu ends that."""
    folder = tmp_path_factory.mktemp("site")
    mkdocs = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(mkdocs, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def test_make_builds_it_strictly() -> None:
    """Told to be quiet, mkdocs counts no warnings, and strictness is without effect."""
    (line,) = re.findall(r"^\t.*mkdocs build.*$", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert "--strict" in line
    assert not re.search(r"\s(-q|--quiet)\b", line)


@pytest.mark.slow
def test_the_site_has_all_pages_and_no_programs(site: Path) -> None:
    made = {path.relative_to(site) for path in site.rglob("*.html")}
    assert {Path(page).relative_to("docs").with_suffix(".html") for page in PAGES if page.startswith("docs/")} <= made
    assert {Path("project/changelog.html"), Path("project/contributing.html")} <= made
    assert not list(site.rglob("*.py*"))


def test_the_site_needs_no_network(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|source)[^>]* src=\"?(\S+)", text)
        loaded += re.findall(r"<link[^>]* rel=\"?(?:stylesheet|preload|preconnect|icon)[^>]* href=\"?(\S+)", text)
        assert loaded
        assert not [source for source in loaded if re.match("https?:|//", source)], page
        # Material would fetch a program for it
        assert 'class="mermaid"' not in text, page


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.startswith("docs/") and page != "docs/reference/python.md"]
)
def test_pages_look_the_same_on_the_site_and_on_code_hosts(site: Path, page: str) -> None:
    """Python-Markdown makes one paragraph of what CommonMark takes for a list, unless it is written with care."""
    shown = Counter()
    shown.feed((site / Path(page).relative_to("docs").with_suffix(".html")).read_text(encoding="utf-8"))
    expected = [token.tag for token in tokens(page) if token.nesting >= 0]
    expected += ["pre" for token in tokens(page) if token.type in ("fence", "code_block")]
    text = (ROOT / page).read_text(encoding="utf-8")
    expected += ["pre"] * text.count("<!-- file: ")
    if "<!-- README: " not in text:
        assert {tag: shown.tags.count(tag) for tag in TAGS} == {tag: expected.count(tag) for tag in TAGS}
    else:
        assert all(shown.tags.count(tag) >= expected.count(tag) for tag in TAGS)


def test_sections_of_the_readme_formulas_and_docstrings_are_shown(site: Path) -> None:
    benchmarks = (site / "results/benchmarks.html").read_text(encoding="utf-8")
    assert "omniglot_cpu" in benchmarks
    assert re.search(r"\d\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}\d", benchmarks), "an interval stays on one line"
    assert '<figure class="pipeline">' in (site / "method/how-it-works.html").read_text(encoding="utf-8")
    assert "checkpoint_seconds" in (site / "reference/parameters.html").read_text(encoding="utf-8")
    reference = (site / "reference/python.html").read_text(encoding="utf-8")
    assert "<math" in reference
    assert ":math:" not in re.sub("<[^>]*>", "", reference)
    assert ".. math::" not in reference
    for name in (
        "FewShotClassifier",
        "LearnLabeler",
        "MergeLabeler",
        "learners.ridge.ridge",
        "evaluation.intervals.Interval",
    ):
        assert f'id="mela.{name}"' in reference, name
