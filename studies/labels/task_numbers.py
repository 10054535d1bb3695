"""When inferring labels pays: accuracy against the number of training tasks, for even and for uneven tasks.

Even tasks have 5 ways and 5 shots, uneven ones 3 to 8 ways and 1 to 10 shots of each class; the test tasks are the
same 5-way tasks for all. Training has the same number of steps whatever the number of tasks.
``python -m studies.labels.task_numbers`` goes on where it stopped, and writes studies/results/task_numbers.csv and for
each data set docs/images/task-numbers-<data>.png.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
import typer
from matplotlib.figure import Figure

from benchmark.comparison import read_results, summarize_systems
from benchmark.places import preset
from benchmark.report.charts import mark, scale
from benchmark.stages.common import own_schedule
from benchmark.systems import title
from mela.data.augmentation import Augmentation
from mela.data.episodes import Episodes
from mela.data.sampling import draw_split
from mela.evaluation.label_scores import majority_accuracy
from mela.evaluation.rules import own_rule
from mela.io import schemas, store
from mela.io.atomic import replacing
from mela.labeling.image_labels import label_images
from mela.labeling.labeler import LearnLabeler
from mela.labeling.task_classes import manifest_samples
from mela.learners.base import Learner
from mela.methods import find_method
from mela.models.backbones import Backbone, build_backbone
from mela.models.features import extract_features
from mela.models.files import configure, load_model, save_model
from mela.params import (
    AugmentParams,
    Block,
    DataParams,
    EmbedParams,
    EvaluateParams,
    LabelerParams,
    MethodsParams,
    ModelParams,
    PretrainParams,
    TaskParams,
)
from mela.runtime.seeding import seeded
from mela.training.embeddings import pretrain, train_embedding
from mela.training.loop import Schedule, Training
from mela.training.on_tasks import train_on_tasks
from mela.training.targets import Targets
from studies.cells import lengthened, logistic_accuracies, pack

NUMBERS = [50, 100, 200, 500, 1000, 2000, 5000]
DATA: dict[str, dict[str, Any]] = {"glyphs": {"images_per_class": 100}, "cifar_fs": {}}
WAYS, SHOTS = (3, 8), (1, 10)
STYLES = {
    "merged-rfs": {"fmt": "o-", "color": "#0b5fb4"},
    "oracle-rfs": {"fmt": "^--", "color": "#1b7f3b"},
    "metaoptnet_ridge": {"fmt": "v-.", "color": "#b85c00"},
    "protonet": {"fmt": "D-.", "color": "#d9a066"},
    "initial": {"fmt": "s:", "color": "#6b6b6b"},
}
SYSTEMS = [*STYLES]
METHODS = ["metaoptnet_ridge", "protonet"]
SETTINGS = {"1_shot": "1-shot", "5_shot": "5-shot"}
B = TypeVar("B", bound=Block)
OfTasks = TypeVar("OfTasks", EmbedParams, MethodsParams)
KINDS = {"even": "even tasks: 5 ways, 5 shots", "uneven": "uneven tasks: 3 to 8 ways, 1 to 10 shots"}


def uneven_tasks(classes: dict[str, npt.NDArray[np.int64]], n_tasks: int, queries: int, seed: int) -> pd.DataFrame:
    """Tasks whose ways and shots differ, also within a task; a longer list begins with the shorter one."""
    names, parts = sorted(classes), []
    for task in range(n_tasks):
        generator = np.random.default_rng(np.random.SeedSequence([seed, task]))
        ways = int(generator.integers(WAYS[0], WAYS[1] + 1))
        for label, name in enumerate(generator.choice(names, ways, replace=False)):
            shots = int(generator.integers(SHOTS[0], SHOTS[1] + 1))
            images = generator.choice(classes[str(name)], shots + queries, replace=False)
            roles = ["support"] * shots + ["query"] * queries
            parts.append(pd.DataFrame({"task_id": task, "image_id": images, "local_label": label, "role": roles}))
    return pd.concat(parts, ignore_index=True)


@dataclass(frozen=True, kw_only=True)
class Study:
    """Images and tasks of one kind.

    Attributes
    ----------
    data : str
        One of `DATA`.
    folder : Path
        Of images, tasks and embeddings.
    results : Path
        Of accuracies.
    kind : str
        Of training tasks.
    """

    folder: Path
    results: Path
    kind: str
    data: str

    def block(self, kind: type[B], **changes: Any) -> B:
        """A block of the benchmark's parameters, with changes."""
        return kind.model_validate(kind.read(preset(self.data)).model_dump() | changes)

    def images(self) -> npt.NDArray[np.uint8]:
        """All images, packed; the classes beside them."""
        if not (self.folder / "truth.parquet").exists():
            pack(self.folder, self.block(DataParams, **DATA[self.data]), self.block(TaskParams).shots)
        return store.open_images(self.folder / "images.npy")

    def truth(self, split: str) -> pd.DataFrame:
        """Columns image_id and class of a split."""
        table = pd.read_parquet(self.folder / "truth.parquet")
        return table[table["split"] == split]

    def tasks(self, split: str, count: int) -> pd.DataFrame:
        """The first tasks of a split; test tasks are even."""
        settings, known = self.block(TaskParams, train=max(NUMBERS)), self.truth(split)
        path = self.folder / f"{split}-{self.kind}.parquet"
        if not path.exists():
            if split == "train" and self.kind == "uneven":
                classes = {str(name): rows["image_id"].to_numpy() for name, rows in known.groupby("class")}
                drawn = uneven_tasks(classes, settings.train or 0, settings.queries, settings.seed)
            else:
                drawn = draw_split(known, settings, split)
            with replacing(path) as temporary:
                drawn.to_parquet(temporary)
        drawn = pd.read_parquet(path)
        return drawn[drawn["task_id"] < count]


