"""Train one method on images with global labels."""

from pathlib import Path
from typing import Annotated

import typer

from benchmark.stages.method_training import prepared
from mela.errors import MelaError
from mela.io import store
from mela.learners.base import LabelLearner, Student
from mela.methods import find_method
from mela.models.backbones import build_backbone
from mela.models.files import configure
from mela.params import ModelParams, PretrainParams
from mela.runtime.seeding import seeded
from mela.training.checkpoint import steady
from mela.training.learner_files import load_learned
from mela.training.on_images import train_on_labels, trained_targets
from mela.training.schedule import Schedule
from mela.training.targets import read_targets
from stages.common.run import run


def main(
    method: Annotated[str, typer.Option()],
    images: Annotated[Path, typer.Option()],
    labels: Annotated[Path, typer.Option()],
    params: Annotated[Path, typer.Option()],
    out: Annotated[Path, typer.Option()],
    teacher: Annotated[Path | None, typer.Option(help="the former generation, for distillation")] = None,
) -> None:
    """Read images and their labels; write what the method learned and its curve into a folder."""
    settings = PretrainParams.read(params)
    with steady(images, labels, *([] if teacher is None else [teacher])) as inputs:
        packed, targets = store.open_images(images), read_targets(labels, soft=False)
        configuration = configure(ModelParams.read(params), packed, targets.image_ids)
    with prepared("labels", method, settings, params, inputs) as one:
        backbone = build_backbone(**configuration, seed=settings.seed)
        training = one.training_by(Schedule(**settings.schedule()))
        targets = trained_targets(targets, training)
        with seeded(settings.seed):
            learner = find_method(method).build(backbone, targets.n_labels).to(one.device)
        learner.label_smoothing = settings.label_smoothing
        if teacher is not None:
            former = load_learned(teacher, one.device).learner
            if not isinstance(former, LabelLearner):
                raise MelaError(f"{teacher}: expected an embedding with a classifier, got one without; train it again")
            if not isinstance(learner, Student):
                raise MelaError(
                    f"--teacher: the method {method} does not learn from a teacher; leave it out, or use distill"
                )
            learner.learn_from(former)
        epochs = train_on_labels(learner, packed, targets, training, batch_size=settings.batch_size)
    one.save(out, learner, configuration, epochs)


if __name__ == "__main__":
    run(main)
