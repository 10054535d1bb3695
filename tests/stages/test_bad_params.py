"""What is wrong with parameters ends in one line that says what to do about it."""

import re
from typing import Any

from ruamel.yaml import YAML

from mela.params import PARAMS
from tests.helpers.bad_input import Case, Spoil, one_line_each, params
from tests.helpers.project import edit


def edited(old: str, new: str) -> Spoil:
    return lambda: edit(PARAMS, old, new)


def without(block: str) -> Spoil:
    """Leave out a block of the parameters."""

    def spoil() -> None:
        yaml = YAML()
        document = yaml.load(PARAMS.read_text(encoding="utf-8"))
        del document[block]
        with PARAMS.open("w", encoding="utf-8") as file:
            yaml.dump(document, file)

    return spoil


READERS = {"data": "images", "evaluate": "evaluate", "labeler": "label", "merging": "label_merged", "tasks": "manifest"}
READERS |= {"embed": "embed", "model": "embed", "runtime": "extract", "pretrain": "pretrain@merged", "use": "map"}
READERS |= {"compare": "evaluate"}


def values(message: str, *, stage: str = "", **changes: Any) -> Case:
    """Values, named block__key, of which the stage that reads the first block, or another one, tells what is wrong."""
    return Case(stage or READERS[next(iter(changes)).partition("__")[0]], params(**changes), message)


def refused(message: str, *, stage: str = "", **changes: Any) -> Case:
    """Values that are wrong wherever they are read."""
    return values(f"params.yaml: {message}", stage=stage, **changes)


def invalid(key: str, value: Any, message: str) -> Case:
    """One value that is wrong wherever it is read; the message ends with it."""
    return refused(f"{key}: {message}, got {re.escape(repr(value))}", **{key.replace(".", "__"): value})


