"""A trained embedding with a logistic head as a scikit-learn classifier of images."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d
from torch import Tensor

from mela.augmentation import Augmentation
from mela.backbones import Backbone
from mela.batched_logistic import Heads, fit_heads
from mela.device import choose_device
from mela.errors import MelaError
from mela.extraction import extract_features
from mela.images import to_unit
from mela.logistic import l2_normalize
from mela.models import read_model
from mela.pictures import Pictures, list_pictures, packed_blocks

Features = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]

FINAL = "models/final.safetensors"


class FewShotClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Classify images after seeing a few of each class.

    The head is that of the stage ``evaluate`` (Eq. 8): features :math:`\psi(x)` of a trained embedding, scaled to
    length 1, and multinomial logistic regression on the support images, all classes weighing the same,

    .. math:: \min_{W, b} \sum_i s_i \, \mathrm{CE}(W \psi(x_i) + b, y_i) + \frac{1}{2 C} |W|^2.

    The embedding stays as it is, so that fitting takes milliseconds.

    Parameters
    ----------
    model : str or Path, default="models/final.safetensors"
        File of the embedding, read when it is first needed.
    device : str, default="auto"
        ``auto`` (a GPU where there is one), ``cpu``, ``cuda`` or ``cuda:N``.
    C : float, default=1.0
        Inverse regularisation of the head.
    max_iter : int, default=1000
        Newton steps at most; a handful is usual.
    support_copies : int, default=1
        Above 1, this many augmented copies take the place of each support image, as in RFS.
    augmentation : Augmentation, optional
        Of the copies; needed where there are any.
    random_state : int, RandomState or None, default=0
        Of the augmentation.

    Attributes
    ----------
    classes_ : array (K,)
        Labels, sorted.
    coef_ : float64 (K, m)
        W.
    intercept_ : float64 (K,)
        b.
    n_iter_ : int
        Newton steps.
    embedding_ : Embedding
        As it was read when the head was fitted.

    Notes
    -----
    Wherever images are asked for they are uint8 arrays (n, h, w) or (n, h, w, c), or a list of arrays, PIL images and
    paths. They may have any size and are brought to the model's; see `mela.pictures.packed_blocks`.

    Examples
    --------
    >>> from mela import FewShotClassifier
    >>> classifier = FewShotClassifier.load("models/final.safetensors")  # doctest: +SKIP
    >>> classifier.fit(["a/1.png", "a/2.png", "b/1.png"], ["a", "a", "b"]).predict(["new.png"])  # doctest: +SKIP
    array(['b'], dtype='<U1')
    """

    classes_: npt.NDArray[Any]
    coef_: Floats
    intercept_: Floats
    n_iter_: int
    embedding_: "Embedding"

    def __init__(
        self,
        model: str | Path = FINAL,
        *,
        device: str = "auto",
        C: float = 1.0,
        max_iter: int = 1000,
        support_copies: int = 1,
        augmentation: Augmentation | None = None,
        random_state: Any = 0,
    ) -> None:
        self.model = model
        self.device = device
        self.C = C
        self.max_iter = max_iter
        self.support_copies = support_copies
        self.augmentation = augmentation
        self.random_state = random_state

    @classmethod
    def load(cls, path: str | Path = FINAL, device: str = "auto", **parameters: Any) -> Self:
        """A classifier whose embedding is read at once, so that what is wrong with the file is told here.

        Parameters
        ----------
        path, device
            As `model` and `device` of the class.
        **parameters
            The others.

        Raises
        ------
        MelaError
            The file is missing, damaged or no model; the device is none of this machine.
        """
        classifier = cls(path, device=device, **parameters)
        classifier._read()
        return classifier

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the head.

        Parameters
        ----------
        X : images
            The support set; see the notes of the class.
        y : array-like (n,)
            Labels of any kind that scikit-learn takes; shots may differ from class to class.

        Raises
        ------
        ValueError
            Images or labels are not as they should be, a parameter is out of its range, the solver does not converge.
        """
        self._check_parameters()
        pictures = list_pictures(X, "support images")
        y = column_or_1d(y)
        if len(y) != len(pictures):
            raise MelaError(f"labels: expected one per support image ({len(pictures)}), got {len(y)}")
        check_classification_targets(y)
        classes, targets = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise MelaError(
                f"labels: expected two different ones or more, got only {classes[0]!s}; add images of another class"
            )
        embedding = self._read()
        support = np.stack([_joined(blocks) for blocks in self._copies(embedding, pictures)], axis=1)
        n, r, m = support.shape
        heads = fit_heads(
            l2_normalize(support.reshape(n * r, m))[None],
            targets.astype(np.int64).repeat(r)[None],
            len(classes),
            C=self.C,
            max_iter=self.max_iter,
        )
        if not heads.converged.all():
            raise MelaError(
                f"max_iter: logistic regression did not converge in {self.max_iter} iterations (C={self.C:g}); raise it"
            )
        self.embedding_, self.classes_ = embedding, classes
        self.coef_, self.intercept_, self.n_iter_ = heads.weights[0], heads.intercepts[0, :, 0], heads.iterations
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class (n,) of each image."""
        best = self._logits(X).argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities (n, K) of `classes_`; rows sum to 1."""
        logits = self._logits(X)
        exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
        return exponentials / exponentials.sum(axis=1, keepdims=True)

    def transform(self, X: Any) -> Features:
        """Features (n, m) of images as the embedding gives them, not scaled; needs no fit."""
        embedding = self.embedding_ if hasattr(self, "embedding_") else self._read()
        return _joined(embedding.blocks(list_pictures(X, "images"), "images"))

    def _logits(self, X: Any) -> Floats:
        check_is_fitted(self, "coef_")
        pictures = list_pictures(X, "query images")
        head = Heads(
            weights=self.coef_[None],
            intercepts=self.intercept_[None, :, None],
            iterations=self.n_iter_,
            converged=np.array([True]),
        )
        logits = np.empty((len(pictures), len(self.classes_)))
        done = 0
        for features in self.embedding_.blocks(pictures, "query images"):
            logits[done : done + len(features)] = head.logits(l2_normalize(features)[None])[0].T
            done += len(features)
        return logits

    def _copies(self, embedding: "Embedding", pictures: Pictures) -> Iterator[Iterator[Features]]:
        """Features of the images as they are, or of one augmented copy of each after the other."""
        if self.augmentation is None or self.support_copies == 1:
            yield embedding.blocks(pictures, "support images")
            return
        augmentation, seed = self.augmentation, self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = check_random_state(seed).randint(2**31)
        generator = torch.Generator().manual_seed(int(seed))
        for _ in range(self.support_copies):
            yield embedding.blocks(pictures, "support images", lambda batch: augmentation(batch, generator))

    def _read(self) -> "Embedding":
        """The embedding that the parameters ask for, read once."""
        asked = (str(self.model), self.device)
        there: tuple[tuple[str, str], Embedding] | None = getattr(self, "_there", None)
        if there is None or there[0] != asked:
            there = self._there = (asked, Embedding.read(Path(self.model), self.device))
        return there[1]

    def _check_parameters(self) -> None:
        for name in ("max_iter", "support_copies"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < 1:
                raise MelaError(f"{name}: expected an integer of at least 1, got {value!r}")
        if not 0 < self.C < np.inf:
            raise MelaError(f"C: expected a finite number above 0, got {self.C!r}")
        if self.support_copies > 1 and self.augmentation is None:
            raise MelaError(
                f"augmentation: expected an Augmentation, got None with support_copies={self.support_copies}; copies "
                "without changes are all the same"
            )

    def __sklearn_tags__(self) -> Any:
        """Images are no table of features."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


@dataclass(frozen=True)
class Embedding:
    """A backbone, and the size (side in pixels) and channels of the images that it takes."""

    backbone: Backbone
    size: int
    channels: int

    @classmethod
    def read(cls, path: Path, device: str) -> "Embedding":
        """From a file, onto a device by name."""
        if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
            raise MelaError(f"device: expected auto, cpu, cuda or cuda:N, got {device!r}")
        backbone, configuration = read_model(path, choose_device(device))
        return cls(backbone, configuration["size"], configuration["channels"])

    def blocks(self, pictures: Pictures, name: str, change: Callable[[Tensor], Tensor] = to_unit) -> Iterator[Features]:
        """Features (b, m) of images, a block of them at a time."""
        for block in packed_blocks(pictures, name, size=self.size, channels=self.channels):
            yield extract_features(self.backbone, block, np.arange(len(block)), change)


def _joined(blocks: Iterator[Features]) -> Features:
    return np.concatenate(list(blocks))