@dataclass(frozen=True, kw_only=True)
class Point:
    """All systems trained on so many tasks, with one seed: a point of each curve."""

    study: Study
    number: int
    seed: int

    @property
    def results(self) -> Path:
        """Folder of accuracies, as `benchmark.comparison.read_results` finds them."""
        return self.study.results / f"{self.study.kind}-{self.number}" / f"seed{self.seed}"

    def measure(self, system: str) -> pd.DataFrame:
        """Accuracies of all test tasks."""
        images, test = self.study.images(), Episodes(self.study.tasks("test", self.study.block(TaskParams).test))
        head = self.study.block(EvaluateParams)
        if system in METHODS:
            return own_rule(self.learned(system), images, test, head.shots)
        labels = {"merged-rfs": self.inferred_labels, "oracle-rfs": self.true_labels}
        trained = self.pretrained(labels[system]()) if system in labels else self.initial()
        return logistic_accuracies(trained, images, test, head)

    @property
    def augmentation(self) -> Augmentation:
        """Of all trainings."""
        return Augmentation(**self.study.block(AugmentParams).model_dump())

    @cached_property
    def tasks(self) -> Episodes:
        """For training."""
        return Episodes(self.study.tasks("train", self.number))

    @cached_property
    def configuration(self) -> dict[str, Any]:
        """Of the backbone."""
        return configure(self.study.block(ModelParams), self.study.images(), self.tasks.image_ids())

    def initial(self) -> Backbone:
        """The initial embedding; read where it is known."""
        name = f"{self.study.kind}-{self.number}-seed{self.seed}.safetensors"
        path, images = self.study.folder / name, self.study.images()
        if not path.exists():
            backbone = build_backbone(**self.configuration, seed=self.seed)
            settings = self.stretched(self.study.block(EmbedParams))
            train_embedding(
                backbone,
                images,
                self.tasks,
                self.training("embed", Schedule(**settings.schedule())),
                ridge=settings.ridge,
                normalize=settings.normalize,
                tasks_per_epoch=settings.tasks_per_epoch,
            )
            save_model(path, backbone, self.configuration)
        return load_model(path, torch.device("cpu"), images)

    def inferred_labels(self) -> Targets:
        """Labels by merging; how many and how good they are is kept."""
        rows, ids = self.study.tasks("train", self.number), self.tasks.image_ids()
        samples = manifest_samples(rows, ids, extract_features(self.initial(), self.study.images(), ids))
        found = LearnLabeler(q=self.study.block(LabelerParams).q, random_state=self.seed).fit_tasks(samples)
        flat = label_images(found.class_labels_, len(found.cluster_centers_), ids[samples.index], samples.classes)
        true = self.true_labels()
        told: dict[str, float] = {
            "classes": len(found.cluster_centers_),
            "true_classes": true.n_labels,
            "images": len(flat.image_ids),
            "all_images": len(ids),
            "label_accuracy": 100 * majority_accuracy(flat.labels, true.labels[np.searchsorted(ids, flat.image_ids)]),
        }
        store.write_json(self.results / "labels.json", told)
        return Targets(image_ids=flat.image_ids, labels=flat.labels)

    def true_labels(self) -> Targets:
        """The true labels of the same images."""
        known, ids = self.study.truth("train").set_index("image_id")["class"], self.tasks.image_ids()
        return Targets(image_ids=ids, labels=pd.factorize(known.reindex(ids), sort=True)[0])

    def learned(self, method: str) -> Learner:
        """A method trained on the same tasks."""
        with seeded(self.seed):
            learner: Learner = find_method(method).build(build_backbone(**self.configuration, seed=self.seed))
        settings = self.stretched(self.study.block(MethodsParams))
        train_on_tasks(
            learner,
            self.study.images(),
            self.tasks,
            self.training("methods", own_schedule(settings, learner)),
            tasks_per_epoch=settings.tasks_per_epoch,
        )
        return learner

    def training(self, stage: str, schedule: Schedule) -> Training:
        """With what all have in common."""
        return Training(stage=stage, schedule=schedule, seed=self.seed, augmentation=self.augmentation)

    def stretched(self, settings: OfTasks) -> OfTasks:
        """The same parameters with as many steps, whatever the number of tasks."""
        asked = settings.tasks_per_epoch or self.number
        per_epoch = min(asked, self.number)
        longer = lengthened(settings, round(settings.epochs * asked / per_epoch))
        return longer.model_copy(update={"tasks_per_epoch": per_epoch})

    def pretrained(self, targets: Targets) -> Backbone:
        """An embedding after as many steps as all training images would take."""
        settings, backbone = self.study.block(PretrainParams), build_backbone(**self.configuration, seed=self.seed)
        settings = lengthened(
            settings, round(settings.epochs * len(self.study.truth("train")) / len(targets.image_ids))
        )
        pretrain(
            backbone,
            self.study.images(),
            targets,
            self.training("pretrain", Schedule(**settings.schedule())),
            batch_size=settings.batch_size,
        )
        return backbone


