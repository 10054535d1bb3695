"""Every method against another way to the same figures, and that each of them learns."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.neighbors import NearestCentroid
from sklearn.svm import LinearSVC
from torch import Tensor
from torch.nn import functional as F

from mela.errors import DivergedError, MelaError
from mela.evaluation.rules import own_rule
from mela.learners.base import ImageLearner, LabelLearner, Learner, one_hot, prototypes
from mela.learners.gradient import GradientLearner, SupportBatchNorm, descend
from mela.methods import feat, find_method, frn, method_names
from mela.methods.anil import ANIL
from mela.methods.feat import FEAT
from mela.methods.fomaml import FirstOrderMAML
from mela.methods.frn import FRN
from mela.methods.leo import CODE, LEO
from mela.methods.maml import MAML
from mela.methods.matchingnet import MatchingNet
from mela.methods.metaoptnet_ridge import MetaOptNetRidge
from mela.methods.metaoptnet_svm import MetaOptNetSVM, free_variables, solve, to_simplex
from mela.methods.protonet import ProtoNet
from mela.methods.r2d2 import R2D2
from mela.methods.shot_free import ShotFree
from mela.methods.tadam import TADAM
from mela.models.backbones import Backbone
from mela.runtime.seeding import seeded
from mela.training.loop import Epoch, Training
from mela.training.on_tasks import train_on_tasks
from studies.training.variants import JointANIL, svm_with_ridge
from tests.helpers.embedding import IMAGES, SHOTS, WAYS, backbone, batch_of, episodes, features, schedule, state_of

LEARN_FROM_TASKS = [name for name in method_names() if find_method(name).sees == "tasks"]


def of(kind: type[Learner], **changes: Any) -> Any:
    learner = kind(backbone()).eval()
    for name, value in changes.items():
        getattr(learner, name).data.fill_(value)
    return learner


@pytest.mark.parametrize("name", method_names())
def test_a_method_says_what_it_is(name: str) -> None:
    method = find_method(name)
    assert method.sees in ("tasks", "labels", "images")
    assert method.title
    assert method.source[-4:].isdigit()
    if method.sees == "tasks":
        learner = method.build(backbone())
        assert isinstance(learner, Learner)
        scales = [value.item() for parameter, value in learner.named_parameters() if parameter == "scale"]
        assert scales == pytest.approx([] if learner.initial_scale is None else [learner.initial_scale])
    else:
        kind = LabelLearner if method.sees == "labels" else ImageLearner
        assert isinstance(method.build(backbone(), 3), kind)


def test_methods_that_do_not_exist() -> None:
    with pytest.raises(MelaError, match=r"^method 'protonets': .* choose one of anil, .*protonet"):
        find_method("protonets")


def test_protonet_is_the_nearest_centroid() -> None:
    support, labels, query, _ = features()
    logits = of(ProtoNet).logits(support, labels, query, WAYS)
    means = prototypes(support, labels, WAYS)
    torch.testing.assert_close(logits, -torch.cdist(query, means).square(), atol=1e-4, rtol=1e-4)
    for task in range(len(support)):
        nearest = NearestCentroid().fit(support[task].numpy(), labels[task].numpy())
        np.testing.assert_allclose(means[task], nearest.centroids_, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(logits[task].argmax(1), nearest.predict(query[task].numpy()))


def test_matchingnet_by_hand() -> None:
    support = torch.tensor([[[3.0, 4.0], [1.0, 0.0], [0.0, 2.0]]])
    query = torch.tensor([[[2.0, 0.0]]])
    weights = np.exp(10 * np.array([0.6, 1.0, 0.0]))
    expected = np.log(np.array([weights[0] + weights[2], weights[1]]) / weights.sum())
    found = of(MatchingNet, scale=10.0).logits(support, torch.tensor([[0, 1, 0]]), query, 2)
    np.testing.assert_allclose(found[0, 0].detach(), expected, rtol=1e-5)


@pytest.mark.parametrize(("kind", "regularizer"), [(R2D2, 2.0), (MetaOptNetRidge, 50.0), (MetaOptNetRidge, 1.0)])
def test_ridge_heads_are_those_of_scikit_learn(kind: type[Learner], regularizer: float) -> None:
    support, labels, query, _ = features(dtype=torch.float64)
    changes = {"log_lambda": np.log(regularizer), "shift": 0.5} if kind is R2D2 else {}
    learner = of(kind, scale=3.0, **changes).double()
    if kind is not R2D2:
        learner.regularizer = regularizer
    found = learner.logits(support, labels, query, WAYS).detach().numpy()
    for task in range(len(support)):
        design, asked = (np.pad(x[task].numpy(), ((0, 0), (0, 1)), constant_values=1) for x in (support, query))
        model = Ridge(alpha=regularizer, fit_intercept=False).fit(design, one_hot(labels[task], WAYS).numpy())
        np.testing.assert_allclose(found[task], 3 * model.predict(asked) + changes.get("shift", 0), atol=1e-6)


def test_r2d2_starts_from_a_ridge_head() -> None:
    support, labels, query, _ = features()
    ridge = of(MetaOptNetRidge)
    ridge.regularizer = R2D2.initial_lambda
    found = [learner.logits(support, labels, query, WAYS) for learner in (of(R2D2), ridge)]
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("ridge", [0.0, MetaOptNetSVM.ridge, 50.0])
@pytest.mark.parametrize("regularizer", [0.01, MetaOptNetSVM.regularizer, 1.0])
def test_support_vector_machine_is_that_of_liblinear(regularizer: float, ridge: float) -> None:
    """A ridge on the Gram matrix is a dimension of its own for each support image, of the root of the ridge.

    The quadratic program that the authors of MetaOptNet have is its dual, with a ridge of 1 and a regularizer of 0.1.
    """
    support, labels, query, _ = features(dtype=torch.float64)
    learner = of(MetaOptNetSVM, scale=1.0).double()
    learner.regularizer, learner.ridge = regularizer, ridge
    found = learner.logits(support, labels, query, WAYS).detach().numpy()
    count = support.shape[1]
    for task in range(len(support)):
        machine = LinearSVC(multi_class="crammer_singer", C=regularizer, fit_intercept=False, max_iter=10**6, tol=1e-9)
        machine.fit(np.hstack([support[task].numpy(), ridge**0.5 * np.eye(count)]), labels[task].numpy())
        asked = np.pad(query[task].numpy(), ((0, 0), (0, count)))
        np.testing.assert_allclose(found[task], machine.decision_function(asked), atol=1e-4)


def test_variants_of_the_support_vector_machine_have_other_ridges() -> None:
    support, labels, query, _ = features(dtype=torch.float64)
    own = of(MetaOptNetSVM).double()
    for ridge in (0.0, 50.0):
        other = svm_with_ridge(backbone(), ridge).double()
        own.ridge = ridge
        torch.testing.assert_close(other.logits(support, labels, query, WAYS), own.logits(support, labels, query, WAYS))
    assert (MetaOptNetSVM.ridge, MetaOptNetSVM.regularizer) == (1, 0.1)


def test_joint_statistics_are_those_of_all_images_of_a_task() -> None:
    images = torch.rand(1, 20, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(8)[None] % WAYS
    plain, joint = (kind(backbone()).eval() for kind in (ANIL, JointANIL))
    changed = images.clone()
    changed[:, -1] = 1 - changed[:, -1]

    def of_others(learner: Learner, of: Tensor) -> Tensor:
        return learner.logits(of[:, :8], labels, of[:, 8:], WAYS)[:, :-1]

    torch.testing.assert_close(of_others(plain, images), of_others(plain, changed))
    assert not torch.allclose(of_others(joint, images), of_others(joint, changed), atol=1e-4)


def test_support_vector_machine_is_differentiated_where_it_is_solved() -> None:
    support, labels, _, _ = features(dtype=torch.float64)
    gram, targets = support @ support.mT, one_hot(labels, WAYS, torch.float64)
    free = free_variables(gram, targets, 0.1)
    assert 0.2 < free.double().mean() < 0.9, "some bounds are active, some are not"

    def dual(changed: Tensor) -> Tensor:
        return solve(changed, targets, free_variables(changed.detach(), targets, 0.1), 0.1)

    way = torch.randn(gram.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    way = way + way.mT
    numeric = (dual(gram + 1e-6 * way) - dual(gram - 1e-6 * way)) / 2e-6
    _, exact = torch.autograd.functional.jvp(dual, gram, way)
    assert numeric.abs().max() > 1e-3
    torch.testing.assert_close(exact, numeric, atol=1e-6, rtol=1e-4)


def test_projection_to_the_simplex() -> None:
    points = torch.randn(200, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = to_simplex(points, 0.3)
    torch.testing.assert_close(found.sum(1), torch.full((200,), 0.3, dtype=torch.float64))
    assert (found >= 0).all()
    others = torch.distributions.Dirichlet(torch.ones(5, dtype=torch.float64)).sample((1000,)) * 0.3
    assert (torch.cdist(points, others).min(1).values >= (points - found).norm(dim=1)).all(), "none is nearer"


def test_feat_is_that_of_easyfsl() -> None:
    easyfsl = pytest.importorskip("easyfsl.methods")
    modules = pytest.importorskip("easyfsl.modules")
    support, labels, query, _ = features(m=backbone().dimensions)
    learner = FEAT(backbone()).eval()
    m = learner.backbone.dimensions
    attention = modules.MultiHeadAttention(1, m, m, m).eval()
    own = learner.transformer
    q, k, v = own.attention.in_proj_weight.detach().chunk(3)
    for layer, weight in [(attention.w_qs, q), (attention.w_ks, k), (attention.w_vs, v)]:
        layer.weight.data.copy_(weight)
    attention.fc.weight.data.copy_(own.attention.out_proj.weight.data)
    attention.fc.bias.data.zero_()
    other = easyfsl.FEAT(torch.nn.Identity(), attention_module=attention).eval()
    found = learner.logits(support, labels, query, WAYS)
    for task in range(len(support)):
        other.process_support_set(support[task], labels[task])
        torch.testing.assert_close(found[task], -other(query[task]).square() / feat.TEMPERATURE, atol=1e-4, rtol=1e-4)


def test_feat_asks_whole_classes_to_stay_together() -> None:
    support, labels, query, asked = features(m=backbone().dimensions)
    learner = FEAT(backbone()).eval()
    every, own = torch.cat([support, query], 1), torch.cat([labels, asked], 1)
    losses, _ = learner.losses(every, own, support.shape[1], WAYS)
    logits = learner.logits(support, labels, query, WAYS)
    for task in range(len(support)):
        few = F.cross_entropy(logits[task], asked[task])
        sets = [learner.transformer(every[task][own[task] == way][None])[0].mean(0) for way in range(WAYS)]
        whole = F.cross_entropy(-torch.cdist(every[task], torch.stack(sets)).square() / feat.TEMPERATURE, own[task])
        torch.testing.assert_close(losses[task], few + feat.BALANCE * whole)


def test_frn_puts_maps_together_by_ridge_regression() -> None:
    generator = torch.Generator().manual_seed(0)
    r, d = 4, 5
    labels = torch.arange(WAYS).repeat(SHOTS)[None]
    support = torch.randn(1, WAYS * SHOTS, r, d, generator=generator)
    query = torch.randn(1, 2, r, d, generator=generator)
    found = of(FRN, alpha=0.3, beta=-0.2, gamma=1.5).logits(support, labels, query, WAYS).detach().numpy()
    for way in range(WAYS):
        rows = support[0][labels[0] == way].reshape(-1, d).numpy()
        model = Ridge(alpha=len(rows) / d * np.exp(0.3), fit_intercept=False)
        for number in range(2):
            parts = model.fit(rows.T, query[0, number].numpy().T).coef_
            distance = np.square(np.exp(-0.2) * parts @ rows - query[0, number].numpy()).sum(1).mean()
            np.testing.assert_allclose(found[0, number, way], -1.5 * distance, rtol=1e-4)


def test_frn_keeps_vectors_of_different_classes_apart() -> None:
    generator = torch.Generator().manual_seed(0)
    own = torch.arange(WAYS).repeat(SHOTS + 2)[None]
    maps = torch.randn(1, own.shape[1], 4, 5, generator=generator)
    n_support, learner = WAYS * SHOTS, of(FRN)
    found, _ = learner.losses(maps, own, n_support, WAYS)
    logits = learner.logits(maps[:, :n_support], own[:, :n_support], maps[:, n_support:], WAYS)
    directions, of_support = F.normalize(maps[0, :n_support], dim=2), own[0, :n_support]
    cosines = torch.einsum("aid,bjd->abij", directions, directions)
    alike = cosines[of_support[:, None] != of_support].square().mean().item()
    expected = F.cross_entropy(logits[0], own[0, n_support:]).item() + frn.APART * alike
    assert found.item() == pytest.approx(expected, rel=1e-5)


def test_frn_sees_the_maps_before_they_are_pooled() -> None:
    for name in ("conv4", "resnet12"):
        body = backbone(name, size=32)
        learner = FRN(body).eval()
        images = torch.rand(2, 1, 32, 32)
        maps = learner(images)
        assert maps.shape[:2] == (2, 4)
        pooled = maps.mean(1) if name == "resnet12" else maps.mT.flatten(1)
        torch.testing.assert_close(pooled * maps.shape[2] ** 0.5, body(images))


def images_of_tasks(tasks: int = 2) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(3).repeat(2).expand(tasks, -1)
    asked = torch.arange(3).expand(tasks, -1)
    shown = torch.rand(tasks, 9, 1, 16, 16, generator=generator, dtype=torch.float64)
    return shown[:, :6], labels, shown[:, 6:], asked


def smooth(kind: type[GradientLearner]) -> GradientLearner:
    """A learner with derivatives everywhere, in float64, that has gone some way from its start."""
    maps = [torch.nn.Conv2d(1, 3, 3, stride=4), torch.nn.BatchNorm2d(3), torch.nn.Tanh()]
    body = torch.nn.Sequential(*maps, torch.nn.Flatten(), torch.nn.Linear(48, 4))
    torch.manual_seed(0)
    for parameter in body.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    learner = kind(Backbone(body, 4, [0.5], [0.25])).double()
    return learner.train()


def outer_loss(learner: GradientLearner) -> Tensor:
    support, labels, query, asked = images_of_tasks()
    losses, _ = learner.losses(torch.cat([support, query], 1), torch.cat([labels, asked], 1), 6, 3)
    return losses.mean()


@pytest.mark.parametrize("kind", [MAML, ANIL])
def test_second_order_gradients_are_those_of_the_whole_way(kind: type[GradientLearner]) -> None:
    learner = smooth(kind)
    outer_loss(learner).backward()
    generator = torch.Generator().manual_seed(1)
    for name, parameter in learner.named_parameters():
        assert parameter.grad is not None, name
        way = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        start = parameter.data.clone()
        found = []
        for sign in (1, -1):
            parameter.data = start + sign * 1e-6 * way
            found.append(outer_loss(learner).item())
        parameter.data = start
        np.testing.assert_allclose((parameter.grad * way).sum(), (found[0] - found[1]) / 2e-6, rtol=1e-4, atol=1e-7)


def test_first_order_gradients_are_those_at_the_end_of_the_way() -> None:
    first, second = smooth(FirstOrderMAML), smooth(MAML)
    for learner in (first, second):
        outer_loss(learner).backward()
    assert outer_loss(first).item() == pytest.approx(outer_loss(second).item()), "the steps are the same"
    one, other = (dict(learner.named_parameters())["backbone.body.4.weight"].grad for learner in (first, second))
    assert not torch.allclose(one, other)
    learner = smooth(FirstOrderMAML)
    support, labels, query, asked = (x[0] for x in images_of_tasks(1))
    start = {"head": torch.zeros(3, 4, dtype=torch.float64), "bias": torch.zeros(3, dtype=torch.float64)}
    weights = dict(learner.backbone.named_parameters()) | start
    for step in range(learner.steps + 1):
        weights = {name: value.detach().requires_grad_() for name, value in weights.items()}
        end = step == learner.steps
        images, own = (torch.cat([support, query]), asked) if end else (support, labels)
        known = learner._features(weights, images, 6)[6 if end else 0 :]
        loss = F.cross_entropy(F.linear(known, weights["head"], weights["bias"]), own)
        gradients = dict(zip(weights, torch.autograd.grad(loss, list(weights.values())), strict=True))
        if not end:
            weights = {name: value - learner.rate * gradients[name] for name, value in weights.items()}
    learner.losses(torch.cat([support, query])[None], torch.cat([labels, asked])[None], 6, 3)[0].mean().backward()
    for name, parameter in learner.backbone.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[name])


def test_anil_leaves_the_features_as_they_are() -> None:
    learner = smooth(ANIL).eval()
    support, labels, query, _ = images_of_tasks(1)
    logits = learner.logits(support, labels, query, 3)[0]
    known = learner._features({}, torch.cat([support[0], query[0]]), 6).detach()
    head, bias = torch.zeros(3, 4, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    for _ in range(learner.test_steps):
        error = (F.linear(known[:6], head, bias).softmax(1) - one_hot(labels[0], 3)) / 6
        head, bias = head - learner.rate * error.T @ known[:6], bias - learner.rate * error.sum(0)
    torch.testing.assert_close(logits, F.linear(known[6:], head, bias))


@pytest.mark.parametrize("kind", [MAML, FirstOrderMAML, ANIL])
def test_a_query_image_says_nothing_about_the_others(kind: type[GradientLearner]) -> None:
    learner = smooth(kind).eval()
    support, labels, query, _ = images_of_tasks(1)
    every = learner.logits(support, labels, query, 3)
    alone = torch.cat([learner.logits(support, labels, query[:, i : i + 1], 3) for i in range(3)], 1)
    torch.testing.assert_close(every, alone)
    assert not every.requires_grad


def test_batch_norm_of_a_support_set() -> None:
    norm = torch.nn.BatchNorm2d(3)
    maps = torch.randn(7, 3, 4, 4)
    expected = torch.nn.BatchNorm2d(3)(maps[:5])
    norm.__class__ = SupportBatchNorm
    norm.n_support = 5  # type: ignore[assignment]
    torch.testing.assert_close(norm(maps)[:5], expected)
    norm.n_support = None
    torch.testing.assert_close(norm.eval()(maps), F.batch_norm(maps, norm.running_mean, norm.running_var))  # type: ignore[arg-type]


@pytest.mark.parametrize("learning", [False, True])
def test_gradient_steps_on_a_parabola(*, learning: bool) -> None:
    """Each step leaves a share of 1 - rate of the way, also of a change of the start."""
    start, rate = torch.tensor([3.0, -1.0], requires_grad=True), torch.tensor(0.25, requires_grad=True)
    found = descend(start, lambda x: (x - 1).square().sum() / 2, rate, 4, learning=learning)
    torch.testing.assert_close(found.detach(), 1 + 0.75**4 * (start.detach() - 1))
    assert found.requires_grad == learning
    if learning:
        gradients = torch.autograd.grad(found.sum(), [start, rate])
        torch.testing.assert_close(gradients[0], torch.full((2,), 0.75**4))
        torch.testing.assert_close(gradients[1], (-4 * 0.75**3 * (start.detach() - 1)).sum())
    with torch.no_grad():
        torch.testing.assert_close(descend(start, lambda x: (x - 1).square().sum() / 2, 0.25, 4, learning=False), found)


def test_shot_free_models_by_hand() -> None:
    """Of every task on its own, by the gradient on paper."""
    support, labels, query, _ = features(dtype=torch.float64)
    support, query = F.normalize(support, dim=2), F.normalize(query, dim=2)
    learner = of(ShotFree, scale=7.0, rate=0.3).double()
    found = learner.logits(support, labels, query, WAYS)
    for task, (known, own, asked) in enumerate(zip(support, labels, query, strict=True)):
        models = prototypes(known[None], own[None], WAYS)[0]
        for _ in range(5):
            logits = -7 * torch.cdist(known[None], models[None])[0].square()
            errors = (logits.softmax(1) - one_hot(own, WAYS)) / len(known)
            models = models - 0.3 * 14 * (errors.T @ known - errors.sum(0)[:, None] * models)
        expected = -7 * torch.cdist(asked[None], models[None])[0].square()
        torch.testing.assert_close(found[task], expected, atol=1e-6, rtol=1e-6)
    with torch.no_grad():
        torch.testing.assert_close(learner.logits(support, labels, query, WAYS), found)


def test_shot_free_steps_are_differentiated() -> None:
    """Against differences of what training computes, of the support features and of the rate."""
    support, labels, query, _ = (x[:1, :8] for x in features(dtype=torch.float64))
    learner = of(ShotFree, scale=3.0, rate=0.3).double().train()

    def logits(known: Tensor, rate: Tensor) -> Any:
        return torch.func.functional_call(Logits(learner), {"learner.rate": rate}, (known, labels, query))

    rate = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(logits, (support.clone().requires_grad_(), rate))


class Logits(torch.nn.Module):
    """A learner's logits as what a module computes."""

    def __init__(self, learner: Learner) -> None:
        super().__init__()
        self.learner = learner

    def forward(self, support: Tensor, labels: Tensor, query: Tensor) -> Tensor:
        return self.learner.logits(support, labels, query, WAYS)


