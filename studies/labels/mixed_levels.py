"""Tasks whose local labels mix fine classes and superclasses of CIFAR-100: one label per image is then ill-defined.

A task takes its classes one after another, a fine class or a superclass with equal chances, so that no two share an
image: "maple" may meet "trout" or "fish", but not "trees". So one image is "maple" in some tasks and "trees" in others.

``python -m studies.labels.mixed_levels --root FOLDER`` trains on such tasks from the classes of CIFAR-FS, infers
labels, pre-trains on them, on their weights and on true ones, and tests on 1,000 tasks of fine classes and 1,000 of
mixed ones; studies/results/mixed_levels.csv. What was made is not made again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer
from sklearn.metrics import adjusted_rand_score

from mela.data.episodes import Episodes
from mela.evaluation.label_scores import majority_accuracy
from mela.io import store
from mela.io.atomic import replacing
from mela.labeling.image_labels import image_weights, label_images, weights_table
from mela.labeling.labeler import LearnLabeler
from mela.labeling.task_classes import manifest_samples
from mela.models.backbones import Backbone, build_backbone
from mela.models.features import extract_features
from mela.models.files import configure, load_model, save_model
from mela.params import ModelParams
from mela.training.targets import Targets, soft_targets
from studies.cells import Cell
from studies.labels.worth import accuracies, compared, trained

TEST_SEED = 77


def concepts(truth: pd.DataFrame, superclasses: Mapping[str, str]) -> dict[str, list[str]]:
    """The fine classes of each concept: every class by itself, and every superclass of two or more of them.

    Parameters
    ----------
    truth : DataFrame
        Column class.
    superclasses : mapping
        Of each class.
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
    """Tasks with replacement; task t depends on (seed, t) alone.

    Parameters
    ----------
    truth : DataFrame
        Columns image_id, class.
    superclasses : mapping
        Of each class.
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
    """Shares of the true concepts that an image was given in its tasks."""
    votes = tasks.groupby(["image_id", "concept"]).size()
    shares = (votes / votes.groupby("image_id").transform("sum")).rename("weight").reset_index()
    return soft_targets(shares.assign(label=pd.factorize(shares["concept"], sort=True)[0]), "true concepts")


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Everything about one seed, made once and then found again."""

    cell: Cell
    superclasses: Mapping[str, str]
    folder: Path

    def truth(self, split: str) -> pd.DataFrame:
        """Columns image_id, class."""
        truth = self.cell.truth()
        return truth[truth["split"] == split]

    def tasks(self) -> pd.DataFrame:
        """Training tasks."""
        recipe = self.cell.recipe
        shape = {"ways": 5, "shots": recipe.shots, "queries": recipe.queries}
        return draw_mixed_tasks(
            self.truth("train"), self.superclasses, n_tasks=recipe.tasks, seed=self.cell.seed, **shape
        )

    def tests(self) -> dict[str, pd.DataFrame]:
        """Test tasks of fine classes, those of all other experiments, and of mixed levels."""
        shape = {"ways": 5, "shots": 5, "queries": 15}
        mixed = draw_mixed_tasks(
            self.truth("test"), self.superclasses, n_tasks=1000, seed=TEST_SEED + self.cell.seed, **shape
        )
        return {"fine": self.cell.tasks("test"), "mixed": mixed}

    def initial(self, tasks: pd.DataFrame) -> Backbone:
        """The embedding meta-learned from the training tasks."""
        path, images, recipe = self.folder / "initial.safetensors", self.cell.images(), self.cell.recipe
        if not path.exists():
            episodes = Episodes(tasks)
            configuration = configure(self.cell.block(ModelParams), images, episodes.image_ids())
            backbone = build_backbone(**configuration, seed=self.cell.seed)
            milestones = list(recipe.milestones)
            self.cell.train(backbone, episodes, epochs=recipe.epochs, steps=recipe.steps, milestones=milestones)
            save_model(path, backbone, configuration)
        return load_model(path, torch.device("cpu"), images)

    def labelled(self, tasks: pd.DataFrame) -> dict[str, Targets | None]:
        """What pre-training learns, by name, the reference first; prints what was inferred."""
        image_ids = np.unique(tasks["image_id"])
        samples = manifest_samples(
            tasks, image_ids, extract_features(self.initial(tasks), self.cell.images(), image_ids)
        )
        found = LearnLabeler(random_state=self.cell.seed, soft=True).fit_tasks(samples)
        concept, names = pd.factorize(tasks.groupby(["task_id", "local_label"])["concept"].first())
        used = found.class_labels_ >= 0
        labels, known = found.class_labels_[used], concept[used]
        print(
            f"{len(found.cluster_centers_)} clusters for {len(names)} concepts, accuracy "
            f"{100 * majority_accuracy(labels, known):.1f}%, ARI {adjusted_rand_score(known, labels):.3f}, "
            f"{100 * used.mean():.1f}% clustered"
        )
        rows = image_ids[samples.index]
        flat = label_images(found.class_labels_, len(found.cluster_centers_), rows, samples.classes)
        weights = image_weights(flat, found.class_weights_, rows, samples.classes)
        print(f"largest weight of an image: {weights.max(axis=1).toarray().mean():.3f} on average")
        classes = self.truth("train").set_index("image_id")["class"]
        fine = classes.iloc[classes.index.get_indexer(pd.Index(flat.image_ids))]
        return {
            "inferred": Targets(image_ids=flat.image_ids, labels=flat.labels),
            "inferred, soft": soft_targets(weights_table(flat.image_ids, weights), "weights"),
            "true fine classes": Targets(image_ids=flat.image_ids, labels=pd.factorize(fine, sort=True)[0]),
            "initial embedding": None,
            "true concepts, soft": level_targets(tasks),
        }

    def accuracies(self, name: str, targets: Targets | None, tasks: pd.DataFrame) -> dict[str, pd.DataFrame]:
        """For each kind of test tasks one row per task, one column per setting; trained if it is not known.

        Without targets it is the initial embedding that is tested.
        """
        plain = name.replace(", ", "-").replace(" ", "-")
        tests = self.tests()
        paths = {kind: self.folder / f"{plain}-{kind}.parquet" for kind in tests}
        if not all(path.exists() for path in paths.values()):
            model = self.initial(tasks) if targets is None else trained(self.cell, targets, None)
            for kind, path in paths.items():
                with replacing(path) as temporary:
                    accuracies(self.cell, model, Episodes(tests[kind])).to_parquet(temporary)
        found = {kind: pd.read_parquet(path) for kind, path in paths.items()}
        return {
            kind: table.pivot(index="task_id", columns="setting", values="accuracy") for kind, table in found.items()
        }


