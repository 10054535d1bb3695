"""Pre-training on global labels, and Proposition 1."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.special import logsumexp
from torch import Tensor, nn

from mela.data.augmentation import NONE, Augmentation
from mela.data.episodes import Episodes
from mela.errors import MelaError
from mela.models.backbones import Backbone
from mela.runtime.compute import Compute
from mela.runtime.team import Team
from mela.training.embeddings import pretrain
from mela.training.loop import Training
from mela.training.proposition1 import both_losses, proposition1
from mela.training.schedule import Schedule
from mela.training.targets import Targets
from tests.helpers.embedding import backbone as small_backbone
from tests.helpers.embedding import batch_of, state_of

SOME = Augmentation(crop_padding=1, flip=True, jitter=0.2)
SCHEDULE = Schedule(epochs=6, learning_rate=0.1, momentum=0.9, weight_decay=5e-4, milestones=[4], decay=0.1)
TRAINING = Training(stage="pretrain", schedule=SCHEDULE, seed=0)
Rows = list[tuple[int, int, int, str]]


def episodes(rows: Rows) -> Episodes:
    return Episodes(pd.DataFrame(rows, columns=["task_id", "image_id", "local_label", "role"]))


def query_tasks(queries: Sequence[Sequence[int]]) -> Episodes:
    """Tasks with the given query images, and image 0 as support."""
    rows: Rows = [(task, 0, 0, "support") for task in range(len(queries))]
    rows += [(task, image, 0, "query") for task, images in enumerate(queries) for image in images]
    return episodes(rows)


def lookup(logits: npt.NDArray[np.float64]) -> Callable[[npt.NDArray[np.int64]], Tensor]:
    return lambda ids: torch.from_numpy(logits[ids])


def losses_by_hand(
    logits: npt.NDArray[np.float64], queries: Sequence[Sequence[int]], label_of: dict[int, int]
) -> tuple[float, float]:
    """Both sides of Eq. 9, task by task."""
    restricted, unrestricted = [], []
    for images in queries:
        labelled = [image for image in images if image in label_of]
        if labelled:
            rows, labels = logits[labelled], [label_of[image] for image in labelled]
            own = rows[range(len(rows)), labels]
            restricted.append(np.mean(logsumexp(rows[:, np.unique(labels)], axis=1) - own))
            unrestricted.append(np.mean(logsumexp(rows, axis=1) - own))
    return float(np.mean(restricted)), float(np.mean(unrestricted))


@hypothesis_settings(deadline=None, max_examples=150)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_labels=st.integers(2, 8),
    scale=st.floats(0.01, 8),
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    unlabelled=st.integers(0, 15),
)
def test_proposition_1(seed: int, n_labels: int, scale: float, sizes: list[int], unlabelled: int) -> None:
    rng = np.random.default_rng(seed)
    logits = scale * (rng.normal(size=(40, 5)) @ rng.normal(size=(5, n_labels)) + rng.normal(size=n_labels))
    labelled = np.sort(rng.choice(40, 40 - unlabelled, replace=False))
    labels = rng.integers(n_labels, size=len(labelled))
    queries = [labelled[:1].tolist(), *(rng.choice(40, size, replace=False).tolist() for size in sizes)]

    both = proposition1(lookup(logits), query_tasks(queries), labelled, labels)

    assert both.task_loss <= both.global_loss + 1e-12 * (1 + both.global_loss)
    expected = losses_by_hand(logits, queries, dict(zip(labelled.tolist(), labels.tolist(), strict=True)))
    assert (both.task_loss, both.global_loss) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@hypothesis_settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), n_labels=st.integers(2, 6), n_tasks=st.integers(1, 4))
def test_both_sides_agree_exactly_when_tasks_hold_all_classes(seed: int, n_labels: int, n_tasks: int) -> None:
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(20, n_labels))
    labels = np.arange(20) % n_labels
    everywhere = [rng.permutation(20).tolist() for _ in range(n_tasks)]
    full = proposition1(lookup(logits), query_tasks(everywhere), np.arange(20), labels)
    assert full.task_loss == pytest.approx(full.global_loss, rel=1e-12)

    without_last_class = [[image for image in images if labels[image] < n_labels - 1] for images in everywhere]
    fewer = proposition1(lookup(logits), query_tasks(without_last_class), np.arange(20), labels)
    assert fewer.task_loss < fewer.global_loss


def test_proposition_1_does_not_depend_on_blocks_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    logits, queries = rng.normal(size=(30, 4)), [rng.choice(30, 1 + k % 5).tolist() for k in range(11)]
    arguments = lookup(logits), query_tasks(queries), np.arange(30), np.arange(30) % 4
    whole = proposition1(*arguments)
    for tasks in (1, 3, 11):
        # logits of float32 for five images a task and four labels
        monkeypatch.setattr("mela.training.proposition1.BLOCK_BYTES", tasks * 5 * 4 * 4)
        parts = proposition1(*arguments)
        assert (parts.task_loss, parts.global_loss) == pytest.approx((whole.task_loss, whole.global_loss), rel=1e-12)


def test_images_without_a_label_are_left_out() -> None:
    logits = np.random.default_rng(0).normal(size=(10, 3))
    image_ids, labels = np.array([2, 3, 5]), np.array([0, 2, 1])
    with_others = proposition1(lookup(logits), query_tasks([[2, 3, 7, 8], [9, 6], [5, 3, 1]]), image_ids, labels)
    without = proposition1(lookup(logits), query_tasks([[2, 3], [5, 3]]), image_ids, labels)
    assert with_others == without


def test_support_images_do_not_count() -> None:
    logits = np.random.default_rng(0).normal(size=(10, 3))
    rows: Rows = [(0, 1, 0, "query"), (0, 2, 1, "query")]
    more: Rows = [(0, 3, 0, "support"), (0, 4, 1, "support")]
    arguments = np.arange(10), np.arange(10) % 3
    expected = proposition1(lookup(logits), episodes(rows), *arguments)
    assert proposition1(lookup(logits), episodes(more + rows), *arguments) == expected


def test_no_labels_at_all() -> None:
    with pytest.raises(MelaError, match=r"no query image of the training tasks has a label"):
        proposition1(lookup(np.zeros((5, 2))), query_tasks([[1, 2]]), np.array([3]), np.array([0]))


def stripes(count: int, n_labels: int = 3) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Noisy 16 x 16 images with horizontal, vertical or diagonal stripes, and which they have."""
    rng = np.random.default_rng(0)
    labels = np.arange(count) % n_labels
    row, column = np.mgrid[:16, :16]
    phases = rng.integers(6, size=count)
    waves = np.stack([row, column, row + column])[labels] + phases[:, None, None]
    images = 110 + 80 * (waves % 6 < 3) + rng.normal(scale=20, size=(count, 16, 16))
    return images.clip(0, 255).astype(np.uint8)[..., None], labels