def test_shot_free_lengths_are_one() -> None:
    images = batch_of(IMAGES[:5])
    learner = of(ShotFree)
    found = learner(images)
    assert found.shape == (5, 2 * learner.backbone.dimensions)
    torch.testing.assert_close(found.norm(dim=1), torch.ones(5))


def leo() -> LEO:
    learner: LEO = of(LEO, code_rate=0.7, classifier_rate=0.2).double()
    return learner


def test_leo_by_hand() -> None:
    """Pair by pair, and by the gradients on paper; the features have the backbone's dimensions."""
    learner = leo()
    support, labels, query, _ = features(m=learner.backbone.dimensions, dtype=torch.float64)
    found = learner.logits(support, labels, query, WAYS)
    width = support.shape[2]
    decoder = learner.decoder.weight.detach()[:width]

    def gradient(weights: Tensor, known: Tensor, own: Tensor) -> Tensor:
        errors = (known @ weights.T).softmax(1) - one_hot(own, WAYS)
        return errors.T @ known / SHOTS

    for task, (known, own, asked) in enumerate(zip(support, labels, query, strict=True)):
        codes = learner.encoder(known).detach()
        pairs = torch.stack([torch.stack([torch.cat([one, other]) for other in codes]) for one in codes])
        related = learner.relations(pairs).mean(1).detach()
        means = torch.stack([related[own == way].mean(0)[:CODE] for way in range(WAYS)])
        for _ in range(5):
            means = means - 0.7 * gradient(means @ decoder.T, known, own) @ decoder
        weights = means @ decoder.T
        for _ in range(5):
            weights = weights - 0.2 * gradient(weights, known, own)
        torch.testing.assert_close(found[task], asked @ weights.T, atol=1e-8, rtol=1e-6)
    assert not found.requires_grad


