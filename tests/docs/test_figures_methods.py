"""What docs/results/methods.md says of rates, scales and regularizers, and its tables of them, are computed anew."""

from collections.abc import Iterator

import pandas as pd
import pytest

from benchmark.report.pairs import signed
from mela.methods import find_method
from studies.training.method_rates import own_head
from tests.helpers.figures import EMBED, RATES, both, check, prose, tried
from tests.helpers.project import ROOT

PAGE = "docs/results/methods.md"
DATA = {"glyphs": "glyphs", "cifar_fs": "CIFAR-FS"}
# measured once, and in no file: with a rate that methods no longer have, or of a kind that no program measures
ALONE = (
    "one step of 0.4",
    "0.01 has 93.1 / 96.2, 0.03 has 92.4 / 96.6, 0.1 has 90.1 / 95.7 after ten steps in testing and 89.8 / 92.9",
)


def trainings() -> Iterator[str]:
    """How methods are trained, and what other rates would give."""
    none = ("nothing", "nothing")
    compared = {
        "feat": none,
        "frn": ("1", "1"),
        "matchingnet": ("10", "nothing"),
        "metaoptnet_ridge": ("10", "50"),
        "metaoptnet_svm without a ridge": ("10", "0.1"),
        "protonet": none,
        "r2d2": ("10", "1"),
    }

    def on_average(optimizer: str, rate: float) -> str:
        rows = [RATES.row("glyphs", name, "nothing", 1, optimizer, rate, *head) for name, head in compared.items()]
        return both(pd.DataFrame(rows).mean())

    def slower(data: str, method: str, **how: str) -> str:
        less = tried(data, method, rate=0.001, **how) - tried(data, method, rate=0.003, **how)
        return f"{signed(less['1_shot'])} and {signed(less['5_shot'])}"

    yield (
        f"over seven methods, Adam at 0.003 has {on_average('adam', 0.003)} on average (1- and 5-shot) and SGD at 0.1 "
        f"{on_average('sgd', 0.1)} (both with scales of 10, R2-D2 from λ = 1 and the SVM without a ridge, see below)"
    )
    feat = [
        both(tried(data, "feat", rate=rate))
        for data, rates in (("cifar_fs", (0.003, 0.001, 0.0003)), ("glyphs", (0.003, 0.001, 0.0003)))
        for rate in rates
    ]
    yield (
        f"FEAT fails at 0.003, with {feat[0]}, and has {feat[1]} at 0.001 and {feat[2]} at 0.0003; on the glyphs "
        f"{feat[3]}, {feat[4]} and {feat[5]}. The others "
        f"change little at 0.001 on CIFAR-FS: ProtoNet by {slower('cifar_fs', 'protonet')} points, FRN by "
        f"{slower('cifar_fs', 'frn', scale='1', regularizer='1')}, MetaOptNet's ridge head, from a scale of 10, by "
        f"{slower('cifar_fs', 'metaoptnet_ridge', scale='10', regularizer='50')}, and FEAT from MeLa's embedding on "
        f"the glyphs by {slower('glyphs', 'feat', start='merged-rfs')}."
    )


def scales() -> Iterator[str]:
    yield "(MetaOptNet's from 10 to 11.8)"  # of one training, and in no file


def regularizers() -> Iterator[str]:
    undivided = tried("glyphs", "frn", scale="64", regularizer=f"{1 / 64:g}")
    yield f"= 1/64 here, which has {both(undivided)} on the glyphs."


def initial_embedding() -> Iterator[str]:
    worst = EMBED.row("cifar_fs", "sgd", 1)
    assert worst["1_shot"] == EMBED.rows.loc["cifar_fs"]["1_shot"].min()
    assert worst["5_shot"] == EMBED.rows.loc["cifar_fs"]["5_shot"].min()
    yield f"with SGD the worst on CIFAR-FS, {both(worst)}"
    yield f"R2-D2 ({both(tried('cifar_fs', 'r2d2', scale='3', regularizer='500'))} on CIFAR-FS, by its own rule)"


SECTIONS = {
    "## Training": trainings,
    "### Scale of logits": scales,
    "### Regularizer": regularizers,
    "### Lambda and rate of the initial embedding": initial_embedding,
}


@pytest.mark.parametrize("heading", SECTIONS)
def test_prose(heading: str) -> None:
    check(prose(PAGE, heading), SECTIONS[heading](), ALONE if heading == "## Training" else ())


def shown(heading: str) -> dict[tuple[str, str], str]:
    """Cells of the table below a heading that are not empty, by the names of their row and column."""
    text = (ROOT / PAGE).read_text(encoding="utf-8").partition(f"\n{heading}\n")[2].partition("\n#")[0]
    names, _, *rows = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line[:1] == "|"
    )
    return {(row[0], name): cell for row in rows for name, cell in zip(names[1:], row[1:], strict=True) if cell}


def of_own(attribute: str) -> dict[tuple[str, str], str]:
    """Accuracies of methods on tasks by a scale or a regularizer, with the other as they have it; theirs is bold."""
    other = {"scale": "regularizer", "regularizer": "scale"}[attribute]
    rows = RATES.rows.reset_index().query("start == 'nothing' and optimizer == 'adam' and rate == 0.003")
    found = {}
    for row in rows[rows[attribute] != "nothing"].to_dict("records"):
        method, changed, variant = str(row["method"]).partition(" ")
        own = own_head(method)._asdict()
        if row[other] == own[other]:
            text = f"{row['1_shot']:.1f} / {row['5_shot']:.1f}"
            name = f"{find_method(method).title}{changed}{variant}, {DATA[row['data']]}"
            as_it_is = row[attribute] == own[attribute] and not variant
            found[name, str(row[attribute])] = f"**{text}**" if as_it_is else text
    return found


@pytest.mark.parametrize(
    ("heading", "attribute"), [("### Scale of logits", "scale"), ("### Regularizer", "regularizer")]
)
def test_tables_of_scales_and_regularizers(heading: str, attribute: str) -> None:
    assert shown(heading) == of_own(attribute)


def test_the_table_of_initial_embeddings() -> None:
    settings = {
        "SGD 0.05, λ₁ = 0.001 (the tables)": ("sgd", 0.001),
        "SGD, λ₁ = 50": ("sgd", 50),
        "Adam 0.003, λ₁ = 0.001": ("adam", 0.001),
        "Adam, λ₁ = 50": ("adam", 50),
    }
    assert shown("### Lambda and rate of the initial embedding") == {
        (title, name): EMBED.pair(data, *how) for data, title in DATA.items() for name, how in settings.items()
    }
