"""A head on a frozen network learns from features that are computed once what it would learn from images each epoch."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from mela.errors import DivergedError, MelaError
from mela.io import schemas, store
from mela.models.backbones import Backbone
from mela.models.timm_backbones import Pretrained
from mela.training.embeddings import pretrain, train_embedding
from mela.training.kept_features import KeptFeatures, keep_features
from mela.training.loop import Training
from mela.training.proposition1 import both_losses
from mela.training.targets import Targets
from stages.common import paths
from tests.helpers.embedding import backbone as small_backbone
from tests.helpers.embedding import batch_of, episodes, model_parameters, schedule
from tests.helpers.processes import python
from tests.helpers.project import change, run_stages, stage_words
from tests.helpers.weights import NAME, ON_WEIGHTS, start_from_weights

pytest.importorskip("timm", reason="networks of timm are not tested without it")

IMAGES = np.random.default_rng(0).integers(256, size=(72, 20, 20, 3)).astype(np.uint8)
IDS = np.arange(0, 40, 2)
FILES = {"images.npy": "of the images"}


def backbone(seed: int = 0, **changes: Any) -> Backbone:
    own = {"size": 20, "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4], "side": 32, "head": True}
    return small_backbone(NAME, seed=seed, channels=3, **own | changes)


def kept(of: Backbone, folder: Path, ids: Any = IDS, files: dict[str, str] = FILES) -> KeptFeatures:
    return keep_features(of, IMAGES, ids, folder=folder, files=files)


def training(stage: str) -> Training:
    return Training(stage=stage, schedule=replace(schedule(2), weight_decay=0.01, milestones=[1]), seed=3)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many images went through a network, each time that some did."""
    counts: list[int] = []
    forward = Pretrained.forward

    def counted(self: Pretrained, images: torch.Tensor) -> torch.Tensor:
        counts.append(len(images))
        return forward(self, images)

    monkeypatch.setattr(Pretrained, "forward", counted)
    return counts


def test_features_are_those_of_the_network(tmp_path: Path) -> None:
    of = backbone()
    found = kept(of, tmp_path)
    with torch.inference_mode():
        expected = of.eval()(batch_of(IMAGES[IDS]))
    assert found.images.shape == (72, 1, 1, of.dimensions)
    # the head starts as the identity
    np.testing.assert_allclose(found.images[IDS, 0, 0], expected, atol=1e-5)
    assert not np.delete(found.images, IDS, axis=0).any(), "nobody asked for the others"
    assert [path.name for path in tmp_path.iterdir()] == [found.path.name]


def test_what_learns_on_top_is_the_head_of_the_whole(tmp_path: Path) -> None:
    of = backbone()
    found = kept(of, tmp_path)
    (learned,) = found.backbone.parameters()
    assert learned is of.body.head.weight
    torch.nn.init.normal_(learned)
    with torch.inference_mode():
        features = found.backbone.eval()(torch.from_numpy(found.images[IDS]).permute(0, 3, 1, 2))
        torch.testing.assert_close(features, of.eval()(batch_of(IMAGES[IDS])), atol=1e-4, rtol=1e-4)
    assert found.backbone.dimensions == of.dimensions