def test_leo_penalties(monkeypatch: pytest.MonkeyPatch) -> None:
    """The divergence from a standard normal, by its formula, and the cosines of what the decoder makes."""
    learner = leo().eval()
    monkeypatch.setattr("mela.methods.leo.CODE_WEIGHT", 0.0)
    support, labels, query, asked = features(m=learner.backbone.dimensions, dtype=torch.float64)
    about = learner._distribution(support, labels, WAYS)
    mean, deviation = about.mean, about.stddev
    divergence = (mean.square() + deviation.square() - 1) / 2 - deviation.log()
    penalties = learner.classifiers(support, labels, WAYS)[1]
    torch.testing.assert_close(penalties, 1e-3 * divergence.mean((1, 2)), atol=1e-8, rtol=1e-5)
    cosines = torch.tensor(np.corrcoef(learner.decoder.weight.detach().numpy().T))
    centred = learner.decoder.weight.detach()
    learner.decoder.weight.data = centred - centred.mean(0)
    expected = (cosines - torch.eye(CODE)).square().mean()
    torch.testing.assert_close(learner._correlation().detach(), expected)
    every, own = torch.cat([support, query], 1), torch.cat([labels, asked], 1)
    logits = learner.logits(support, labels, query, WAYS)
    entropies = F.cross_entropy(logits.mT, asked, reduction="none").mean(1)
    losses, _ = learner.losses(every, own, WAYS * SHOTS, WAYS)
    penalties = learner.classifiers(support, labels, WAYS)[1]
    torch.testing.assert_close(losses, entropies + penalties + 1e-3 * learner._correlation())


