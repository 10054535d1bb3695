"""The bench of training: both ways train, and the GPU part runs where it can."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from mela.data.augmentation import Augmentation
from studies.speed import gpu
from studies.speed.train_steps import (
    BATCH,
    SETTINGS,
    Images,
    Setting,
    operations_of_a_step,
    ours,
    plain_network,
    reference,
)
from tests.helpers.project import ROOT, TINY, run_stages

SMALL = {name: replace(setting, steps=2) for name, setting in SETTINGS.items() if setting.network == "conv4"}
AUGMENTATION = Augmentation(crop_padding=1, flip=True, jitter=0.1)
SMALL["resnet12"] = Setting(size=16, channels=3, augmentation=AUGMENTATION, steps=1, network="resnet12", workers=(0,))
every_setting = pytest.mark.parametrize("setting", SMALL.values(), ids=SMALL)


@pytest.mark.slow
@every_setting
def test_both_ways_train(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    # this process is not the contender's own: its memory stays as it is
    monkeypatch.setattr("studies.speed.train_steps.keep_freed_memory", lambda: None)
    _, curve = ours(setting, "float32")()
    assert curve[0].loss == pytest.approx(torch.tensor(64.0).log().item(), rel=0.5)
    assert 1 < reference(setting, 0)() / setting.steps < 10


@every_setting
def test_both_ways_have_the_same_network_and_images(setting: Setting) -> None:
    backbone, plain = setting.backbone(), plain_network(setting)
    weights = [weight.shape for weight in backbone.parameters()]
    assert [weight.shape for weight in plain.parameters()][:-2] == weights
    assert len(Images(setting)) == setting.steps * BATCH == len(setting.images())
    picture, label = Images(setting)[3]
    assert picture.shape == (setting.channels, setting.size, setting.size)
    assert label == setting.labels()[3]


def test_operations_of_a_step() -> None:
    """A convolution of n outputs costs 2 n k operations forward; backward twice that, but for the image's gradient."""
    setting = replace(SETTINGS["train_conv4_32"], size=16)
    forward = [2 * 64 * 9 * channels * side**2 for channels, side in ((3, 16), (64, 8), (64, 4), (64, 2))]
    linear = 2 * 64 * 64
    assert operations_of_a_step(setting) == 3 * (sum(forward) + linear) - forward[0]
    assert operations_of_a_step(gpu.RESNET12) == pytest.approx(3.1e9, rel=0.02)


@pytest.mark.slow
def test_a_preset_runs_stage_by_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first stage in a process of its own, as it is meant; the others in this one, which has torch loaded."""
    start = subprocess.run

    def run(command: list[str], *, cwd: str, **options: Any) -> None:
        stage = "@".join(command[2:]).removeprefix("stages.")
        if stage == gpu.STAGES[0]:
            start(command, cwd=cwd, **options)
            return
        with monkeypatch.context() as patch:
            patch.chdir(cwd)
            run_stages(stage)

    monkeypatch.setattr("studies.speed.gpu.subprocess.run", run)
    taken = gpu.run_preset(tmp_path, preset=ROOT / "presets/glyphs.yaml", changes=TINY, project=ROOT)
    assert list(taken) == gpu.STAGES
    # to a tenth of a second
    assert all(0 <= seconds < 100 for seconds in taken.values())
    assert taken[gpu.STAGES[0]] > 0


def test_without_a_gpu_the_gpu_part_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(gpu.typer.Exit) as caught:
        gpu.main()
    assert caught.value.exit_code == 1
    assert capsys.readouterr().err == "speed.gpu: no GPU on this machine, nothing measured\n"
