"""The blocks of code of the documentation, and who runs each of them.

A block that is not told of here makes tests/docs/test_pages.py fail. What is told of here is run, or checked, by the
tests that go through these very lists.
"""

import re
import shlex
from functools import cache
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.helpers.project import ROOT

PAGES = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    *(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md")),
]

# pages whose blocks of some languages one test follows from top to bottom
FOLLOWED = {
    "docs/guides/own-data.md": ("tests/docs/test_own_data.py", {"sh", "csv"}),
    "docs/guides/reviewing-labels.md": ("tests/docs/test_reviewing_labels.py", {"csv", "python"}),
    "docs/guides/own-embedding.md": ("tests/docs/test_own_embedding.py", {"sh", "python"}),
    "docs/guides/using-the-model.md": ("tests/docs/test_examples.py", {"bash", "python"}),
    "docs/guides/tutorial.md": ("tests/dvc/test_pipeline.py", {"sh"}),
    "docs/guides/adding-a-method.md": ("tests/docs/test_adding_a_method.py", {"python", "diff"}),
    "docs/guides/adding-labels-networks-data.md": (
        "tests/docs/test_adding_labels_networks_data.py",
        {"sh", "python", "diff"},
    ),
    "docs/results/methods.md": ("tests/benchmark/test_own_data.py", {"diff"}),
    "docs/guides/teams.md": ("tests/docs/test_teams.py", {"sh", "yaml"}),
    # made from the commands themselves
    "docs/reference/commands.md": ("tests/docs/test_pages.py", {"console"}),
}
# pages whose Python tests/docs/test_examples.py runs, with the number of blocks
PYTHON = {"README.md": 2, "docs/guides/faq.md": 1, "docs/results/methods.md": 1, "docs/method/labels.md": 1}
# languages of which tests/docs/test_pages.py checks the content
CHECKED = {"yaml", "mermaid", "bibtex"}
# nothing that could be run
PROSE = {"text"}

# commands that tests/docs/test_examples.py runs after the pipeline
MELA = {
    "mela summary",
    "mela preset glyphs",
    "mela preset cifar_fs",
    "mela preset cifar_fs_conv4",
    "mela preset cifar_fs_short",
    "mela preset mini_imagenet_short",
    "mela preset metadataset_cpu",
    "mela preset cifar_fs_cpu",
    "mela init ../my-photos",
    "mela data check data/raw/mine --write params.yaml",
}
# commands that tests/dvc/test_pipeline.py runs among those of the tutorial, before its experiment is undone
DVC = {"dvc repro", "dvc plots diff"}
# commands that tests/benchmark/test_own_data.py runs
BENCHMARK = [
    "mela data check data/raw/mine --preset benchmark/data/glyphs.yaml --write benchmark/data/mine.yaml",
    "dvc --cd benchmark repro --force images@mine",
    "dvc --cd benchmark repro tuned@feat-merged-rfs-mine-0",
    "mela predict --support data/raw/new/examples --query data/raw/new/images --model "
    "benchmark/runs/mine/seed0/merged-rfs-feat/model.safetensors",
]
# commands that tests/benchmark/test_pairs.py runs
PAIRS = {"python -m benchmark.report.pairs merged-rfs-feat oracle-rfs-feat"}
# commands that tests/benchmark/test_matrix.py runs
MATRIX = {"python -m benchmark.matrix"}
# commands that tests/stages/code_hashes/test_relock.py runs
RELOCK = ["python -m stages.code_hashes.relock main --moved mela.runtime.console=mela.runtime.messages"]
RUN = {*MELA, *DVC, *BENCHMARK, *PAIRS, *MATRIX, *RELOCK}
# commands that nothing runs, and why; tests/docs/test_pages.py checks that they would be understood
INSTALLS = "installs packages, or takes minutes and is what runs the tests itself"
SHELL = "changes the shell that it is typed into"
NETWORK = "needs a network"
TRAINS = "a training of minutes to hours; tests/dvc/test_pipeline.py runs the tutorial's, and others like it"
BENCH = "a benchmark of minutes to hours; tests/studies/test_labels_and_speed.py has its parts"
MACHINES = "needs several machines; tests/runtime/test_team.py has several processes"
SERVES = "it ends with Ctrl-C; tests/review/test_in_browser.py starts it"
CELL = "a training of minutes; tests/benchmark/test_cells.py runs it on tiny tasks"
ITSELF = "one of the tests"
NOT_RUN = {
    "make repro": INSTALLS,
    "make test": INSTALLS,
    "make test-fast": INSTALLS,
    "make coverage": INSTALLS,
    "make setup": INSTALLS,
    "make check": INSTALLS,
    "pre-commit install": INSTALLS,
    "make docs": INSTALLS,
    "make benchmark": TRAINS,
    "make tables": INSTALLS,
    "dvc --cd benchmark repro test_tasks@protonet-glyphs-0": CELL,
    "dvc --cd benchmark repro test_tasks@nearest-glyphs-0": CELL,
    **{f"dvc --cd benchmark repro test_initial@{data}-0": CELL for data in ("glyphs", "omniglot", "cifar_fs", "fc100")},
    "source .venv/bin/activate": SHELL,
    "cd ../my-photos": SHELL,
    "mela review": SERVES,
    "mela download cifar100": NETWORK,
    "uv pip compile --universal --extra dev --python-version 3.11 pyproject.toml -o requirements.txt --no-header "
    "--no-annotate": NETWORK,
    "dvc exp run -S labeler.q=5.5": TRAINS,
    "dvc exp run -S labeler.guard=false": TRAINS,
    "dvc exp run -S pretrain.epochs=20": TRAINS,
    "dvc exp run -S embed.epochs=2 -S 'embed.milestones=[1]'": TRAINS,
    "dvc exp run -S compare.kmeans=true": TRAINS,
    "dvc exp run --name kmeans -S compare.kmeans=true": TRAINS,
    "dvc exp run -S tasks.replacement=false -S tasks.train=null -S embed.tasks_per_epoch=null": TRAINS,
    "dvc exp run --queue -S labeler.q=4.5,5.5,6.5": TRAINS,
    "dvc queue start": TRAINS,
    "python -m studies labels.runs_worth": BENCH,
    "python -m studies labels.conv4_worth": BENCH,
    "python -m studies labels.mixed_worth": BENCH,
    "python -m studies labels.frozen_run": BENCH,
    "python -m studies labels.mixed_labels": BENCH,
    "python -m studies data.real --data mini_imagenet --root mini_imagenet=...": BENCH,
    "python -m studies training.task_methods": BENCH,
    "python -m studies training.task_methods --seed 0 --share 1 --method protonet --rate adam:0.003": BENCH,
    "python -m studies training.task_methods --data metadataset_cpu": BENCH,
    "python -m studies training.at_test_time": BENCH,
    "python -m studies labels.q_sweep": BENCH,
    "python -m studies labels.grid --root omniglot=... --root cifar_fs=... --root fc100=...": BENCH,
    "python -m studies labels.tables": BENCH,
    "python -m studies labels.people --data glyphs_people --seeds 2": BENCH,
    "python -m studies labels.people --data omniglot_people --share 1 --seeds 3 --root data/raw/omniglot": BENCH,
    "python -m studies labels.people --data omniglot_on_paper --share 1 --seeds 1 --root data/raw/omniglot": BENCH,
    "python -m studies labels.people --data cifar_fs_people --share 0.75 --seeds 1 --root data/raw/cifar100": BENCH,
    "python -m studies labels.people --data flowers_people --share 1 --seeds 1 --root data/raw/vgg_flower": BENCH,
    "python -m studies labels.objects --seeds 1": BENCH,
    "python -m studies labels.people --data fc100_people --seeds 1 --root data/raw/cifar100": BENCH,
    "python -m studies labels.rivals --data cifar_fs_people --share 0.75 --seeds 1": BENCH,
    "python -m studies labels.sources --data glyphs_people --people 10": BENCH,
    "python -m studies labels.sources --data cifar_fs_people --people 10 --root data/raw/cifar100": BENCH,
    "python -m studies labels.frozen --data cifar_fs_people --share 0.75 --seeds 1": BENCH,
    "python -m studies labels.worth --data cifar_fs": BENCH,
    "python -m studies labels.answers": BENCH,
    "python -m studies labels.mixed_levels --root FOLDER --seed 0": BENCH,
    "python -m studies labels.weights": BENCH,
    "torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint HOST:29500 "
    "-m stages.pretrain merged": MACHINES,
    "python -m pytest tests/stages/code_hashes/test_pipeline_definition.py": ITSELF,
    "python -m pytest tests/benchmark/test_benchmark_definition.py tests/methods/test_task_methods.py": ITSELF,
}


