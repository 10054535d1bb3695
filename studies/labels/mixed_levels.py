"""Study tasks that mix fine classes and superclasses of CIFAR-100, where one label per image is ill-defined.

A task takes its classes one after another, a fine class or a superclass with equal chances, so that no two share an
image: "maple" may meet "trout" or "fish", but not "trees". So one image is "maple" in some tasks and "trees" in others.
``python -m studies labels.mixed_levels`` measures it; what was made is not made again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mela.data.episodes import Episodes
from mela.labeling.merge_labeler import MergeLabeler
from mela.labeling.task_classes import manifest_samples
from mela.models.backbones import Backbone
from mela.training.targets import Targets, soft_targets
from studies.cells import Cell
from studies.lab import cached, inferred, wide
from studies.labels.quality import scores
from studies.labels.worth import compared

DATA = "cifar_fs"
# what is pre-trained on, the reference first
LABELS = ("inferred", "inferred, soft", "true fine classes", "initial embedding", "true concepts, soft")
TEST_SEED = 77


def concepts(truth: pd.DataFrame, superclasses: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the fine classes of each concept: every class by itself, and every superclass of two or more of them.

    Parameters
    ----------
    truth : DataFrame
        Column class.
    superclasses : mapping
        Superclass of each class.
    """
    fine = sorted(truth["class"].unique())
    groups = pd.Series(fine).groupby([superclasses[name] for name in fine]).agg(list)
    return {name: [name] for name in fine} | {name: own for name, own in groups.items() if len(own) > 1}


def draw_mixed_tasks(
    truth: pd.DataFrame,
    superclasses: Mapping[str, str],
    *,
    n_tasks: int,
    ways: int,
    shots: int,
    queries: int,
    seed: int,
) -> pd.DataFrame:
    """Draw tasks with replacement; task t depends on (seed, t) alone.

    Parameters
    ----------
    truth : DataFrame
        Columns image_id, class.
    superclasses : mapping
        Superclass of each class.
    n_tasks, ways, shots, queries, seed : int

    Returns
    -------
    DataFrame with columns task_id, image_id, local_label, role, concept
    """
    members = concepts(truth, superclasses)
    levels = [sorted(name for name, own in members.items() if (len(own) > 1) == coarse) for coarse in (False, True)]
    images = {str(name): ids.to_numpy(dtype=np.int64) for name, ids in truth.groupby("class")["image_id"]}
    pools = {name: np.concatenate([images[one] for one in own]) for name, own in members.items()}
    parts = []
    for task in range(n_tasks):
        generator = np.random.default_rng(np.random.SeedSequence([seed, task]))
        taken: set[str] = set()
        for way in range(ways):
            level = levels[int(generator.random() < 0.5)]
            free = [name for name in level if not taken & set(members[name])]
            name = free[int(generator.integers(len(free)))]
            taken |= set(members[name])
            chosen = generator.choice(pools[name], size=shots + queries, replace=False)
            roles = np.repeat(["support", "query"], [shots, queries])
            part = {"task_id": task, "image_id": chosen, "local_label": way, "role": roles, "concept": name}
            parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True)


def level_targets(tasks: pd.DataFrame) -> Targets:
    """Return the shares of the true concepts that an image was given in its tasks."""
    votes = tasks.groupby(["image_id", "concept"]).size()
    shares = (votes / votes.groupby("image_id").transform("sum")).rename("weight").reset_index()
    return soft_targets(shares.assign(label=pd.factorize(shares["concept"], sort=True)[0]), "true concepts")


@dataclass(frozen=True)
class Experiment:
    """Hold all about one seed, made once and then read again."""

    cell: Cell
    superclasses: Mapping[str, str]
    folder: Path

    @classmethod
    @lru_cache(maxsize=1)
    def of(cls, seed: int, root: Path, folder: Path) -> "Experiment":
        """Return the experiment of a seed, below the folder of all cells."""
        table = pd.read_csv(root / "superclasses.csv")
        superclasses = dict(zip(table["class"], table["superclass"], strict=True))
        return cls(Cell.of(folder, DATA, seed).make(root), superclasses, folder / "mixed_levels" / str(seed))

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """Training tasks."""
        recipe, truth = self.cell.recipe, self.cell.truth("train")
        shape = {"ways": 5, "shots": recipe.shots, "queries": recipe.queries}
        return draw_mixed_tasks(truth, self.superclasses, n_tasks=recipe.tasks, seed=self.cell.seed, **shape)

    @cached_property
    def tests(self) -> dict[str, pd.DataFrame]:
        """Test tasks of fine classes, those of all other experiments, and of mixed levels."""
        shape = {"n_tasks": 1000, "ways": 5, "shots": 5, "queries": 15, "seed": TEST_SEED + self.cell.seed}
        mixed = draw_mixed_tasks(self.cell.truth("test"), self.superclasses, **shape)
        return {"fine": self.cell.tasks("test"), "mixed": mixed}

    def initial(self) -> Backbone:
        """Return the embedding meta-learned from the training tasks."""
        tasks, recipe = Episodes(self.tasks), self.cell.recipe
        how: dict[str, Any] = {"epochs": recipe.epochs, "steps": recipe.steps, "milestones": recipe.milestones}
        train = partial(self.cell.train, tasks=tasks, **how)
        return self.cell.kept(self.folder / "initial.safetensors", tasks, train)

    @cached_property
    def targets(self) -> dict[str, Targets | None]:
        """Targets of pre-training, by the names of LABELS; prints what was inferred."""
        image_ids = np.unique(self.tasks["image_id"])
        samples = manifest_samples(self.tasks, image_ids, self.cell.features(self.initial(), image_ids))
        found = MergeLabeler(random_state=self.cell.seed, soft=True).fit_tasks(samples)
        concept, names = pd.factorize(self.tasks.groupby(["task_id", "local_label"])["concept"].first())
        told = scores(found, concept)
        print(f"{len(names)} concepts", *(f"{name} {value:.3f}" for name, value in told.items()), sep=", ", flush=True)
        hard, soft = (inferred(found, image_ids[samples.index], samples.classes, soft=soft) for soft in (False, True))
        targets = [hard, soft, self.cell.true_targets(hard.image_ids), None, level_targets(self.tasks)]
        return dict(zip(LABELS, targets, strict=True))

    def accuracies(self, labels: str) -> dict[str, pd.DataFrame]:
        """Return for each kind of test tasks a row per task and a column per setting; trained if it is not known.

        Without targets it is the initial embedding that is tested.
        """
        targets, name = self.targets[labels], labels.replace(", ", "-").replace(" ", "-")
        model = cache(lambda: self.initial() if targets is None else self.cell.finished(targets))
        return {
            kind: wide(cached(self.folder / f"{name}-{kind}.parquet", lambda: self.cell.tested(model(), tasks)))  # noqa: B023
            for kind, tasks in self.tests.items()
        }


def measure(*, seed: int, labels: str, root: Path, folder: Path) -> list[dict[str, Any]]:
    """Return the accuracies after pre-training on labels, and how far they are from those on inferred ones."""
    experiment = Experiment.of(seed, root, folder)
    targets, reference = experiment.targets[labels], experiment.accuracies("inferred")
    return [
        {"classes": targets.n_labels if targets else 0, "test": test, "n": len(own)}
        | compared(own, None if labels == "inferred" else reference[test], "inferred")
        for test, own in experiment.accuracies(labels).items()
    ]