def table(results: Path) -> pd.DataFrame:
    """Means, intervals and paired differences from MeLa, of all that is measured."""
    parts = []
    for data, kind, number in product(DATA, KINDS, NUMBERS):
        name = f"{kind}-{number}"
        rows = summarize_systems(read_results(results / data, name), SYSTEMS, [*SETTINGS], "merged-rfs")
        if rows.empty:
            continue
        labels = [store.read_json(path) for path in sorted((results / data / name).glob("*/labels.json"))]
        for column in ("classes", "true_classes", "images", "all_images", "label_accuracy"):
            rows[column] = np.mean([found[column] for found in labels]) if labels else np.nan
        parts.append(rows.assign(data=data, kind=kind, training_tasks=number))
    every = pd.concat(parts, ignore_index=True)
    first = ["data", "kind", "training_tasks"]
    return every[[*first, *(name for name in every if name not in first)]]


def plot(rows: pd.DataFrame) -> Figure:
    """A panel for each kind of tasks and setting, of one data set; every halving of the errors has the same room."""
    kinds = {kind: words for kind, words in KINDS.items() if (rows["kind"] == kind).any()}
    figure = Figure(figsize=(9, 3.5 * len(kinds)), layout="constrained")
    panels = figure.subplots(len(kinds), len(SETTINGS), sharex=True, sharey="col", squeeze=False)
    known = rows.set_index(["kind", "setting", "system"]).sort_index()
    for line, (kind, words) in zip(panels, kinds.items(), strict=True):
        for panel, (setting, name) in zip(line, SETTINGS.items(), strict=True):
            scale(panel, "y")
            for system, style in STYLES.items():
                if (kind, setting, system) in known.index:
                    points = known.loc[[(kind, setting, system)]].sort_values("training_tasks")
                    errors = {"yerr": points["ci95"], "capsize": 2, "markersize": 4.5}
                    panel.errorbar(points["training_tasks"], points["mean"], label=title(system), **errors, **style)
            panel.set(xscale="log", ylabel=f"test accuracy at {name}, %")
            panel.set_title(words, fontsize="medium")
            panel.set_xticks(NUMBERS, [f"{number:,}" for number in NUMBERS], minor=False)
            panel.minorticks_off()
            panel.grid(alpha=0.3)
    for panel in panels.flat:
        mark(panel, "y")
    for panel in panels[-1]:
        panel.set_xlabel("training tasks")
    handles, names = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(STYLES), frameon=False)
    return figure


