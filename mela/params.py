"""Define the hyperparameters of a run: one typed block per concern, read from ``params.yaml``.

A stage reads the blocks that ``dvc.yaml`` lists for it and no other, so that changing a value reruns exactly the stages
that depend on it. At its start it checks all blocks, so that no mistake waits for the stage that meets it.
"""

import io
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise, permutations
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from ruamel.yaml import YAML

from mela.blocks import PARAMS as PARAMS
from mela.blocks import Block, first_problem, known_blocks, missing_block, read_document
from mela.errors import MelaError

Positive = Annotated[int, Field(ge=1, le=10**9)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Rate = Annotated[float, Field(gt=0, le=1e30)]
Fraction = Annotated[float, Field(ge=0, le=1)]
CONVERT = "`mela preset --convert` rewrites the file"


def _require_below(key: str, name: str, folder: str) -> None:
    """Raise ValueError unless a name leads below a folder."""
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise ValueError(f"{key}: {name!r} is no path below {folder}; give one that is, relative to that folder")


def by_todays_names(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the blocks of a run, which may be of a version that called `data.image_size` `data.size`."""
    data = document.get("data")
    if not isinstance(data, dict) or "size" not in data:
        return dict(document)
    return {**document, "data": {"image_size" if key == "size" else key: value for key, value in data.items()}}


class PeopleParams(BaseModel):
    """Say whose the images are: one person's for each task; see `mela.sources.by_people`.

    Without a share, photographs stay as they are. With `subclasses`, a class is a superclass, of which each person has
    one subclass. With `objects`, each person has one photograph of a class, taken again and again. With `paper`, images
    are drawings in a person's ink on their paper (`mela.sources.ink_on_paper`), which a camera sees. With `classes`,
    that many classes of each split are used. Each person of the training tasks has `tasks` of them. These five keys may
    be missing.
    """

    model_config = Block.model_config
    train: Positive
    val: Annotated[int, Field(ge=0)]
    test: Annotated[int, Field(ge=0)]
    ways: Annotated[int, Field(ge=2)]
    share: Fraction | None
    subclasses: bool = False
    objects: bool = False
    paper: bool = False
    classes: Annotated[int, Field(ge=2)] | None = None
    tasks: Positive = 1

    @property
    def described(self) -> str:
        """Say what the images of a person have in common."""
        alike = {
            f"share {self.share or 0:g}": self.share is not None,
            "one subclass each": self.subclasses,
            "one object each": self.objects,
            "ink on paper": self.paper,
            f"{self.tasks} tasks each": self.tasks > 1,
        }
        return ", ".join(name for name, shared in alike.items() if shared)

    def made_from(self) -> dict[str, Any]:
        """Return the keys, without those that may be missing and say nothing."""
        return self.model_dump(mode="json", exclude_defaults=True)


# data sets whose classes are known
WithClasses = Literal[
    "omniglot",
    "cifar_fs",
    "fc100",
    "mini_imagenet",
    "tiered_imagenet",
    "cub",
    "aircraft",
    "vgg_flower",
    "meta_album",
    "folder",
]


class DatasetParams(BaseModel):
    """Say what one of several data sets is. Its `root`, a folder below `data.root`, is also its name.

    All keys but the first two may be missing; they are those of `DataParams`.
    """

    model_config = Block.model_config
    name: WithClasses
    root: Annotated[str, Field(min_length=1)]
    table: str | None = None
    rotations: bool = False
    boxes: bool = False

    @field_validator("root")
    @classmethod
    def _in_one_form(cls, root: str) -> str:
        return Path(root).as_posix()

    @model_validator(mode="after")
    def _check(self) -> Self:
        _require_below("root", self.root, "data.root")
        if self.table is not None:
            _require_below("table", self.table, "root")
            if self.name not in ("folder", "meta_album"):
                raise ValueError(f"table: expected null with name: {self.name}, whose split is the published one")
        if self.rotations and self.name != "omniglot":
            raise ValueError(f"rotations: expected false with name: {self.name}; only omniglot has drawings to turn")
        _require_boxes(self.name, self.boxes)
        return self


def _require_boxes(name: str, boxes: bool) -> None:
    """Raise ValueError if there are no boxes to cut images to."""
    if boxes and name not in ("cub", "aircraft"):
        raise ValueError(f"boxes: expected false with name: {name}; only cub and aircraft have boxes")


# benchmarks that share classes, which are for training in one and for testing in the other
SHARED_CLASSES = ({"mini_imagenet", "tiered_imagenet"}, {"cifar_fs", "fc100"})


def _require_apart(datasets: Sequence[DatasetParams]) -> None:
    """Raise ValueError if data sets share images, or if test classes of one are training classes of another."""
    roots = [Path(one.root) for one in datasets]
    for one, other in permutations(roots, 2):
        if one.is_relative_to(other):
            raise ValueError(
                f"datasets: expected a folder of its own for each, got {one.as_posix()} and {other.as_posix()}, of "
                "which one holds the other's images"
            )
    for shared in SHARED_CLASSES:
        if shared <= {one.name for one in datasets}:
            raise ValueError(
                f"datasets: expected classes of their own, got {' and '.join(sorted(shared))}; classes that the one "
                "tests are among those that the other trains on"
            )


class DataParams(Block):
    """Say which images are used, at which size.

    Three keys may be missing. Without `people`, images are nobody's in particular. With `boxes`, images of birds and
    aircraft are cut to the square around them. With `datasets`, each task is of one of several data sets.
    """

    block: ClassVar[str] = "data"
    name: Literal[
        "glyphs",
        WithClasses,
        "mixed",
        "tasks",
    ]
    root: str
    table: str | None
    # tables say `size`, as they did before; with other bytes of theirs all stages would run again
    image_size: Annotated[int, Field(ge=16, le=512, serialization_alias="size")]
    channels: Literal[1, 3]
    images_per_class: Annotated[int, Field(ge=1, le=100_000)]
    rotations: bool
    split_fractions: list[Fraction]
    seed: Seed
    people: PeopleParams | None = None
    boxes: bool = False
    datasets: Annotated[list[DatasetParams], Field(min_length=2)] | None = None

    @property
    def described(self) -> str:
        """Name of the data set, or for one's own data its folder."""
        own = f"{self.name} in {self.root}" if self.name in ("folder", "meta_album", "tasks") else self.name
        if self.datasets is not None:
            own = ", ".join(one.root for one in self.datasets)
        if self.people is None:
            return own
        return f"{own} by people ({self.people.described})" if self.people.described else f"{own} by people"

    def made_from(self) -> dict[str, Any]:
        """Return what a table of these images says that it was made from, which is all but where they lay."""
        content = self.model_dump(mode="json", by_alias=True, exclude={"root", "people", "boxes", "datasets"})
        content |= self.model_dump(mode="json", include={"boxes", "datasets"}, exclude_defaults=True)
        return content if self.people is None else content | {"people": self.people.made_from()}

    @model_validator(mode="before")
    @classmethod
    def _refuse_former_name(cls, content: Any) -> Any:
        if isinstance(content, dict) and "size" in content:
            raise ValueError(f"size: this key is now image_size, since DVC can miss a change of `size`; {CONVERT}")
        return content

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.split_fractions) != 3 or abs(sum(self.split_fractions) - 1) > 1e-6:
            raise ValueError(
                f"split_fractions: expected three numbers (train, val, test) that sum to 1, got {self.split_fractions}"
            )
        if self.table is not None:
            _require_below("table", self.table, "data.root")
        if self.split_fractions[0] == 0:
            raise ValueError(f"split_fractions: expected a training share above 0, got {self.split_fractions}")
        _require_boxes(self.name, self.boxes)
        if (self.name == "mixed") != (self.datasets is not None):
            raise ValueError("datasets: expected two or more with data.name: mixed, and none with other names")
        _require_apart(self.datasets or ())
        if self.datasets is not None and self.table is not None:
            raise ValueError("table: expected null with data.name: mixed; give each of the datasets its own")
        if self.people is not None and self.datasets is not None:
            raise ValueError("people: expected none with data.name: mixed")
        if self.people is not None and self.name == "tasks":
            raise ValueError("people: expected none with data.name: tasks, which come from people already")
        if self.people is not None and self.name == "glyphs" and (self.people.objects or self.people.classes):
            raise ValueError(
                "people.objects, people.classes: expected none with data.name: glyphs, each of which is drawn by itself"
            )
        if self.people is not None and self.people.paper and (self.name != "omniglot" or self.people.share is None):
            raise ValueError(
                f"people.paper: expected false with data.name: {self.name} and people.share: {self.people.share}; only "
                "omniglot has drawings, and a share says how often they have their person's ink and paper"
            )
        if self.people is not None and self.people.subclasses and self.name != "fc100":
            raise ValueError(
                f"people.subclasses: expected false with data.name: {self.name}; only fc100 has whole superclasses in "
                "each split"
            )
        return self


class TaskParams(Block):
    """Say how tasks are drawn from benchmark classes (data that comes as tasks brings its own).

    With several data sets, `train`, `val` and `test` are the tasks of each.
    """

    block: ClassVar[str] = "tasks"
    ways: Annotated[int, Field(ge=2)]
    shots: Positive
    queries: Positive
    train: Positive | None
    val: Annotated[int, Field(ge=0)]
    test: Annotated[int, Field(ge=0)]
    replacement: bool
    seed: Seed

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.train is None and self.replacement:
            raise ValueError(
                "train: expected a number of tasks, got null; null means all that `replacement: false` allows"
            )
        return self


class ModelParams(Block):
    """Describe the backbone psi and how its input is normalised.

    Three keys may be missing. Networks of timm have their images resized to the side `input_size`, which is their own
    if it is null. With `keep_features` the features of one that does not learn are computed once, without random
    changes of the images. With `residual_head` the other networks end with `mela.models.backbones.ResidualHead`.
    """

    block: ClassVar[str] = "model"
    backbone: str
    weights: str
    train: Literal["all", "head"]
    width: Annotated[int, Field(ge=1, le=8192)]
    drop_rate: Annotated[float, Field(ge=0, lt=1)]
    drop_block: Positive
    mean: list[float] | None
    std: list[Rate] | None
    precision: Literal["auto", "float32", "bfloat16"]
    input_size: Annotated[int, Field(ge=16, le=1024)] | None = None
    keep_features: bool = True
    residual_head: bool = False

    @field_validator("backbone")
    @classmethod
    def _check_backbone(cls, name: str) -> str:
        if not re.fullmatch(r"conv4|conv4_rfs|resnet12|timm:[\w.\-]+", name):
            raise ValueError(f"expected conv4, conv4_rfs, resnet12 or timm:<name>, got {name!r}")
        return name

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.backbone.startswith("timm:"):
            for key, usual in (("weights", "none"), ("train", "all")):
                if getattr(self, key) != usual:
                    raise ValueError(
                        f"{key}: expected {usual} with the backbone {self.backbone}, got {getattr(self, key)!r}; only "
                        "timm:<name> starts from other weights"
                    )
            if self.input_size is not None:
                raise ValueError(
                    f"input_size: expected null with the backbone {self.backbone}, which takes images as they are, got "
                    f"{self.input_size}; remove it, and set data.image_size"
                )
        elif self.residual_head:
            raise ValueError(
                f"residual_head: expected false with the backbone {self.backbone}, got true; remove it, or set train: "
                "head for a linear map"
            )
        _require_below("weights", self.weights, "data/raw/weights")
        if (self.mean is None) != (self.std is None):
            raise ValueError(
                "mean, std: expected both or neither to be null; null means measured on the training images"
            )
        return self


class AugmentParams(Block):
    """Describe random changes of training images, drawn for each image on its own.

    The last five keys may be missing, and are 0 then. They vary what people's photographs differ in.
    """

    block: ClassVar[str] = "augment"
    crop_padding: Annotated[int, Field(ge=0, le=512)]
    flip: bool
    jitter: Annotated[float, Field(ge=0, lt=1)]
    rotation: Annotated[float, Field(ge=0, le=180)] = 0.0
    zoom: Annotated[float, Field(ge=0, le=1)] = 0.0
    tint: Annotated[float, Field(ge=0, lt=1)] = 0.0
    blur: Fraction = 0.0
    surroundings: Fraction = 0.0


class _Decays(Block):
    """Describe gradient descent, shared by all trainings.

    The last four keys may be missing; `mela.training.schedule.Schedule` and, for `rotated_classes`,
    `mela.training.loop.Training` say what they are.
    """

    epochs: Positive
    momentum: Annotated[float, Field(ge=0, lt=1)]
    weight_decay: Annotated[float, Field(ge=0, le=1e30)]
    milestones: list[Positive]
    decay: Annotated[float, Field(gt=0, le=1)]
    accumulate: Positive
    seed: Seed
    scheduler: Literal["multistep", "linear", "cosine"] = "multistep"
    nesterov: bool = False
    decay_norms: bool = True
    rotated_classes: bool = False

    @model_validator(mode="after")
    def _check_milestones(self) -> Self:
        if sorted(set(self.milestones)) != self.milestones:
            raise ValueError(f"milestones: expected rising epochs, got {self.milestones}")
        if self.epochs and self.milestones and self.milestones[-1] >= self.epochs:
            raise ValueError(f"milestones: expected epochs below epochs={self.epochs}, got {self.milestones}")
        if self.milestones and self.scheduler != "multistep":
            raise ValueError(
                f"milestones: expected [] with scheduler: {self.scheduler}, which lowers the learning rate in every "
                f"step, got {self.milestones}; remove them, or set scheduler: multistep"
            )
        if self.nesterov and not self.momentum:
            raise ValueError(
                "nesterov: expected false with momentum: 0, which it needs; raise momentum, or set nesterov to false"
            )
        return self

    def schedule(self) -> dict[str, Any]:
        """Return the arguments of `mela.training.schedule.Schedule`, as far as they are known here."""
        known = {*_Schedule.model_fields} & {*type(self).model_fields} - {"accumulate", "seed", "rotated_classes"}
        return {name: getattr(self, name) for name in known}


class _Schedule(_Decays):
    """Add a learning rate."""

    learning_rate: Rate


class EmbedParams(_Schedule):
    """Set the meta-learning of the initial embedding (Eq. 4-5), or with 0 epochs take it as it starts.

    Three keys may be missing: `base_learner` is ridge then (`mela.training.embeddings.train_embedding`), and `hinge`
    and `consistency`, which are weights of further losses, are 0 (`mela.learners.ridge.ridge_query_losses`).
    """

    block: ClassVar[str] = "embed"
    epochs: Annotated[int, Field(ge=0, le=10**9)]
    tasks_per_epoch: Positive | None
    tasks_per_step: Positive
    ridge: Rate
    normalize: bool
    base_learner: Literal["ridge", "task_heads"] = "ridge"
    hinge: Annotated[float, Field(ge=0, le=1e30)] = 0.0
    consistency: Annotated[float, Field(ge=0, le=1e30)] = 0.0

    def how(self) -> dict[str, Any]:
        """Return the arguments of `mela.training.embeddings.train_embedding` beside the schedule."""
        return {name: getattr(self, name) for name in {*type(self).model_fields} - {*_Schedule.model_fields}}

    @model_validator(mode="after")
    def _check_losses(self) -> Self:
        for key in ("hinge", "consistency"):
            if getattr(self, key) and self.base_learner != "ridge":
                raise ValueError(
                    f"{key}: expected 0 with base_learner: {self.base_learner}, got {getattr(self, key):g}; remove it, "
                    "since only ridge has this loss"
                )
        return self


class ExtractParams(Block):
    """Set how features of the training images are extracted for the labeler."""

    block: ClassVar[str] = "extract"
    features: str

    @model_validator(mode="after")
    def _check(self) -> Self:
        _require_below("features", self.features, "data/raw/features")
        return self


RoundName = Literal["first", "second", "third", "fourth", "fifth", "sixth"]
ROUNDS: tuple[RoundName, ...] = get_args(RoundName)


# whether there is a round; one that is centered learns features less the means of their tasks
Round = Literal[True, False, "centered"]


class RoundsParams(Block):
    """Say which rounds of training on labels so far precede merging; the block may be missing, and there are none."""

    block: ClassVar[str] = "rounds"
    optional: ClassVar[bool] = True
    first: Round = False
    second: Round = False
    third: Round = False
    fourth: Round = False
    fifth: Round = False
    sixth: Round = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        for before, after in pairwise(ROUNDS):
            if getattr(self, after) and not getattr(self, before):
                raise ValueError(f"{after}: a round needs the one before it; set {before} to true, or {after} to false")
        return self


# every kind of global labels that an embedding can be pre-trained on, in the order of tables
LABELS = ("merged", "merged_soft", "pruned", "kmeans", "oracle")


class LabelerParams(Block):
    """Set LearnLabeler, Algorithm 2 of the paper: the labels `pruned`."""

    block: ClassVar[str] = "labeler"
    n_clusters: Annotated[int, Field(ge=2)]
    q: Annotated[float, Field(ge=0)]
    collisions: Literal["drop", "assign"]
    min_count: Positive
    guard: bool
    cumulative_weights: bool
    max_passes: Positive
    seed: Seed

    @property
    def arguments(self) -> dict[str, Any]:
        """What `mela.LearnLabeler` takes."""
        return self.model_dump(exclude={"seed"}) | {"random_state": self.seed}

    @model_validator(mode="before")
    @classmethod
    def _refuse_former_names(cls, content: Any) -> Any:
        if isinstance(content, dict) and "merge" in content:
            raise ValueError(f"merge: merging has a block of its own now, `merging`; {CONVERT}")
        if isinstance(content, dict) and "cumulative_counts" in content:
            raise ValueError(
                "cumulative_counts: this key is now cumulative_weights, since counts start from 0 in every pass; "
                "rename it"
            )
        return content


class MergingParams(Block):
    """Set MergeLabeler: the labels `merged` and `merged_soft`. The key `names` may be missing."""

    block: ClassVar[str] = "merging"
    collisions: Literal["drop", "assign"]
    min_count: Positive
    names: bool = False
    seed: Seed

    @property
    def arguments(self) -> dict[str, Any]:
        """What `mela.MergeLabeler` takes."""
        return self.model_dump(exclude={"seed", "names"}) | {"random_state": self.seed}


class KMeansParams(Block):
    """Set plain K-means, the ablation that ignores local labels."""

    block: ClassVar[str] = "kmeans"
    n_clusters: Annotated[int, Field(ge=2)]
    n_init: Annotated[int, Field(ge=1, le=1000)]
    seed: Seed


class CompareParams(Block):
    """Say on which labels an embedding is pre-trained."""

    block: ClassVar[str] = "compare"
    merged: bool
    merged_soft: bool
    pruned: bool
    kmeans: bool
    oracle: bool


class UseParams(Block):
    """Name the inferred labels that map, report and list of labels show, and whose model is the default.

    In the file it is a single word, since pipelines put it into the names of files.
    """

    block: ClassVar[str] = "use"
    labels: Literal["merged", "pruned"]

    @model_validator(mode="before")
    @classmethod
    def _wrap(cls, content: Any) -> Any:
        if content not in ("merged", "pruned"):
            raise ValueError(f"expected merged or pruned, got {content!r}")
        return {"labels": content}

    def content(self) -> Any:
        """Return the word."""
        return self.labels

    @classmethod
    def model(cls, path: Path = PARAMS) -> Path:
        """Return the model of the labels in use; without a params file that of merged labels."""
        labels = cls.read(path).labels if path.is_file() else "merged"
        return Path("models", f"{labels}.safetensors")


class PretrainParams(_Schedule):
    """Set the classification of the global labels (Eq. 7); `label_smoothing` may be missing, and is 0 then."""

    block: ClassVar[str] = "pretrain"
    batch_size: Annotated[int, Field(ge=2)]
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.0

    @model_validator(mode="before")
    @classmethod
    def _refuse_former_name(cls, content: Any) -> Any:
        if isinstance(content, dict) and "labels" in content:
            raise ValueError(f"labels: the block `compare` says now which labels are trained on; {CONVERT}")
        return content


class MethodsParams(_Decays):
    """Set how long the benchmark trains each method on tasks; the method sets the learning rate."""

    block: ClassVar[str] = "methods"
    extra: ClassVar[bool] = True
    tasks_per_epoch: Positive
    tasks_per_step: Positive


class TuningParams(MethodsParams):
    """Set the same for methods that start from a pre-trained embedding, which learns at a fraction of their rate."""

    block: ClassVar[str] = "tuning"
    rate: Fraction


class RatesParams(Block):
    """Set learning rates of the benchmark's methods on tasks, by name; null is the method's own rate.

    A file without this block leaves every method its own rate.
    """

    block: ClassVar[str] = "rates"
    extra: ClassVar[bool] = True
    model_config = ConfigDict(frozen=True, extra="allow", strict=True, allow_inf_nan=False)
    __pydantic_extra__: dict[str, Rate | None] = Field(init=False)

    @classmethod
    def read(cls, path: Path = PARAMS) -> Self:
        """Read and check this block of a params file, which may lack it."""
        return super().read(path) if cls.block in read_document(path) else cls()

    @property
    def by_name(self) -> dict[str, float | None]:
        """Return the rates that the file names."""
        return dict(self.__pydantic_extra__)

    def only(self, method: str) -> Self:
        """Return the block with the rate of one method alone, on which its training depends."""
        return type(self).model_validate({method: self.by_name.get(method)})


class EvaluateParams(Block):
    """Set the meta-test with a logistic head (Eq. 8)."""

    block: ClassVar[str] = "evaluate"
    shots: Annotated[list[Positive], Field(min_length=1)]
    C: Rate
    max_iter: Positive
    solver: Literal["batched", "sklearn"]
    support_copies: Annotated[int, Field(ge=1, le=1000)]
    seed: Seed


class ReportParams(Block):
    """Set what the report shows."""

    block: ClassVar[str] = "report"
    sheets: Annotated[int, Field(ge=0)]
    images: Positive
    map_classes: Positive
    map_images: Positive
    usage: bool
    seed: Seed


class RuntimeParams(Block):
    """Say where to compute; no stage lists it, so that machines do not invalidate each other's results."""

    block: ClassVar[str] = "runtime"
    device: Annotated[str, Field(pattern=r"^(auto|cpu|cuda(:\d{1,2})?)$")]
    processes: Annotated[int, Field(ge=1, le=1024)]
    compile: bool
    checkpoint_seconds: Annotated[float, Field(ge=0)]


BLOCKS: tuple[type[Block], ...] = (
    DataParams,
    TaskParams,
    ModelParams,
    AugmentParams,
    EmbedParams,
    ExtractParams,
    RoundsParams,
    LabelerParams,
    MergingParams,
    KMeansParams,
    CompareParams,
    UseParams,
    PretrainParams,
    EvaluateParams,
    ReportParams,
    RuntimeParams,
)
# of the benchmark of methods, in no other file
EXTRA_BLOCKS: tuple[type[Block], ...] = (MethodsParams, TuningParams, RatesParams)


def check_document(path: Path) -> None:
    """Check every block of a params file, which is read once.

    Blocks that only the benchmark of methods has are checked where they are there.

    Raises
    ------
    MelaError
        A block is missing or has a mistake. The line tells the first mistake, and how many more there are. Two blocks
        contradict each other.
    """
    document = read_document(path)
    mistakes: list[tuple[str, int, ValidationError | None]] = []
    for block in known_blocks():
        try:
            if block.block in document:
                block.of(document[block.block])
            elif not (block.extra or block.optional):
                mistakes.append((block.block, 1, None))
        except ValidationError as error:
            mistakes.append((block.block, error.error_count(), error))
    if not mistakes:
        # of the blocks as they are in the file, so that no stage depends on those that it does not read
        if contradiction := _contradiction(cast("dict[str, Any]", document)):
            raise MelaError(f"{path}: {contradiction}")
        return
    # as the file has them, missing blocks last
    places = list(document)
    mistakes.sort(key=lambda found: places.index(found[0]) if found[0] in document else len(places))
    name, _, mistake = mistakes[0]
    others = sum(count for _, count, _ in mistakes[1:])
    if mistake is None:
        line = missing_block(name, document) + (f" (and {others} more in other blocks)" if others else "")
    else:
        line = first_problem(name, mistake, others)
    raise MelaError(f"{path}: {line}")


def dividing_batches(document: Mapping[str, Any]) -> dict[str, int]:
    """Return into how many parts the batches of rounds are divided, by each dotted key that divides them."""
    keys = (("pretrain", "accumulate"), ("runtime", "processes"))
    parts = {f"{block}.{key}": document.get(block, {}).get(key, 1) for block, key in keys}
    return {key: count for key, count in parts.items() if count > 1}


def _contradiction(document: Mapping[str, Any]) -> str:
    """Tell in one line which blocks of a file contradict each other; nothing if none do."""
    used = document.get("use")
    if not document.get("compare", {}).get(used, True):
        return (
            f"use: expected labels that are trained on, got {used}, for which compare.{used} is false; turn it on, or "
            "use others"
        )
    centered = [name for name, how in (document.get("rounds") or {}).items() if how == "centered"]
    for key, parts in dividing_batches(document).items():
        if centered:
            return (
                f"rounds.{centered[0]}: expected {key}: 1 with centered tasks, of which no batch may be divided, got "
                f"{parts}; set {key} to 1, or the rounds to true"
            )
    rotated = [name for name, block in document.items() if isinstance(block, dict) and block.get("rotated_classes")]
    if not rotated:
        return ""
    key, model = f"{rotated[0]}.rotated_classes", document.get("model", {})
    if document.get("data", {}).get("rotations"):
        return f"{key}: expected false with data.rotations: true, which makes classes of rotations; set either to false"
    if model.get("train") == "head" and model.get("keep_features", True):
        return (
            f"{key}: expected false with model.train: head, which keeps the features of upright images; set it or "
            "model.keep_features to false"
        )
    return ""


def parameters_text(path: Path) -> str:
    """Return all parameters but those of the machine, checked, as YAML."""
    content = {block.block: block.read(path).content() for block in BLOCKS if block is not RuntimeParams}
    text = io.StringIO()
    YAML(typ="safe", pure=True).dump(content, text)
    return text.getvalue()
