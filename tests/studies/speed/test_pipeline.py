"""Times of stages and of training, from what DVC prints."""

import pytest

from mela.errors import MelaError
from studies.speed.pipeline import EXPERIMENTS, WITHOUT_TORCH, Round, stage_seconds, training_seconds
from tests.helpers.dvc import AFTER_LABEL
from tests.helpers.project import STAGE_NAMES
from tests.helpers.starts import NEEDED

PRINTED = [
    (1.0, "Stage 'extract' didn't change, skipping\n"),
    (1.5, "Running stage 'label':\n"),
    (1.5, "> python -m stages.label\n"),
    (3.0, "label: 203 clusters, 100.0% of tasks clustered\n"),
    (3.5, "Updating lock file 'dvc.lock'\n"),
    (4.0, "Running stage 'pretrain@pruned':\n"),
    (9.0, "pretrain@pruned: epoch 1/3: loss 4.7387, training accuracy 7.0%, learning rate 0.05\n"),
    (11.0, "pretrain@pruned: epoch 2/3: loss 2.9037, training accuracy 35.6%, learning rate 0.05\n"),
    (14.0, "pretrain@pruned: epoch 3/3: loss 1.6934, training accuracy 58.4%, learning rate 0.005\n"),
    (15.0, "pretrain@pruned: Proposition 1: 0.2566 over each task's classes <= 0.3026 over all\n"),
    (15.5, "Updating lock file 'dvc.lock'\n"),
]


def test_times_of_stages_and_of_training_come_from_what_dvc_prints() -> None:
    assert stage_seconds(PRINTED) == {"label": 2.0, "pretrain@pruned": 11.5}
    assert training_seconds(PRINTED) == 7.5, "the first of three epochs takes as long as the mean of the others"


def test_what_is_outside_of_training_and_of_stages() -> None:
    found = Round(total=17.0, training=7.5, stages=stage_seconds(PRINTED))
    assert (found.outside, found.dvc) == (9.5, 3.5)


@pytest.mark.parametrize("epochs", [0, 1])
def test_one_epoch_does_not_tell_how_long_it_took(epochs: int) -> None:
    lines = [line for line in PRINTED if "epoch" in line[1]][:epochs]
    with pytest.raises(MelaError, match=f"expected lines of at least two epochs, found {epochs}; raise"):
        training_seconds(lines)


def test_the_stages_measured_are_those_of_the_pipeline() -> None:
    assert set(AFTER_LABEL) in EXPERIMENTS.values()
    needs_torch = {stage for stage, needed in NEEDED.items() if "torch" in needed}
    assert set(WITHOUT_TORCH) == set(STAGE_NAMES) - needs_torch