def test_leo_keeps_first_codes_near_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = leo()
    support, labels, _, _ = features(m=learner.backbone.dimensions, dtype=torch.float64)
    monkeypatch.setattr("mela.methods.leo.KL_WEIGHT", 0.0)
    monkeypatch.setattr("mela.methods.leo.CODE_WEIGHT", 2.0)
    found: dict[int, Tensor] = {}
    monkeypatch.setattr("mela.methods.leo.descend", lambda start, *a, **k: found.setdefault(len(found), start + 3))
    penalties = learner.classifiers(support, labels, WAYS)[1]
    torch.testing.assert_close(penalties, torch.full((3,), 2 * 9.0, dtype=torch.float64))
    assert len(found) == 2, "codes, and then classifiers"


def test_leo_draws_in_training() -> None:
    """Codes around means by a tenth of the exponential of what the relations say, weights by a share of their own."""
    learner = leo().train()
    learner.drop.eval()
    support, labels, _, _ = features(m=learner.backbone.dimensions, dtype=torch.float64)
    about = learner._distribution(support, labels, WAYS)
    codes = learner.encoder(support)
    pairs = [codes[:, :, None].expand(-1, -1, 12, -1), codes[:, None].expand(-1, 12, -1, -1)]
    logarithms = prototypes(learner.relations(torch.cat(pairs, 3)).mean(2), labels, WAYS)[..., CODE:]
    torch.testing.assert_close(about.stddev, 0.1 * logarithms.exp())
    width = learner.backbone.dimensions
    means, logarithms = learner.decoder(about.mean).split(width, dim=2)
    spread = (np.sqrt(2 / (WAYS + width)) * logarithms.exp()).detach()
    with seeded(0), torch.no_grad():
        drawn = torch.stack([learner._decode(about.mean) for _ in range(3000)])
    torch.testing.assert_close(drawn.std(0), spread, rtol=0.1, atol=0)
    torch.testing.assert_close(drawn.mean(0), means.detach(), rtol=0, atol=0.1 * float(spread.max()))
    torch.testing.assert_close(learner.eval()._decode(about.mean), means)