CASES: dict[str, Case] = {
    "unknown key": refused("labeler.kew: unknown key; remove it or correct .*", labeler__kew=1),
    "misspelt key": Case(
        "label",
        edited("  q: 6.5", "  qq: 6.5"),
        r"params.yaml: labeler.qq: unknown key; remove it or correct its name \(and 1 more in this block\)",
    ),
    "missing key": Case("label", edited("  q: 6.5", "  # q: 6.5"), "params.yaml: labeler.q: missing; expected a value"),
    "unknown block": Case(
        "label", edited("labeler:", "labeller:"), r"params.yaml: labeller: unknown block; expected one of augment, .*"
    ),
    "missing block": Case(
        "label", without("labeler"), "params.yaml: labeler: expected this block, found only data, .*, runtime"
    ),
    "missing blocks, of this stage and of others": Case(
        "label",
        lambda: PARAMS.write_text("data:\n  name: glyphs\n"),
        r"params.yaml: data.root: missing; expected a value \(and 7 more in this block, 14 more in other blocks\)",
    ),
    "a mistake in a block of a later stage": refused(
        "labeler.q: input should be a valid number, got None", stage="embed", labeler__q=None
    ),
    "mistakes in two blocks of later stages": refused(
        r"labeler.q: input should be a valid number, got None \(and 2 more in other blocks\)",
        labeler__q=None,
        evaluate__shots=[],
        evaluate__C=0.0,
        stage="images",
    ),
    "a missing block of a later stage": Case(
        "manifest", without("report"), "params.yaml: report: expected this block, found only data, .*, runtime"
    ),
    "empty file": Case(
        "label", lambda: PARAMS.write_text(""), "params.yaml: expected blocks such as `labeler:`, got .*"
    ),
    "a list": Case(
        "label", lambda: PARAMS.write_text("- 1\n"), "params.yaml: expected blocks such as `labeler:`, got .*"
    ),
    "text for a number": invalid("embed.epochs", "ten", "input should be a valid integer"),
    "a boolean for a number": invalid("embed.epochs", True, "input should be a valid integer"),
    "a number for a boolean": invalid("labeler.guard", 1, "input should be a valid boolean"),
    "a fraction for an integer": invalid("pretrain.batch_size", 64.5, "input should be a valid integer.*"),
    "null": invalid("pretrain.batch_size", None, "input should be a valid integer"),
    "below the range": invalid("labeler.q", -1.0, "input should be greater than or equal to 0"),
    "a number without end": invalid("tasks.train", 10**20, "input should be less than or equal to 1000000000"),
    "a rate beyond float32": invalid("embed.learning_rate", 1e300, r"input should be less than or equal to 10{30}"),
    "blocks within blocks": Case(
        "label", lambda: PARAMS.write_text("a: " + "[" * 3000), "params.yaml: expected YAML, got .*"
    ),
    "a boolean that is none": Case("label", edited("  q: 6.5", "  q: !!bool x"), "params.yaml: expected YAML, got 'x'"),
    "not a number": invalid("embed.learning_rate", float("nan"), "input should be .*"),
    "infinite": invalid("embed.ridge", float("inf"), "input should be a finite number"),
    "a seed of too many digits": invalid("embed.seed", 2**40, "input should be less than 4294967296"),
    "unknown backbone": invalid("model.backbone", "vgg", "expected conv4, conv4_rfs, resnet12 or timm:<name>"),
    "unknown labels": refused("compare.truth: unknown key; remove it or correct its name", compare__truth=True),
    "labels to use that cannot be": refused("use: expected merged or pruned, got 'oracle'", use="oracle"),
    "labels to use that are not compared": refused(
        "use: expected labels that are trained on, got pruned, for which compare.pruned is false; turn it on, or .*",
        use="pruned",
        compare__pruned=False,
    ),
    "labels that are not compared and in use": refused(
        "use: expected labels that are trained on, got merged, for which compare.merged is false; turn it on, or .*",
        compare__merged=False,
        stage="images",
    ),
    "merging among the parameters of pruning": refused(
        "labeler: merge: merging has a block of its own now, `merging`; `mela preset --convert` rewrites the file",
        labeler__merge=False,
    ),
    "labels of one training": refused(
        "pretrain: labels: the block `compare` says now which labels are trained on; `mela preset --convert` .*",
        pretrain__labels="mela",
    ),
    "training on labels that nobody has": Case(
        "pretrain@truth", lambda: None, "pretrain: expected labels that are one of merged, .*, got 'truth'; .*"
    ),
    "unknown device": invalid("runtime.device", "gpu", "string should match pattern .*"),
    "no such GPU": values(
        r"runtime.device: expected a device of this machine \(\d+ CUDA devices\), got cuda:99; use auto or cpu, .*",
        runtime__device="cuda:99",
    ),
    "milestones beyond the epochs": refused(
        r"embed: milestones: expected epochs below epochs=2, got \[1, 9\]", embed__milestones=[1, 9]
    ),
    "milestones that fall": refused(
        r"pretrain: milestones: expected rising epochs, got \[2, 1\]", pretrain__milestones=[2, 1], pretrain__epochs=5
    ),
    "mean without deviation": refused("model: mean, std: expected both or neither to be null; .*", model__mean=[0.5]),
    "means of other channels": values(
        "model.mean, model.std: expected 1 numbers each, one per channel of the images, got 3 and 3; .*",
        model__mean=[0.5] * 3,
        model__std=[0.5] * 3,
    ),
    "a deviation of 0": refused(
        "model.std.0: input should be greater than 0, got 0.0", model__mean=[0.5], model__std=[0.0]
    ),
    "fractions that sum to more": refused(
        r"data: split_fractions: expected three numbers \(.*\) that sum to 1, got \[0.9, 0.2, 0.2\]",
        data__split_fractions=[0.9, 0.2, 0.2],
    ),
    "no training share": refused(
        "data: split_fractions: expected a training share above 0, got .*", data__split_fractions=[0.0, 0.5, 0.5]
    ),
    "all tasks, with replacement": refused(
        "tasks: train: expected a number of tasks, got null; null means all that .*",
        tasks__train=None,
        tasks__replacement=True,
    ),
    "more tasks than there are": values(
        r"tasks.train: expected at most 16 tasks without replacement \(.*\), got 100000; lower it or set .*",
        tasks__train=100_000,
        tasks__replacement=False,
    ),
    "ways above classes": values("tasks.ways: .* only 80 of the 81 classes .*; lower it, .*", tasks__ways=81),
    "more images than a class has": values(
        r"tasks.shots \+ tasks.queries: train class '.*' has only 20 of the 21 images .*", tasks__queries=16
    ),
    "more tasks an epoch than there are": values(
        "embed.tasks_per_epoch: expected at most 80, the number of training tasks, got 81; lower it, or null takes all",
        embed__tasks_per_epoch=81,
    ),
    "more parts than tasks": values(
        "embed.tasks_per_step: .* 1 tasks, but 2 are needed .*; raise it, .*", embed__accumulate=2
    ),
    "more parts than images": values(
        "pretrain.batch_size: .* 16 images, but 40 are needed .*; raise it, .*",
        pretrain__accumulate=40,
        pretrain__batch_size=16,
    ),
    "more clusters than task classes": values(
        "labeler.n_clusters is 500, .* only 400 classes .*",
        labeler__n_clusters=500,
    ),
    "pruned away": values(
        "labeler.q: pass 1 would leave 0 of 120 clusters, fewer than the 5 ways of task .*",
        labeler__guard=False,
        labeler__min_count=1000,
    ),
    "classes that are too rare": values(
        "merging: found .*, 0 of them in merging.min_count=1000 tasks or more, fewer than the 5 ways of task .*; "
        "lower merging.min_count, train the embedding longer, .*",
        merging__min_count=1000,
    ),
    "a training that diverges": values(
        r"pretrain: epoch 1, step \d+: expected a finite loss, got (nan|inf); lower pretrain.learning_rate .*",
        pretrain__learning_rate=1e30,
    ),
    "an embedding that diverges": values(
        "(embed: epoch 1, step .*: expected a finite loss|embed: task .*: ridge regression .* failed).*; "
        r"lower embed.learning_rate \(now 1e\+30\).*",
        embed__learning_rate=1e30,
    ),
    "no iterations to converge in": values(
        r"evaluate.max_iter: task \d+, 1_shot.*: logistic regression did not converge in 1 iterations .*; raise it",
        evaluate__max_iter=1,
        evaluate__C=1e6,
    ),
    "no file": Case(
        "embed",
        lambda: PARAMS.unlink(),
        "params.yaml: no such file; run from the project's root, or write it with `mela preset glyphs`",
    ),
    "a folder": Case(
        "label", lambda: (PARAMS.unlink(), PARAMS.mkdir()), "params.yaml: Is a directory; move what is there away"
    ),
    "no YAML": Case("label", lambda: PARAMS.write_text("labeler: {q: [1\n"), "params.yaml: expected YAML, got .*"),
    "a key twice": Case(
        "label", edited("  q: 6.5", "  q: 6.5\n  q: 5.5"), 'params.yaml: expected YAML, got .*duplicate key "q".*'
    ),
    "no UTF-8": Case(
        "label",
        lambda: PARAMS.write_bytes("labeler: {q: é}".encode("latin-1")),
        "params.yaml: expected text in UTF-8, got .*; save it as UTF-8",
    ),
    "a Python object": Case(
        "label",
        lambda: PARAMS.write_text("labeler: !!python/object/apply:os.system [exit]\n"),
        "params.yaml: expected YAML, got .*",
    ),
}


test_what_is_bad_ends_in_one_line = one_line_each(CASES)
