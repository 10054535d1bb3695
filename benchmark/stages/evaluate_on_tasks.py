"""Meta-test one system: by its own rule, and by every head on its embedding."""

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from benchmark.comparison import summarize_heads
from mela.data.augmentation import NONE, Augmentation
from mela.data.episodes import Episodes
from mela.errors import MelaError
from mela.evaluation.accuracy import feature_lookups, require_unseen
from mela.evaluation.heads import HEADS
from mela.evaluation.rules import own_rule, with_head
from mela.io import schemas, store
from mela.io.atomic import together
from mela.io.checked_tables import read_manifest
from mela.learners.base import Learner
from mela.params import AugmentParams, EvaluateParams, RuntimeParams
from mela.runtime.console import log
from mela.runtime.device import choose_device
from mela.training.learner_files import load_learned
from stages.common.run import run

OWN = "logistic"


def main(
    images: Annotated[Path, typer.Option()],
    train: Annotated[Path, typer.Option()],
    test: Annotated[Path, typer.Option()],
    params: Annotated[Path, typer.Option()],
    model: Annotated[Path, typer.Option()],
    out: Annotated[Path, typer.Option()],
    heads: Annotated[Path, typer.Option()],
) -> None:
    """Read images, a model and test tasks; write accuracies of tasks by its own rule, and means by every head."""
    settings, augment = EvaluateParams.read(params), AugmentParams.read(params)
    augmentation = Augmentation(**augment.model_dump()).of_one_image
    device = choose_device(RuntimeParams.read(params).device)
    packed, tasks = store.open_images(images), Episodes(read_manifest(test))
    if len(tasks) < 2:
        raise MelaError(f"{test}: expected two test tasks or more, which an interval needs, got {len(tasks)}; add some")
    require_unseen(tasks, Episodes(read_manifest(train)), str(test))
    learned = load_learned(model, device, packed)
    lookup, copies = feature_lookups(
        learned.backbone,
        packed,
        tasks,
        copies=settings.support_copies if augmentation != NONE else 1,
        augmentation=augmentation,
        seed=settings.seed,
    )
    parts = {name: with_head(head, lookup, tasks, settings.shots, copies=copies) for name, head in HEADS.items()}
    parts["own"] = parts[OWN]
    if isinstance(learned.learner, Learner):
        parts["own"] = own_rule(learned.learner, packed, tasks, settings.shots)
    asked = set(parts["own"]["setting"])
    parts = {name: of_two_or_more(part) for name, part in parts.items()}
    for setting in sorted(asked - set(parts["own"]["setting"])):
        log.info(f"meta_test: {setting} is left out, since a single test task allows it")
    if parts["own"].empty:
        shots = " or ".join(map(str, settings.shots))
        raise MelaError(f"evaluate.shots: expected what two test tasks allow, got {shots}, which fewer do; lower it")
    with together():
        store.write_table(
            out, parts["own"], schemas.RESULTS, stage="meta_test", params=settings.model_dump(mode="json")
        )
        store.write_csv(heads, summarize_heads(parts))
    own = parts["own"].groupby("setting")["accuracy"].mean()
    log.info("meta_test: " + ", ".join(f"{setting} {accuracy:.2f}" for setting, accuracy in own.items()))


def of_two_or_more(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Leave out the settings that a single task allows, which have no interval."""
    return accuracies[accuracies.groupby("setting")["task_id"].transform("size") > 1]


if __name__ == "__main__":
    run(main)