def main(
    data: Annotated[list[str], typer.Option("--data", help=" | ".join(DATA))] = [*DATA],  # noqa: B006
    kinds: Annotated[list[str], typer.Option("--kind", help=" | ".join(KINDS))] = [*KINDS],  # noqa: B006
    numbers: Annotated[
        list[int] | None, typer.Option("--number", help=f"of tasks: {' | '.join(map(str, NUMBERS))}; all")
    ] = None,
    seeds: Annotated[int, typer.Option(help="seeds, from 0")] = 3,
    folder: Annotated[Path, typer.Option(help="of images, tasks and embeddings")] = Path("build/task_numbers"),
    results: Annotated[Path, typer.Option(help="of accuracies")] = Path("studies/results/task_numbers"),
    out: Annotated[Path, typer.Option(help="the table")] = Path("studies/results/task_numbers.csv"),
    figures: Annotated[Path, typer.Option(help="folder of the figures")] = Path("docs/images"),
) -> None:
    """Train what is missing, seed after seed; then write the table and a figure for each data set."""
    numbers = numbers or NUMBERS
    for option, chosen, known in (
        ("--data", data, [*DATA]),
        ("--kind", kinds, [*KINDS]),
        ("--number", numbers, NUMBERS),
    ):
        for one in chosen:
            if one not in known:
                raise typer.BadParameter(f"{option}: expected {' or '.join(map(str, known))}, got {one!r}")
    for seed, name, kind, number in product(range(seeds), data, kinds, numbers):
        study = Study(folder=folder / name, results=results / name, kind=kind, data=name)
        point = Point(study=study, number=number, seed=seed)
        for system in SYSTEMS:
            path = point.results / f"{system}.parquet"
            if not path.exists():
                accuracies = point.measure(system)
                store.write_table(path, accuracies, schemas.RESULTS, stage="task_numbers", params={})
                means = accuracies.groupby("setting")["accuracy"].mean().round(2).to_dict()
                typer.echo(f"{name}, {kind}, {number} tasks, seed {seed}: {system} {means}")
    rows = table(results)
    store.write_csv(out, rows)
    for name in rows["data"].unique():
        with replacing(figures / f"task-numbers-{name}.png") as temporary:
            plot(rows[rows["data"] == name]).savefig(temporary, format="png", dpi=120)


if __name__ == "__main__":
    typer.run(main)