def main(
    root: Annotated[Path, typer.Option(help="folder of CIFAR-100, with superclasses.csv (class,superclass)")],
    seed: int = 0,
    folder: Annotated[Path, typer.Option(help="where studies.labels.grid put its cells")] = Path("build/grid"),
    out: Annotated[Path, typer.Option(help="the table")] = Path("studies/results/mixed_levels.csv"),
) -> None:
    """Fill the table for one seed."""
    cell = Cell(folder=folder, name="cifar_fs", seed=seed)
    cell.make(root)
    table = pd.read_csv(root / "superclasses.csv")
    superclasses = dict(zip(table["class"], table["superclass"], strict=True))
    own = folder / "mixed_levels" / str(seed)
    own.mkdir(parents=True, exist_ok=True)
    experiment = Experiment(cell=cell, superclasses=superclasses, folder=own)
    tasks = experiment.tasks()
    others = pd.read_csv(out).query("seed != @seed") if out.exists() else pd.DataFrame()
    rows: list[dict[str, Any]] = []
    reference: dict[str, pd.DataFrame] = {}
    for name, targets in experiment.labelled(tasks).items():
        found = experiment.accuracies(name, targets, tasks)
        reference = reference or found
        for test, wide in found.items():
            row = {"seed": seed, "labels": name, "classes": targets.n_labels if targets else 0, "test": test}
            row |= {"n": len(wide)} | compared(wide, None if name == "inferred" else reference[test], "inferred")
            rows.append(row)
            print(row, flush=True)
        store.write_text(out, pd.concat([others, pd.DataFrame(rows)]).to_csv(index=False))


if __name__ == "__main__":
    typer.run(main)
