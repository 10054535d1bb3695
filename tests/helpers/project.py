"""The project's folders, the parameters of a tiny run, and how its stages are run in this process."""

from importlib import import_module
from pathlib import Path
from textwrap import dedent

from mela.params import LABELS, ROUNDS
from studies.clones import change as change

ROOT = Path(__file__).parents[2]
TINY = {
    "data.images_per_class": 20,
    "data.image_size": 16,
    "tasks.train": 80,
    "tasks.val": 4,
    "tasks.test": 12,
    "model.width": 8,
    "augment.crop_padding": 1,
    "augment.flip": True,
    "augment.jitter": 0.2,
    "embed.epochs": 2,
    "embed.tasks_per_epoch": 20,
    "embed.milestones": [1],
    "labeler.n_clusters": 120,
    "labeler.q": 6.5,
    "kmeans.n_clusters": 20,
    "pretrain.epochs": 2,
    "pretrain.milestones": [1],
    "evaluate.support_copies": 2,
    "report.map_classes": 5,
    "report.map_images": 6,
    "report.usage": False,
    "runtime.device": "cpu",
}
OF_PEOPLE = {
    "data.name": "tasks",
    "compare.pruned": False,
    "compare.oracle": False,
    "data.root": "mine",
    "tasks.shots": 2,
    "embed.tasks_per_epoch": None,
    "embed.epochs": 12,
    "embed.milestones": [8],
    "labeler.n_clusters": 12,
    "kmeans.n_clusters": 6,
    "evaluate.shots": [1],
}
STAGE_NAMES = [
    "images",
    "names",
    "manifest",
    "corrections",
    "embed",
    "extract",
    "round",
    "label_merged",
    "label",
    "assign",
    "label_kmeans",
    "label_oracle",
    "score_labels",
    "pretrain",
    "evaluate",
    "confusions",
    "map",
    "report",
]
# the same, with the cells of the one that has such
OF_STAGE = {"round": ROUNDS, "pretrain": LABELS}
CELLS = [cell for name in STAGE_NAMES for cell in ([f"{name}@{kind}" for kind in OF_STAGE.get(name, ())] or [name])]


def stage_words(stage: str) -> list[str]:
    """Return what Python is called with to run a stage, or a cell such as ``pretrain@merged``."""
    script, _, cell = stage.partition("@")
    return ["-m", f"stages.{script}", *([cell] if cell else [])]


def run_stages(*names: str) -> None:
    """Run stages in this process, in the current directory; all of them when none is named.

    `pretrain@pruned` is one cell of a stage that has one for each kind of labels, and `pretrain` is all of them. So it
    is with `round`.
    """
    for name in names or STAGE_NAMES:
        script, _, cell = name.partition("@")
        main = import_module(f"stages.{script}").main
        if script in OF_STAGE:
            for kind in [cell] if cell else OF_STAGE[script]:
                main(kind)
        else:
            main()


def write(path: Path, text: str) -> None:
    """Write a text that is indented in the test, into a folder that may be new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")


def edit(path: Path, old: str, new: str) -> None:
    """Change what a file says once."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (path, old)
    path.write_text(text.replace(old, new), encoding="utf-8")