def backbone(seed: int = 0, name: str = "conv4") -> Backbone:
    return small_backbone(name, seed=seed, drop_rate=0.2)


def hard(image_ids: npt.NDArray[np.int64], labels: npt.NDArray[np.int64]) -> Targets:
    return Targets(image_ids=image_ids, labels=labels)


def soft(shares: npt.NDArray[np.float64]) -> Targets:
    return Targets(image_ids=np.arange(len(shares)), labels=shares.argmax(axis=1), shares=csr_array(shares))


def run(seed: int = 0, targets: Targets | None = None, **changes: Any) -> tuple[Backbone, nn.Linear, list[float]]:
    images, labels = stripes(90)
    model = backbone()
    how = {"batch_size": changes.pop("batch_size", 16), "label_smoothing": changes.pop("label_smoothing", 0.0)}
    training = replace(TRAINING, **{"augmentation": SOME, "seed": seed} | changes)
    classifier, curve = pretrain(model, images, targets or hard(np.arange(90), labels), training, **how)
    return model, classifier, [epoch.loss for epoch in curve]


def test_training_learns() -> None:
    images, labels = stripes(90)
    model, classifier, losses = run(augmentation=NONE)
    assert len(losses) == 6
    assert losses[-1] < 0.5 * losses[0]
    assert not model.training
    with torch.inference_mode():
        logits = classifier(model(batch_of(images)))
    assert logits.shape == (90, 3)
    assert (logits.argmax(1).numpy() == labels).mean() > 0.9


def test_smoothed_labels_are_shares_of_all_labels() -> None:
    """1 - s of each target, and s / 3 of every label."""
    _, labels = stripes(90)
    shares = 0.7 * np.eye(3)[labels] + 0.1
    _, smoothed, losses = run(label_smoothing=0.3)
    _, expected, others = run(targets=soft(shares))
    assert losses == pytest.approx(others, rel=1e-4)
    torch.testing.assert_close(smoothed.weight, expected.weight, rtol=1e-2, atol=1e-3)


def test_only_the_given_images_and_labels_are_learnt() -> None:
    """Rows of other images hold another truth; the classifier has to find the labels that go with `image_ids`."""
    images, labels = stripes(180)
    image_ids = np.arange(179, 90, -1)
    names = np.array([2, 0, 1])[labels[image_ids]]
    model = backbone()
    classifier, _ = pretrain(model, images, hard(image_ids, names), TRAINING, batch_size=16)
    with torch.inference_mode():
        logits = classifier(model(batch_of(images[image_ids])))
    assert (logits.argmax(1).numpy() == names).mean() > 0.9


def test_the_seed_alone_decides() -> None:
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first, classifier, losses = run(seed=3)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    again, same_classifier, same_losses = run(seed=3)
    _, other_classifier, other_losses = run(seed=4)
    assert losses == same_losses
    assert losses != other_losses
    assert torch.equal(classifier.weight, same_classifier.weight)
    assert not torch.equal(classifier.weight, other_classifier.weight)
    torch.testing.assert_close(first.state_dict(), again.state_dict(), rtol=0, atol=0)


