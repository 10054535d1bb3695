"""What is wrong with parameters ends in one line that says what to do about it."""

from ruamel.yaml import YAML

from mela.params import PARAMS
from tests.helpers.bad_input import Case, Spoil, one_line_each, params


def edit(old: str, new: str) -> Spoil:
    """Change the text of the parameters."""

    def spoil() -> None:
        text = PARAMS.read_text(encoding="utf-8")
        assert text.count(old) == 1, old
        PARAMS.write_text(text.replace(old, new), encoding="utf-8")

    return spoil


def without(block: str) -> Spoil:
    """Leave out a block of the parameters."""

    def spoil() -> None:
        yaml = YAML()
        document = yaml.load(PARAMS.read_text(encoding="utf-8"))
        del document[block]
        with PARAMS.open("w", encoding="utf-8") as file:
            yaml.dump(document, file)

    return spoil


CASES: dict[str, Case] = {
    "unknown key": ("label", params(labeler__kew=1), "params.yaml: labeler.kew: unknown key; remove it or correct .*"),
    "misspelt key": (
        "label",
        edit("  q: 6.5", "  qq: 6.5"),
        r"params.yaml: labeler.qq: unknown key; remove it or correct its name \(and 1 more in this block\)",
    ),
    "missing key": (
        "label",
        edit("  q: 6.5", "  # q: 6.5"),
        "params.yaml: labeler.q: missing; expected a value",
    ),
    "unknown block": (
        "label",
        edit("labeler:", "labeller:"),
        r"params.yaml: labeller: unknown block; expected one of augment, .*",
    ),
    "missing block": (
        "label",
        without("labeler"),
        "params.yaml: labeler: expected this block, found only data, .*, runtime",
    ),
    "missing blocks, of this stage and of others": (
        "label",
        lambda: PARAMS.write_text("data:\n  name: glyphs\n"),
        r"params.yaml: data.root: missing; expected a value \(and 7 more in this block, 11 more in other blocks\)",
    ),
    "a mistake in a block of a later stage": (
        "embed",
        params(labeler__q=None),
        "params.yaml: labeler.q: input should be a valid number, got None",
    ),
    "mistakes in two blocks of later stages": (
        "images",
        params(labeler__q=None, evaluate__shots=[], evaluate__C=0.0),
        r"params.yaml: labeler.q: input should be a valid number, got None \(and 2 more in other blocks\)",
    ),
    "a missing block of a later stage": (
        "manifest",
        without("report"),
        "params.yaml: report: expected this block, found only data, .*, runtime",
    ),
    "empty file": ("label", lambda: PARAMS.write_text(""), "params.yaml: expected blocks such as `labeler:`, got .*"),
    "a list": ("label", lambda: PARAMS.write_text("- 1\n"), "params.yaml: expected blocks such as `labeler:`, got .*"),
    "text for a number": (
        "embed",
        params(embed__epochs="ten"),
        "params.yaml: embed.epochs: input should be a valid integer, got 'ten'",
    ),
    "a boolean for a number": (
        "embed",
        params(embed__epochs=True),
        "params.yaml: embed.epochs: input should be a valid integer, got True",
    ),
    "a number for a boolean": (
        "label",
        params(labeler__merge=1),
        "params.yaml: labeler.merge: input should be a valid boolean, got 1",
    ),
    "a fraction for an integer": (
        "pretrain",
        params(pretrain__batch_size=64.5),
        "params.yaml: pretrain.batch_size: input should be a valid integer.*, got 64.5",
    ),
    "null": (
        "pretrain",
        params(pretrain__batch_size=None),
        "params.yaml: pretrain.batch_size: input should be a valid integer, got None",
    ),
    "below the range": (
        "label",
        params(labeler__q=-1.0),
        "params.yaml: labeler.q: input should be greater than or equal to 0, got -1.0",
    ),
    "a number without end": (
        "manifest",
        params(tasks__train=10**20),
        "params.yaml: tasks.train: input should be less than or equal to 1000000000, got 1000+",
    ),
    "a rate beyond float32": (
        "embed",
        params(embed__learning_rate=1e300),
        r"params.yaml: embed.learning_rate: input should be less than or equal to 10{30}, got 1e\+300",
    ),
    "blocks within blocks": (
        "label",
        lambda: PARAMS.write_text("a: " + "[" * 3000),
        "params.yaml: expected YAML, got .*",
    ),
    "a boolean that is none": (
        "label",
        edit("  q: 6.5", "  q: !!bool x"),
        "params.yaml: expected YAML, got 'x'",
    ),
    "not a number": (
        "embed",
        params(embed__learning_rate=float("nan")),
        "params.yaml: embed.learning_rate: input should be .*, got nan",
    ),
    "infinite": (
        "embed",
        params(embed__ridge=float("inf")),
        "params.yaml: embed.ridge: input should be a finite number, got inf",
    ),
    "a seed of too many digits": (
        "embed",
        params(embed__seed=2**40),
        "params.yaml: embed.seed: input should be less than 4294967296, got 1099511627776",
    ),
    "unknown backbone": (
        "embed",
        params(model__backbone="vgg"),
        "params.yaml: model.backbone: expected conv4, resnet12 or timm:<name>, got 'vgg'",
    ),
    "unknown labels": (
        "pretrain",
        params(pretrain__labels="truth"),
        "params.yaml: pretrain.labels: input should be .*, got 'truth'",
    ),
    "unknown device": (
        "extract",
        params(runtime__device="gpu"),
        "params.yaml: runtime.device: string should match pattern .*, got 'gpu'",
    ),
    "no such GPU": (
        "extract",
        params(runtime__device="cuda:99"),
        r"runtime.device: expected a device of this machine \(\d+ CUDA devices\), got cuda:99; use auto or cpu, .*",
    ),
    "milestones beyond the epochs": (
        "embed",
        params(embed__milestones=[1, 9]),
        r"params.yaml: embed: milestones: expected epochs below epochs=2, got \[1, 9\]",
    ),
    "milestones that fall": (
        "pretrain",
        params(pretrain__milestones=[2, 1], pretrain__epochs=5),
        r"params.yaml: pretrain: milestones: expected rising epochs, got \[2, 1\]",
    ),
    "mean without deviation": (
        "embed",
        params(model__mean=[0.5]),
        "params.yaml: model: mean, std: expected both or neither to be null; .*",
    ),
    "means of other channels": (
        "embed",
        params(model__mean=[0.5] * 3, model__std=[0.5] * 3),
        "model.mean, model.std: expected 1 numbers each, one per channel of the images, got 3 and 3; .*",
    ),
    "a deviation of 0": (
        "embed",
        params(model__mean=[0.5], model__std=[0.0]),
        "params.yaml: model.std.0: input should be greater than 0, got 0.0",
    ),
    "fractions that sum to more": (
        "images",
        params(data__split_fractions=[0.9, 0.2, 0.2]),
        r"params.yaml: data: split_fractions: expected three numbers \(.*\) that sum to 1, got \[0.9, 0.2, 0.2\]",
    ),
    "no training share": (
        "images",
        params(data__split_fractions=[0.0, 0.5, 0.5]),
        "params.yaml: data: split_fractions: expected a training share above 0, got .*",
    ),
    "all tasks, with replacement": (
        "manifest",
        params(tasks__train=None, tasks__replacement=True),
        "params.yaml: tasks: train: expected a number of tasks, got null; null means all that .*",
    ),
    "more tasks than there are": (
        "manifest",
        params(tasks__train=100_000, tasks__replacement=False),
        r"tasks.train: expected at most 16 tasks without replacement \(.*\), got 100000; lower it or set .*",
    ),
    "ways above classes": (
        "manifest",
        params(tasks__ways=81),
        "tasks.ways: expected at most 80, the number of train classes, got 81",
    ),
    "more images than a class has": (
        "manifest",
        params(tasks__queries=16),
        r"tasks.shots \+ tasks.queries: expected at most 20, the images of train class '.*', got 21",
    ),
    "more tasks an epoch than there are": (
        "embed",
        params(embed__tasks_per_epoch=81),
        "embed.tasks_per_epoch: expected at most 80, the number of training tasks, got 81; lower it, or null takes all",
    ),
    "more parts than tasks": (
        "embed",
        params(embed__accumulate=2),
        "embed.tasks_per_step: expected 2 tasks or more in every step, .* got 1; raise it, .*",
    ),
    "more parts than images": (
        "pretrain",
        params(pretrain__accumulate=40, pretrain__batch_size=16),
        "pretrain.batch_size: expected 40 images or more in every step, .* got 16; raise it, .*",
    ),
    "more clusters than task classes": (
        "label",
        params(labeler__merge=False, labeler__n_clusters=500),
        "labeler.n_clusters: expected at most 400, the number of task classes, got 500.*",
    ),
    "pruned away": (
        "label",
        params(labeler__merge=False, labeler__guard=False, labeler__min_count=1000),
        "labeler.q: pass 1 would leave 0 of 120 clusters, fewer than the 5 ways of task .*",
    ),
    "classes that are too rare": (
        "label",
        params(labeler__min_count=1000),
        "labeler.merge: found .*, 0 of them in labeler.min_count=1000 tasks or more, fewer than the 5 ways of task .*; "
        "lower labeler.min_count, train the embedding longer, .*",
    ),
    "a training that diverges": (
        "pretrain",
        params(pretrain__learning_rate=1e30),
        r"pretrain: epoch 1, step \d+: expected a finite loss, got (nan|inf); lower pretrain.learning_rate .*",
    ),
    "an embedding that diverges": (
        "embed",
        params(embed__learning_rate=1e30),
        "(embed: epoch 1, step .*: expected a finite loss|embed: task .*: ridge: expected a positive definite).*; "
        r"lower embed.learning_rate \(now 1e\+30\).*",
    ),
    "no iterations to converge in": (
        "evaluate",
        params(evaluate__max_iter=1, evaluate__C=1e6),
        r"evaluate.max_iter: task \d+, 1_shot.*: logistic regression did not converge in 1 iterations .*; raise it",
    ),
    "no file": (
        "embed",
        lambda: PARAMS.unlink(),
        "params.yaml: no such file; run from the project's root, or write it with `mela preset glyphs`",
    ),
    "a folder": (
        "label",
        lambda: (PARAMS.unlink(), PARAMS.mkdir()),
        "params.yaml: Is a directory; move what is there away",
    ),
    "no YAML": (
        "label",
        lambda: PARAMS.write_text("labeler: {q: [1\n"),
        "params.yaml: expected YAML, got .*",
    ),
    "a key twice": (
        "label",
        edit("  q: 6.5", "  q: 6.5\n  q: 5.5"),
        'params.yaml: expected YAML, got .*duplicate key "q".*',
    ),
    "no UTF-8": (
        "label",
        lambda: PARAMS.write_bytes("labeler: {q: é}".encode("latin-1")),
        "params.yaml: expected text in UTF-8, got .*; save it as UTF-8",
    ),
    "a Python object": (
        "label",
        lambda: PARAMS.write_text("labeler: !!python/object/apply:os.system [exit]\n"),
        "params.yaml: expected YAML, got .*",
    ),
}


test_what_is_bad_ends_in_one_line = one_line_each(CASES)