class Block(NamedTuple):
    """A block of code; `line` is where it begins, `before` is the line of text above it."""

    page: str
    line: int
    language: str
    content: str
    before: str


@cache
def tokens(page: str) -> list[Token]:
    """A page as CommonMark with tables has it."""
    return MarkdownIt("commonmark").enable("table").parse((ROOT / page).read_text(encoding="utf-8"))


@cache
def blocks(page: str) -> list[Block]:
    """All blocks of code of a page; those that are only indented have no language."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    found = []
    for token in tokens(page):
        if token.type in ("fence", "code_block"):
            assert token.map is not None
            start = token.map[0]
            before = next((line for line in reversed(lines[:start]) if line.strip()), "")
            found.append(Block(page, start + 1, token.info, token.content, before))
    return found


def commands(block: Block) -> list[str]:
    """The commands of a block, one by one, without comments."""
    found: list[list[str]] = []
    for line in block.content.replace("\\\n", "").splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=";&")
        words.whitespace_split = True
        found.append([])
        for word in words:
            if re.fullmatch("[;&]+", word):
                found.append([])
            else:
                found[-1].append(word)
    return [shlex.join(words) for words in found if words]


def all_blocks() -> list[Block]:
    """Those of all pages."""
    return [block for page in PAGES for block in blocks(page)]


def write_files(page: str, folder: Path) -> list[str]:
    """Write the files of a page, whose names are right before their blocks, into a folder; their names."""
    names = []
    for block in blocks(page):
        named = re.search(r"`([\w/]+\.py)`:$", block.before)
        if named and block.language == "python":
            (folder / named[1]).write_text(block.content, encoding="utf-8")
            names.append(named[1])
    return names


def apply(diff: str, folder: Path) -> str:
    """Make the changes of one block, each where the lines that stay are found; the name of the file."""
    name, *hunks = re.split(r"^@@\n", diff, flags=re.MULTILINE)
    path = folder / name.removeprefix("--- ").strip()
    text = path.read_text(encoding="utf-8")
    for hunk in hunks:
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -").rstrip("\n")
        new = "".join(line[1:] for line in lines if line[0] in " +").rstrip("\n")
        assert text.count(old) == 1, f"{path}: expected once what the page says, found {text.count(old)} times: {old!r}"
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    return path.name