def test_whole_shares_are_labels() -> None:
    _, labels = stripes(90)
    first, classifier, losses = run()
    again, same_classifier, same_losses = run(targets=soft(np.eye(3)[labels]))
    np.testing.assert_allclose(same_losses, losses, rtol=1e-4)
    torch.testing.assert_close(same_classifier.weight, classifier.weight, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(again.state_dict(), first.state_dict(), rtol=1e-2, atol=1e-3)


def test_the_loss_of_shares_is_the_mean_of_the_losses_of_the_labels() -> None:
    images, _ = stripes(90)
    shares = np.random.default_rng(1).dirichlet(np.ones(4), size=90)
    still = Schedule(epochs=1, learning_rate=1e-12, momentum=0, weight_decay=0, milestones=[], decay=1)
    arguments = {"augmentation": NONE, "schedule": still, "batch_size": 90}
    model, classifier, (loss,) = run(targets=soft(shares), **arguments)
    assert classifier.weight.shape[0] == 4
    with torch.inference_mode():
        logs = classifier(model.train()(batch_of(images))).double().log_softmax(1).numpy()
    assert loss == pytest.approx(-(shares * logs).sum(axis=1).mean(), rel=1e-4)


def test_shares_are_what_the_classifier_learns_to_say() -> None:
    """Images of a third kind are of the first in one half and of the second in the other."""
    images, labels = stripes(90)
    shares = np.array([[1, 0], [0, 1], [0.5, 0.5]])[labels]
    longer = replace(SCHEDULE, epochs=12, milestones=[9])
    model, classifier, _ = run(targets=soft(shares), augmentation=NONE, schedule=longer)
    with torch.inference_mode():
        said = classifier(model(batch_of(images))).softmax(1).numpy()
    for kind, wanted in enumerate([1, 0, 0.5]):
        assert said[labels == kind, 0].mean() == pytest.approx(wanted, abs=0.15)


def test_of_several_labels_the_largest_share_counts_for_proposition_1() -> None:
    images, labels = stripes(30)
    classifier = nn.Linear(backbone().dimensions, 3)
    shares = 0.2 * np.roll(np.eye(3), 1, axis=1)[labels] + 0.8 * np.eye(3)[labels]
    arguments = backbone(), classifier, images, query_tasks([[4, 7, 11], [28, 3, 9]])
    assert both_losses(*arguments, soft(shares)) == both_losses(*arguments, hard(np.arange(30), labels))


@pytest.mark.parametrize(("labels", "found"), [([0] * 9, 1), ([], 0)])
def test_fewer_than_two_labels(labels: list[int], found: int) -> None:
    images, _ = stripes(9)
    targets = hard(np.arange(len(labels)), np.array(labels, dtype=np.int64))
    with pytest.raises(MelaError, match=rf"2 global labels or more, .* have {found};"):
        pretrain(backbone(), images, targets, TRAINING, batch_size=4)


@pytest.mark.parametrize(("size", "accumulate", "batch_size", "smallest"), [(1, 3, 2, 2), (3, 1, 2, 2), (2, 4, 8, 7)])
def test_a_step_has_an_image_for_every_part_and_process(
    size: int, accumulate: int, batch_size: int, smallest: int
) -> None:
    """15 images."""
    _, labels = stripes(90)
    needed, compute = size * accumulate, Compute(team=Team(rank=0, size=size))
    message = rf"^pretrain.batch_size: .* {smallest} images, but {needed} are needed .* pretrain.accumulate$"
    with pytest.raises(MelaError, match=message):
        run(targets=hard(np.arange(15), labels[:15]), batch_size=batch_size, accumulate=accumulate, compute=compute)


@pytest.mark.parametrize("name", ["conv4", "resnet12"])
def test_both_losses_use_the_model_in_evaluation_mode(name: str) -> None:
    images, labels = stripes(30)
    model = backbone(name=name)
    with torch.no_grad():
        model.train()(torch.rand(8, 1, 16, 16, generator=torch.Generator().manual_seed(0)))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        classifier = nn.Linear(model.dimensions, 3)
    before = state_of(model)
    image_ids = np.array([4, 20, 7, 11, 3, 28, 14])
    queries = [[4, 7, 11], [28, 3, 9, 20, 14]]

    both = both_losses(model, classifier, images, query_tasks(queries), hard(image_ids, labels[image_ids]))

    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    model.eval()
    with torch.inference_mode():
        logits = classifier(model(batch_of(images))).double().numpy()
    expected = losses_by_hand(logits, queries, dict(zip(image_ids.tolist(), labels[image_ids].tolist(), strict=True)))
    assert (both.task_loss, both.global_loss) == pytest.approx(expected, rel=1e-5)
    assert both.task_loss < both.global_loss