def test_leo_leaves_the_embedding_as_it_is() -> None:
    learner = LEO(backbone())
    before = state_of(learner.backbone)
    tasks = episodes([([2, 2, 2], 4)] * 6)
    chosen = replace(schedule(2), learning_rate=0.003, optimizer="adam")
    train_on_tasks(learner, IMAGES, tasks, Training(stage="methods", schedule=chosen, seed=0), tasks_per_epoch=None)
    torch.testing.assert_close(learner.backbone.state_dict(), before, rtol=0, atol=0)
    for parameter in (learner.encoder.weight, learner.code_rate, learner.classifier_rate):
        assert parameter.grad is not None
    assert learner.encoder.weight.grad.abs().max() > 0


@pytest.mark.parametrize("name", ["conv4", "resnet12"])
def test_tadam_sets_the_network_for_the_task(name: str) -> None:
    learner = TADAM(backbone(name)).eval()
    learner.scale.data.fill_(2.0)
    images = batch_of(IMAGES[:24])
    labels = torch.arange(4).repeat(3)[None]
    task = images[None, :12], labels, images[None, 12:], 4
    known = learner.backbone(images)
    plain = -2 * torch.cdist(known[None, 12:], prototypes(known[None, :12], labels, 4)).square()
    torch.testing.assert_close(learner.logits(*task), plain, atol=1e-3, rtol=1e-3, msg="no condition at the start")
    for condition in learner.conditions:
        condition.strength.data.fill_(0.5)
    maps = (images - learner.backbone.mean) / learner.backbone.std
    embedded, number = prototypes(known[None, :12], labels, 4)[0].mean(0), 0
    for layer in learner.backbone.body:
        maps = layer(maps)
        if type(layer).__name__ in ("BatchNorm2d", "ResidualBlock"):
            scale, shift = (0.5 * learner.conditions[number].network(embedded)).chunk(2)
            maps, number = maps * (1 + scale[:, None, None]) + shift[:, None, None], number + 1
    assert number == 4
    expected = -2 * torch.cdist(maps[None, 12:], prototypes(maps[None, :12], labels, 4)).square()
    torch.testing.assert_close(learner.logits(*task), expected, atol=1e-3, rtol=1e-3)
    assert not torch.allclose(expected, plain, atol=1e-2)