def test_pre_training_is_the_same_as_on_images_that_do_not_change(tmp_path: Path, runs: list[int]) -> None:
    targets = Targets(image_ids=IDS, labels=np.arange(len(IDS)) % 4)
    tasks = episodes([([2, 2, 2], 2)])
    whole, part = backbone(), backbone()
    classifier, curve = pretrain(whole, IMAGES, targets, training("pretrain"), batch_size=8)
    assert sum(runs) == 2 * len(IDS), "once in each epoch"
    runs.clear()
    found = kept(part, tmp_path)
    other, same = pretrain(found.backbone, found.images, targets, training("pretrain"), batch_size=8)
    torch.testing.assert_close(part.state_dict(), whole.state_dict(), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(other.weight, classifier.weight, atol=1e-4, rtol=1e-4)
    assert [epoch.loss for epoch in same] == pytest.approx([epoch.loss for epoch in curve], rel=1e-4)
    assert not torch.equal(whole.body.head.weight, torch.eye(whole.dimensions)), "something was learned"
    ids = np.unique(tasks.image_ids())
    some = replace(targets, image_ids=ids, labels=np.arange(len(ids)) % 4)
    again = kept(part, tmp_path, ids)
    runs.clear()
    losses = both_losses(again.backbone, other, again.images, tasks, some)
    assert not runs, "not for Proposition 1 either"
    expected = both_losses(whole, classifier, IMAGES, tasks, some)
    assert losses.task_loss == pytest.approx(expected.task_loss, rel=1e-3)
    assert losses.global_loss == pytest.approx(expected.global_loss, rel=1e-3)


def test_the_initial_embedding_is_the_same_as_on_images_that_do_not_change(tmp_path: Path) -> None:
    tasks = episodes([([2, 2, 2], 2)] * 2)
    whole, part = backbone(), backbone()
    how = {"ridge": 1.0, "normalize": False, "tasks_per_epoch": None}
    train_embedding(whole, IMAGES, tasks, training("embed"), **how)
    found = kept(part, tmp_path, np.unique(tasks.image_ids()))
    train_embedding(found.backbone, found.images, tasks, training("embed"), **how)
    torch.testing.assert_close(part.body.head.weight, whole.body.head.weight, atol=1e-4, rtol=1e-4)
    assert not torch.equal(whole.body.head.weight, torch.eye(whole.dimensions))


def test_features_are_computed_once_for_weights_images_and_size(tmp_path: Path, runs: list[int]) -> None:
    path = kept(backbone(), tmp_path).path
    assert runs == [len(IDS)]
    before = path.read_bytes()
    assert kept(backbone(), tmp_path).path == path
    assert runs == [len(IDS)], "they are there"
    moved = backbone()
    torch.nn.init.normal_(moved.body.head.weight)
    assert kept(moved, tmp_path).path == path, "the head has no part in them"
    statistics = backbone()
    statistics.body.network.bn1.running_mean += 1
    others = [
        kept(backbone(seed=1), tmp_path),
        kept(statistics, tmp_path),
        kept(backbone(side=48), tmp_path),
        kept(backbone(mean=[0.5, 0.4, 0.2]), tmp_path),
        kept(backbone(interpolation="bilinear"), tmp_path),
        kept(backbone(), tmp_path, files={"images.npy": "of others"}),
        kept(backbone(), tmp_path, IDS[1:]),
    ]
    assert len({path, *(other.path for other in others)}) == 8
    # what a training that failed has left goes when others are written
    assert [*tmp_path.iterdir()] == [others[-1].path]
    assert kept(backbone(), tmp_path).path.read_bytes() == before
    again = kept(backbone(), tmp_path)
    again.remove()
    assert not again.path.exists()
    again.remove()


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_file_that_is_not_whole_is_made_anew(damage: bytes | None, tmp_path: Path, runs: list[int]) -> None:
    path = kept(backbone(), tmp_path).path
    before = path.read_bytes()
    path.write_bytes(before[:-8] if damage is None else damage)
    kept(backbone(), tmp_path)
    assert path.read_bytes() == before
    assert len(runs) == 2


def test_features_that_are_not_finite_leave_no_file(tmp_path: Path) -> None:
    of = backbone()
    of.body.network.conv1[0].weight.data.fill_(torch.nan)
    message = r"^model.weights: features: image 0: expected finite values, .*; the network does not learn, so name"
    with pytest.raises(DivergedError, match=message):
        kept(of, tmp_path)
    assert not list(tmp_path.iterdir())


def test_machines_that_do_not_share_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process has written the file elsewhere."""
    monkeypatch.setattr("mela.training.kept_features._write", lambda *arguments: None)
    message = "found none; let all machines share .*, or set model.keep_features to false$"
    with pytest.raises(MelaError, match=message):
        kept(backbone(), tmp_path)


def test_a_network_that_learns_is_not_kept(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="a network that does not learn"):
        kept(copy.deepcopy(backbone(head=False)), tmp_path)


HEAD = ON_WEIGHTS | {"pretrain.epochs": 4, "pretrain.milestones": [2], "embed.epochs": 3, "embed.learning_rate": 0.001}
HEAD |= {"model.input_size": 32, "model.precision": "float32"}


@pytest.fixture
def headed(project: Path) -> Path:
    """A project that trains heads on a network with weights, up to its labels."""
    start_from_weights(project, HEAD)
    run_stages("images", "manifest", "label_oracle")
    return project


def weights(path: Path) -> torch.Tensor:
    return load_file(path)["body.head.weight"]


@pytest.mark.slow
def test_stages_run_the_network_once(headed: Path, runs: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    run_stages("embed", "pretrain@oracle")
    n_images = len(np.unique(store.read_table(paths.TRAIN, schemas.MANIFEST)["image_id"]))
    assert sum(runs) == 2 * n_images, "once in each stage, whatever the number of epochs"
    said = capsys.readouterr().out
    for stage in ("embed", "pretrain@oracle"):
        assert f"{stage}: the network's features of {n_images:,} images are computed once, without augmentation" in said
    assert not list(Path(".checkpoints").iterdir()), "what was kept is gone"
    before = weights(paths.ORACLE)
    runs.clear()
    change(headed / "params.yaml", {"model.keep_features": False})
    run_stages("pretrain@oracle")
    assert sum(runs) == 5 * n_images, "in each epoch, and for Proposition 1"
    assert "computed once" not in capsys.readouterr().out
    augmented = weights(paths.ORACLE)
    assert not torch.allclose(augmented, before, atol=1e-6), "each epoch has other random changes"
    change(headed / "params.yaml", {"augment.crop_padding": 0, "augment.flip": False, "augment.jitter": 0.0})
    run_stages("pretrain@oracle")
    torch.testing.assert_close(weights(paths.ORACLE), before, atol=1e-4, rtol=1e-4)


def test_nothing_is_kept_where_nothing_is_trained(
    headed: Path, runs: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    change(headed / "params.yaml", {"embed.epochs": 0})
    run_stages("embed")
    assert not runs
    assert "enlarged" not in capsys.readouterr().out, "the side is what was asked for"
    change(headed / "params.yaml", {"model.input_size": None})
    run_stages("embed")
    said = "images of 16 pixels are enlarged to 160, the network's own side; a smaller model.input_size is faster"
    assert f"embed: {said}" in capsys.readouterr().out
    assert torch.equal(weights(paths.INITIAL), torch.eye(len(weights(paths.INITIAL))))


def test_an_interrupted_training_finds_its_features(
    headed: Path, runs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("stages.common.pretraining.pretrain", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_stages("pretrain@oracle")
    (path,) = Path(".checkpoints").glob("features-*.npy")
    runs.clear()
    run_stages("pretrain@oracle")
    assert not runs
    assert not path.exists()


@pytest.mark.slow
def test_several_processes_keep_the_same_features(headed: Path) -> None:
    run_stages("pretrain@oracle")
    before = weights(paths.ORACLE)
    change(headed / "params.yaml", {"runtime.processes": 2})
    done = python(*stage_words("pretrain@oracle"), folder=headed)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("are computed once") == 1
    torch.testing.assert_close(weights(paths.ORACLE), before, atol=1e-3, rtol=1e-3)


def test_keys_that_other_parameters_lack() -> None:
    model = model_parameters(backbone="conv4")
    assert (model.input_size, model.keep_features) == (None, True)
    message = r"input_size: expected null with the backbone conv4, .* got 64; remove it, and"
    with pytest.raises(ValueError, match=message):
        model_parameters(backbone="conv4", input_size=64)
    with pytest.raises(ValueError, match="greater than or equal to 16"):
        model_parameters(backbone="conv4", input_size=8)
