"""Show when inferring labels pays: accuracy against the number of training tasks, even and uneven ones.

Even tasks have 5 ways and 5 shots, uneven ones 3 to 8 ways and 1 to 10 shots of each class; the test tasks are the
same 5-way tasks for all. Training has the same number of steps whatever the number of tasks.
``python -m studies labels.task_numbers`` goes on where it stopped, and writes studies/results/task_numbers.csv and for
each data set docs/images/task-numbers-<data>.png. The accuracies of all test tasks are in studies/results/task_numbers.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import typer
from matplotlib.figure import Figure

from benchmark.comparison import read_results, summarize_systems
from benchmark.places import preset
from benchmark.report.charts import mark, scale
from benchmark.stages.method_training import own_schedule
from benchmark.systems import title
from mela.data.array_types import Ints
from mela.data.episodes import Episodes
from mela.data.sampling import draw_split
from mela.evaluation.label_scores import majority_accuracy
from mela.evaluation.rules import own_rule
from mela.io import schemas, store
from mela.io.atomic import replacing
from mela.labeling.merge_labeler import MergeLabeler
from mela.labeling.task_classes import manifest_samples
from mela.learners.base import Learner
from mela.methods import find_method
from mela.models.backbones import Backbone
from mela.params import (
    DataParams,
    EmbedParams,
    EvaluateParams,
    MethodsParams,
    PretrainParams,
    TaskParams,
)
from mela.runtime.seeding import seeded
from mela.training.targets import Targets
from studies.lab import Lab, cached, inferred, lengthened, trained_longer

NUMBERS = (50, 100, 200, 500, 1000, 2000, 5000)
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
OF_LABELS = ("classes", "true_classes", "images", "all_images", "label_accuracy")
FIGURES = Path("docs/images")
SETTINGS = {"1_shot": "1-shot", "5_shot": "5-shot"}
OfTasks = TypeVar("OfTasks", EmbedParams, MethodsParams)
KINDS = {"even": "even tasks: 5 ways, 5 shots", "uneven": "uneven tasks: 3 to 8 ways, 1 to 10 shots"}


def uneven_tasks(classes: dict[str, Ints], n_tasks: int, queries: int, seed: int) -> pd.DataFrame:
    """Draw tasks whose ways and shots differ, also within a task; a longer list begins with the shorter one."""
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
class Point(Lab):
    """Train all systems on so many tasks, with one seed: a point of each curve.

    Attributes
    ----------
    results : Path
        Folder of all accuracies of the data set.
    kind : str
        Kind of training tasks, one of `KINDS`.
    number : int
        Number of training tasks.
    """

    results: Path
    kind: str
    number: int

    @property
    def own(self) -> Path:
        """Folder of accuracies, as `benchmark.comparison.read_results` finds them."""
        return self.results / f"{self.kind}-{self.number}" / f"seed{self.seed}"

    def drawn(self, split: str, count: int) -> pd.DataFrame:
        """Return the first tasks of a split; test tasks are even."""

        def draw() -> pd.DataFrame:
            settings, known = self.block(TaskParams, train=max(NUMBERS)), self.truth(split)
            if split != "train" or self.kind == "even":
                return draw_split(known, settings, split)
            classes = {str(name): rows["image_id"].to_numpy() for name, rows in known.groupby("class")}
            return uneven_tasks(classes, settings.train or 0, settings.queries, settings.seed)

        drawn = cached(self.folder / f"{split}-{self.kind}.parquet", draw)
        return drawn[drawn["task_id"] < count]

    @cached_property
    def tasks(self) -> Episodes:
        """Training tasks."""
        return Episodes(self.drawn("train", self.number))

    def measure(self, system: str) -> pd.DataFrame:
        """Return the accuracies of all test tasks."""
        self.pack(self.block(DataParams, **DATA[self.folder.name]), self.block(TaskParams).shots)
        test, ids = Episodes(self.drawn("test", self.block(TaskParams).test)), self.tasks.image_ids()
        if system in METHODS:
            with seeded(self.seed):
                learner: Learner = find_method(system).build(self.backbone(ids))
            settings = self.stretched(self.block(MethodsParams))
            self.learn(learner, self.tasks, settings, own_schedule(settings, learner))
            return own_rule(learner, self.images, test, self.block(EvaluateParams).shots)
        if system == "initial":
            return self.accuracies(self.initial(), test)
        targets = self.inferred_labels() if system == "merged-rfs" else self.true_targets(ids)
        pretraining = self.block(PretrainParams)
        # as many steps as all training images would take
        epochs = round(pretraining.epochs * len(self.truth("train")) / len(targets.image_ids))
        return self.accuracies(self.pretrained(targets, lengthened(pretraining, epochs)), test)

    def initial(self) -> Backbone:
        """Return the initial embedding, read if it is known."""
        path = self.folder / f"{self.kind}-{self.number}-seed{self.seed}.safetensors"
        settings = self.stretched(self.block(EmbedParams))
        return self.kept(path, self.tasks, lambda backbone: self.embed(backbone, self.tasks, settings))

    def inferred_labels(self) -> Targets:
        """Return labels by merging, and keep how many and how good they are."""
        rows, ids = self.drawn("train", self.number), self.tasks.image_ids()
        samples = manifest_samples(rows, ids, self.features(self.initial(), ids))
        found = MergeLabeler(random_state=self.seed).fit_tasks(samples)
        targets = inferred(found, ids[samples.index], samples.classes, soft=False)
        true = self.true_targets(ids)
        known = true.labels[np.searchsorted(ids, targets.image_ids)]
        told: dict[str, float] = {
            "classes": len(found.cluster_centers_),
            "true_classes": true.n_labels,
            "images": len(targets.image_ids),
            "all_images": len(ids),
            "label_accuracy": 100 * majority_accuracy(targets.labels, known),
        }
        store.write_json(self.own / "labels.json", told)
        return targets

    def stretched(self, settings: OfTasks) -> OfTasks:
        """Return the same parameters with as many steps, whatever the number of tasks."""
        asked = settings.tasks_per_epoch or self.number
        per_epoch = min(asked, self.number)
        return trained_longer(settings, asked / per_epoch).model_copy(update={"tasks_per_epoch": per_epoch})


def summary(results: Path, kind: str, number: int) -> list[dict[str, Any]]:
    """Return means, intervals and paired differences from MeLa of all that is measured at a point."""
    name = f"{kind}-{number}"
    rows = summarize_systems(read_results(results, name), SYSTEMS, [*SETTINGS], "merged-rfs")
    labels = [store.read_json(path) for path in sorted((results / name).glob("*/labels.json"))]
    told = {column: np.mean([found[column] for found in labels]) if labels else None for column in OF_LABELS}
    return [{str(name): value for name, value in row.items()} | told for row in rows.to_dict("records")]


def measure(
    *, data: str, kind: str, training_tasks: int, seeds: int, folder: Path, results: Path
) -> list[dict[str, Any]]:
    """Train what is missing, seed after seed, and return a row for each system and setting."""
    for seed in range(seeds):
        own: dict[str, Any] = {"folder": folder / data, "results": results / data, "kind": kind}
        point = Point(params=preset(data), **own, seed=seed, number=training_tasks)
        for system in SYSTEMS:
            path = point.own / f"{system}.parquet"
            if not path.exists():
                accuracies = point.measure(system)
                store.write_table(path, accuracies, schemas.RESULTS, stage="task_numbers", params={})
                means = accuracies.groupby("setting")["accuracy"].mean().round(2).to_dict()
                typer.echo(f"{data}, {kind}, {training_tasks} tasks, seed {seed}: {system} {means}")
    return summary(results / data, kind, training_tasks)


def plot(rows: pd.DataFrame) -> Figure:
    """Draw a panel for each kind of tasks and setting of one data set; every halving of the errors has equal room."""
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


def draw(rows: pd.DataFrame) -> None:
    """Draw a figure for each data set."""
    for name, own in rows.groupby("data"):
        with replacing(FIGURES / f"task-numbers-{name}.png") as temporary:
            plot(own).savefig(temporary, format="png", dpi=120)