def test_tadam_remembers_statistics_of_what_it_computes_with() -> None:
    learner = TADAM(backbone()).train()
    for condition in learner.conditions:
        condition.strength.data.fill_(2.0)
    images = batch_of(IMAGES[:24])
    second = next(module for module in list(learner.backbone.body)[4:] if isinstance(module, torch.nn.BatchNorm2d))
    seen = []
    second.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0].mean((0, 2, 3)).detach()))
    learner.logits(images[None, :12], torch.arange(4).repeat(3)[None], images[None, 12:], 4)
    torch.testing.assert_close(second.running_mean, 0.1 * seen[1], msg="of the second way through alone")
    assert second.momentum == 0.1


@pytest.mark.parametrize("name", LEARN_FROM_TASKS)
def test_the_order_of_a_support_set_makes_no_difference(name: str) -> None:
    learner = find_method(name).build(backbone()).eval()
    images = batch_of(IMAGES[:30])
    labels = torch.arange(5).repeat(4)[None]
    with torch.no_grad():
        known = learner(images)[None]
        order = torch.randperm(20, generator=torch.Generator().manual_seed(0))
        one = learner.logits(known[:, :20], labels, known[:, 20:], 5)
        other = learner.logits(known[:, :20][:, order], labels[:, order], known[:, 20:], 5)
        renamed = learner.logits(known[:, :20], (labels + 1) % 5, known[:, 20:], 5)
    assert one.shape == (1, 10, 5)
    torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(one.roll(1, dims=2), renamed, atol=1e-4, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARN_FROM_TASKS)
