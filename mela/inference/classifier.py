"""Define a scikit-learn classifier of images by a trained model that has seen a few of each class."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from mela.data.array_types import Features, Floats, Ints
from mela.data.augmentation import Augmentation
from mela.errors import MelaError
from mela.evaluation.heads import l2_normalize
from mela.evaluation.unknown import class_cosines
from mela.inference.embedding import Embedding
from mela.inference.input_images import Pictures, list_pictures
from mela.labeling.name_checks import require_names, require_one_type
from mela.learners.logistic import Heads, fit_heads
from mela.params import UseParams

AUTO, LOGISTIC = "auto", "logistic"
SHOWN = 10
OF_HEADS = ("coef_", "intercept_", "n_iter_", "temperature_", "calibrated_", "threshold_")


class FewShotClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Classify images after seeing a few of each class.

    The head is that of the stage ``evaluate`` (Eq. 8): features :math:`\psi(x)` of a trained embedding, scaled to
    length 1, and multinomial logistic regression on the support images, whose weights s sum to the same in each class,

    .. math:: \min_{W, b} \sum_i s_i \, \mathrm{CE}(W \psi(x_i) + b, y_i) + \frac{1}{2 C} |W|^2.

    The embedding does not change. Fitting the head takes milliseconds once the features are computed. A method that has
    learned from tasks, such as FEAT or FRN, classifies by its own rule, as in the tables of systems. If a rule learns
    from the support set, by gradient steps (MAML and its relatives, LEO) or a solver, it does so whenever images are
    classified.

    Parameters
    ----------
    model : str or Path, optional
        File of an embedding, or of what a method has learned, read when it is first needed. By default it is the one
        that ``use`` in ``params.yaml`` names, such as ``models/merged.safetensors``.
    head : {"auto", "logistic"}, default="auto"
        ``auto`` is the method's own rule if the file has one. ``logistic`` is always the head above.
    device : str, default="auto"
        ``auto`` (a GPU if there is one), ``cpu``, ``cuda`` or ``cuda:N``.
    C : float, default=1.0
        Inverse regularisation of the logistic head.
    max_iter : int, default=1000
        Newton steps of the logistic head at most; a handful is usual.
    support_copies : int, default=1
        Above 1, this many augmented copies take the place of each support image, as in RFS; for the logistic head.
    augmentation : Augmentation, optional
        Changes of the copies, but for surroundings; required if `support_copies` is above 1.
    random_state : int, RandomState or None, default=0
        Seed of the augmentation.
    threshold : float, optional
        Cosine below which `predict` takes an image for unknown, in place of the one that was fitted.

    Attributes
    ----------
    classes_ : array (K,)
        Labels, sorted.
    head_ : str
        ``logistic``, or the name of the method whose rule classifies.
    coef_ : float64 (K, m)
        W, of the logistic head alone.
    intercept_ : float64 (K,)
        b, of the logistic head alone.
    n_iter_ : int
        Newton steps of the logistic head alone.
    temperature_ : float
        Number by which `predict_proba` divides the logits of the logistic head to calibrate probabilities. The stage
        ``evaluate`` has fitted it on validation tasks of about as many shots. It is 1 if none was fitted.
    calibrated_ : bool
        Whether the temperature was fitted for this model and this `C`, with support images that are not augmented;
        of the logistic head alone. This requires a file ``temperatures.json`` beside the model that knows the model.
    threshold_ : float or None
        Cosine with the nearest class mean below which `predict` takes an image for unknown; of the logistic head alone.
        The stage ``evaluate`` has fitted it on validation tasks of about as many shots, of which 5% of the images of
        known classes are below it. It is None if neither `threshold` nor a file beside the model has one, and if
        support images are augmented.
    support_ : float32 (n, ...)
        What the head is fitted on, of each support image so far: features (r, m) of its copies, or what the method's
        rule needs of it.
    targets_ : int64 (n,)
        Rows of `classes_` of the support images.
    embedding_ : Embedding
        Embedding with which the head was fitted.

    Notes
    -----
    Images are uint8 arrays (n, h, w) or (n, h, w, c), or a list of arrays, PIL images and
    paths. They may have any size and are brought to the model's; see `mela.inference.input_images.packed_blocks`.

    Examples
    --------
    >>> from mela import FewShotClassifier
    >>> classifier = FewShotClassifier.load("models/merged.safetensors")  # doctest: +SKIP
    >>> classifier.fit(["a/1.png", "a/2.png", "b/1.png"], ["a", "a", "b"]).predict(["new.png"])  # doctest: +SKIP
    array(['b'], dtype='<U1')
    """

    classes_: npt.NDArray[Any]
    head_: str
    coef_: Floats
    intercept_: Floats
    n_iter_: int
    temperature_: float
    calibrated_: bool
    threshold_: float | None
    support_: Features
    targets_: Ints
    embedding_: Embedding

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        head: str = "auto",
        device: str = "auto",
        C: float = 1.0,
        max_iter: int = 1000,
        support_copies: int = 1,
        augmentation: Augmentation | None = None,
        random_state: Any = 0,
        threshold: float | None = None,
    ) -> None:
        self.model = model
        self.head = head
        self.device = device
        self.C = C
        self.max_iter = max_iter
        self.support_copies = support_copies
        self.augmentation = augmentation
        self.random_state = random_state
        self.threshold = threshold

    @classmethod
    def load(cls, path: str | Path | None = None, device: str = "auto", **parameters: Any) -> Self:
        """Return a classifier whose model is read at once, so that errors in the file show here.

        Parameters
        ----------
        path, device
            As `model` and `device` of the class.
        **parameters
            The others.

        Raises
        ------
        MelaError
            The file is missing, damaged or no model; this machine has no such device; a parameter is out of its
            range.
        """
        classifier = cls(path, device=device, **parameters)
        classifier._check_parameters()
        classifier._read()
        return classifier

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the head.

        Parameters
        ----------
        X : images
            The support set; see the notes of the class.
        y : array-like (n,)
            Labels of any kind that scikit-learn takes, all of one type; shots may differ from class to class.

        Raises
        ------
        ValueError
            Images or labels are invalid, a parameter is out of its range, the solver does not converge.
        """
        self._learn(X, y, None, at_least=2)
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn more images, of known classes or of new ones; the head is then that of all images so far.

        Parameters
        ----------
        X : images
            As in `fit`; features of earlier images are kept, and not computed again.
        y : array-like (n,)
            Labels, of the type of the earlier ones. The first call may know a single class, to which everything belongs
            until there is another.

        Raises
        ------
        ValueError
            As in `fit`.
        """
        self._learn(X, y, self.embedding_ if hasattr(self, "embedding_") else None, at_least=1)
        return self

    def forget(self, label: Any) -> Self:
        """Forget a class and its images; the head is then that of the others.

        Raises
        ------
        ValueError
            The class is unknown, or the only one.
        """
        check_is_fitted(self, "head_")
        if np.ndim(label):
            raise MelaError(f"forget: expected one label, got {label!r}; call it for each")
        known = self.classes_ == label
        if not np.any(known) or len(self.classes_) < 2:
            others = "the only class; fit anew" if np.any(known) else f"unknown; expected one of {self._named()}"
            raise MelaError(f"forget: {label!r} is {others}")
        stay = ~known[self.targets_]
        targets = np.cumsum(~known)[self.targets_[stay]] - 1
        self._fit_head(self.embedding_, self.support_[stay], targets, self.classes_[~known])
        return self

    def predict(self, X: Any, *, unknown: bool = False) -> npt.NDArray[Any]:
        """Return the most probable class (n,) of each image.

        Parameters
        ----------
        X : images
            See the notes of the class.
        unknown : bool
            Return None, in an array of objects, for an image whose cosine with each class mean is below `threshold_`.

        Raises
        ------
        ValueError
            Images are invalid, or nothing tells which are unknown.
        """
        check_is_fitted(self, "head_")
        if not unknown:
            return self.classes_[self._logits(X).argmax(axis=1)]
        units = list(self._units(X))
        best = self.classes_[np.concatenate([self._linear(part) for part in units]).argmax(axis=1)].astype(object)
        best[np.concatenate([self._nearness(part) for part in units]) < self._threshold()] = None
        return best

    def similarity(self, X: Any) -> Floats:
        """Return the cosine (n,) of each image's feature with the nearest class mean, for the logistic head.

        It tells images of no class from others better than probabilities do; see `mela.evaluation.unknown`.
        """
        return np.concatenate([self._nearness(units) for units in self._units(X)])

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities (n, K) of `classes_`, calibrated if the model is; rows sum to 1."""
        logits = self._logits(X) / (self.temperature_ if self.head_ == LOGISTIC else 1.0)
        probabilities: Floats = softmax(logits, axis=1)
        return probabilities

    def transform(self, X: Any) -> Features:
        """Return the features (n, m) of images as the embedding gives them, not scaled; needs no fit."""
        embedding = self.embedding_ if hasattr(self, "embedding_") else self._read()
        return _joined(embedding.blocks(list_pictures(X, "images"), "images"))

    def _learn(self, X: Any, y: Any, before: Embedding | None, *, at_least: int) -> None:
        """Fit the head to images, and to those that were learned before by an embedding."""
        self._check_parameters()
        pictures = list_pictures(X, "support images")
        require_one_type(y, "labels")
        y = column_or_1d(y)
        if len(y) != len(pictures):
            raise MelaError(
                f"there are {len(pictures)} support images, but {len(y)} labels; give one label for each image"
            )
        require_names(y, "labels")
        if before is not None:
            if self.model != self._learned_with:
                raise MelaError(
                    f"partial_fit: expected the model of the earlier images ({self._learned_with}), got {self.model}; "
                    "fit anew"
                )
            try:
                require_one_type([*self.classes_.tolist(), *y.tolist()], "labels")
            except MelaError:
                known, new = self.classes_.tolist()[0], y.tolist()[0]
                raise MelaError(
                    f"labels: expected the type of the earlier ones, such as {known!r}, got {new!r}; convert them"
                ) from None
            y = np.concatenate([self.classes_[self.targets_], y])
        check_classification_targets(y)
        classes, targets = np.unique(y, return_inverse=True)
        if len(classes) < at_least:
            raise MelaError(
                f"labels: expected two different ones or more, got only {classes[0]!s}; add images of another class"
            )
        embedding = before or self._read()
        support = self._seen(embedding, pictures, 0 if before is None else len(self.targets_))
        if before is not None:
            if (self.head_ != LOGISTIC) != self._by_rule(before) or support.shape[1:] != self.support_.shape[1:]:
                raise MelaError(
                    "partial_fit: expected the head and the support_copies of the earlier images, got others; fit anew"
                )
            support = np.concatenate([self.support_, support])
        self._fit_head(embedding, support, targets.astype(np.int64), classes)

    def _seen(self, embedding: Embedding, pictures: Pictures, drawn: int) -> Features:
        """Return what the head is fitted on, of each image, after some images for which copies were drawn."""
        if self._by_rule(embedding):
            return _joined(embedding.seen(pictures, "support images"))
        return np.stack([_joined(blocks) for blocks in self._copies(embedding, pictures, drawn)], axis=1)

    def _fit_head(self, embedding: Embedding, support: Features, targets: Ints, classes: npt.NDArray[Any]) -> None:
        found: dict[str, Any] = {"head_": embedding.method if self._by_rule(embedding) else LOGISTIC}
        if found["head_"] == LOGISTIC:
            shots, validated = len(targets) / len(classes), embedding.temperatures
            temperature = self._temperature(embedding, shots) if len(classes) > 1 else None
            fitted = validated.threshold(shots) if validated and self.support_copies == 1 else None
            found |= {
                "temperature_": 1.0 if temperature is None else temperature,
                "calibrated_": temperature is not None,
                "threshold_": fitted if self.threshold is None else self.threshold,
            }
        if found["head_"] == LOGISTIC and len(classes) > 1:
            heads = self._logistic(support, targets, len(classes))
            found |= {
                "coef_": heads.weights[0],
                "intercept_": heads.intercepts[0, :, 0],
                "n_iter_": heads.iterations,
            }
        for name in OF_HEADS:
            self.__dict__.pop(name, None)
        self.__dict__.update(found, embedding_=embedding, support_=support, targets_=targets, classes_=classes)
        self._learned_with = self.model

    def _named(self) -> str:
        """Return some of the classes, as errors name them."""
        shown = ", ".join(repr(label) for label in self.classes_[:SHOWN].tolist())
        return shown + (f" and {len(self.classes_) - SHOWN:,} more" if len(self.classes_) > SHOWN else "")

    def _logits(self, X: Any) -> Floats:
        check_is_fitted(self, "head_")
        return np.concatenate(list(self._logits_of_blocks(list_pictures(X, "query images"))))

    def _logits_of_blocks(self, pictures: Pictures) -> Iterator[Floats]:
        """Yield the logits (b, K) of images, a block of them at a time."""
        embedding = self.embedding_
        if self.head_ != LOGISTIC:
            ways = len(self.classes_)
            for seen in embedding.seen(pictures, "query images"):
                alone = np.zeros((len(seen), 1))
                yield alone if ways < 2 else embedding.by_rule(self.support_, self.targets_, seen, ways)
            return
        for features in embedding.blocks(pictures, "query images"):
            yield self._linear(l2_normalize(features))

    def _units(self, X: Any) -> Iterator[Features]:
        """Yield the features of images, scaled to length 1, for the logistic head, a block of them at a time."""
        check_is_fitted(self, "head_")
        if self.head_ != LOGISTIC:
            raise MelaError(
                f"unknown: expected the logistic head, got the rule of {self.head_}; set head to {LOGISTIC!r}"
            )
        return map(l2_normalize, self.embedding_.blocks(list_pictures(X, "query images"), "query images"))

    def _linear(self, units: Features) -> Floats:
        """Return the logits (b, K) of the logistic head."""
        if len(self.classes_) < 2:
            return np.zeros((len(units), 1))
        head = Heads(
            weights=self.coef_[None],
            intercepts=self.intercept_[None, :, None],
            iterations=self.n_iter_,
            converged=np.array([True]),
        )
        return head.logits(units[None])[0].T

    def _nearness(self, units: Features) -> Floats:
        n, r, m = self.support_.shape
        known, targets = l2_normalize(self.support_.reshape(n * r, m))[None], self.targets_.repeat(r)[None]
        cosines = class_cosines(known, targets, units[None], len(self.classes_))[0]
        return cosines.max(axis=0).astype(np.float64)

    def _threshold(self) -> float:
        if self.threshold_ is None:
            raise MelaError(
                "unknown: expected a model with thresholds, which the stage evaluate fits on validation tasks and for "
                "images that are not augmented, got one without; rerun evaluate, keep temperatures.json beside the "
                "model, or give threshold"
            )
        return self.threshold_

    def _by_rule(self, embedding: Embedding) -> bool:
        """Tell whether the method's own rule classifies."""
        if self.head == LOGISTIC or embedding.learner is None:
            return False
        if self.support_copies > 1:
            raise MelaError(
                f"support_copies: expected 1 with the rule of {embedding.method}, got {self.support_copies}; set head "
                f"to {LOGISTIC!r}, which takes copies"
            )
        return True

    def _logistic(self, support: Features, targets: Ints, n_classes: int) -> Heads:
        n, r, m = support.shape
        heads = fit_heads(
            l2_normalize(support.reshape(n * r, m))[None],
            targets.repeat(r)[None],
            n_classes,
            C=self.C,
            max_iter=self.max_iter,
        )
        if not heads.converged.all():
            raise MelaError(
                f"max_iter: logistic regression did not converge in {self.max_iter} iterations (C={self.C:g}); raise it"
            )
        return heads

    def _temperature(self, embedding: Embedding, shots: float) -> float | None:
        """Return the temperature for heads fitted as those of ``evaluate`` were; None if there is none."""
        known = embedding.temperatures
        if known is None or not known.knows(self.C) or self.support_copies > 1:
            return None
        return known.of(shots, self.C)

    def _copies(self, embedding: Embedding, pictures: Pictures, drawn: int) -> Iterator[Iterator[Features]]:
        """Yield features of the images as they are, or of one augmented copy of each after the other."""
        if self.augmentation is None or self.support_copies == 1:
            yield embedding.blocks(pictures, "support images")
            return
        augmentation, seed = self.augmentation.of_one_image, self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = check_random_state(seed).randint(2**31)
        generator = torch.Generator().manual_seed(int(seed) + drawn)
        for _ in range(self.support_copies):
            yield embedding.blocks(pictures, "support images", lambda batch: augmentation(batch, generator))

    def _read(self) -> Embedding:
        """Return the embedding that the parameters ask for, read once."""
        model = UseParams.model() if self.model is None else Path(self.model)
        asked = (str(model), self.device)
        there: tuple[tuple[str, str], Embedding] | None = getattr(self, "_there", None)
        if there is None or there[0] != asked:
            there = self._there = (asked, Embedding.read(model, self.device))
        return there[1]

    def _check_parameters(self) -> None:
        if self.head not in (AUTO, LOGISTIC):
            raise MelaError(f"head: expected {AUTO} or {LOGISTIC}, got {self.head!r}; correct it")
        for name in ("max_iter", "support_copies"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < 1:
                raise MelaError(f"{name}: expected an integer of at least 1, got {value!r}")
        if not 0 < self.C < np.inf:
            raise MelaError(f"C: expected a finite number above 0, got {self.C!r}")
        if self.support_copies > 1 and self.augmentation is None:
            raise MelaError(
                f"support_copies={self.support_copies} needs an augmentation, since copies without changes are all the "
                "same; pass augmentation=mela.data.Augmentation(...)"
            )

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that images are no table of features."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


def _joined(blocks: Iterator[Features]) -> Features:
    return np.concatenate(list(blocks))