def test_a_method_learns(name: str) -> None:
    """New tasks of the same six patterns: far above chance, 33%, and above what it knew at the start.

    LEO starts from an embedding that knows them, and stays there; what learns to be adapted learns more slowly, and so
    takes steps three times as long.
    """
    with seeded(0):
        learner = find_method(name).build(backbone())
    longer = 3 if isinstance(learner, GradientLearner) else 1
    training, test = episodes([([2, 2, 2], 4)] * 60), episodes([([2, 2, 2], 4)] * 30)

    def train(chosen: Learner) -> list[Epoch]:
        own = replace(schedule(3), learning_rate=longer * chosen.learning_rate, optimizer=chosen.optimizer)
        how = Training(stage="methods", schedule=own, seed=0)
        return train_on_tasks(chosen, IMAGES, training, how, tasks_per_epoch=None)

    if name == "leo":
        start = ProtoNet(backbone())
        train(start)
        learner.backbone.load_state_dict(start.backbone.state_dict())
    before = own_rule(learner, IMAGES, test, [2])["accuracy"].mean()
    curve = train(learner)
    after = own_rule(learner, IMAGES, test, [2])["accuracy"].mean()
    assert after > (95 if name == "leo" else max(60, before)), (before, after)
    assert curve[-1].loss < curve[0].loss


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (MetaOptNetRidge, "ridge regression"),
        (R2D2, "ridge regression"),
        (MetaOptNetSVM, "the support vector machine failed"),
    ],
)
@pytest.mark.parametrize("large", [torch.nan, 1e30])
def test_a_head_without_a_solution_says_which_rate_to_lower(kind: type[Learner], said: str, large: float) -> None:
    learner = kind(backbone())
    with torch.no_grad():
        [*learner.backbone.parameters()][-1].fill_(large)
    own = replace(schedule(1), learning_rate=0.25, rate_name="learning_rate of it")
    wanted = rf"^methods: task \d+: {said}.*; lower learning_rate of it \(now 0\.25\)$"
    training, tasks = Training(stage="methods", schedule=own, seed=0), episodes([([2, 2, 2], 4)] * 3)
    with pytest.raises(DivergedError, match=wanted):
        train_on_tasks(learner, IMAGES, tasks, training, tasks_per_epoch=None)


@pytest.mark.parametrize("kind", [MetaOptNetRidge, MetaOptNetSVM])
def test_a_rule_without_a_solution_names_the_task(kind: type[Learner]) -> None:
    """Features are finite, and their squares are not."""
    learner = kind(backbone())
    with torch.no_grad():
        [*learner.backbone.parameters()][-1].fill_(1e30)
    with pytest.raises(DivergedError, match=r"^task 0: .*; train again with a lower learning rate$"):
        own_rule(learner, IMAGES, episodes([([2, 2, 2], 4)] * 3), [1])
