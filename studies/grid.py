"""Run studies that are grids: one row of a table, or several, for each cell of a product of keys.

Such a study is a YAML file, and ``python -m studies labels.grid`` runs studies/labels/grid.yaml:

    about: What it finds out, in a sentence or two.
    measure: module:function    # takes a cell and the options by name, returns one row or a list of rows
    out: studies/results/label_grid.csv
    keys:                       # a row's first columns; `--data glyphs --data fc100` takes other values than these
      seed: 3                   # 0, 1 and 2; the option is --seeds 3
      data: [glyphs, fc100]
      method: module:NAME       # what Python has under this name; others are known only if it is a list
      labeler:                  # values with settings, which go to `measure` as `settings`; no others are known
        merged: {merge: true}
      optimizer, rate: [sgd:0.05, adam:0.003]    # columns that change together; the option is --rate adam:0.003
    columns: [accuracy, ari]    # what is measured, as the table has it
    options: {folder: build/grid}    # more options, and what they are by default; optional
    cell: module:function       # takes a cell of the product and returns that which is measured; optional
    sorted: true                # rows in the order of the keys, not in the order of measuring; optional
    then: module:function       # takes the whole table and prints a summary; optional

Rows that are there are not measured again, so that a run that was cut off goes on; ``--again`` replaces them.

Hydra's sweeps and DVC's experiments keep a folder or a commit for each run, but a study keeps one table, of which only
missing rows are measured.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from inspect import Parameter, Signature
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from mela.blocks import read_yaml
from mela.errors import DivergedError
from mela.io import store

Row = dict[str, Any]
FOLDER = Path(__file__).parent
FILES = {".".join(path.relative_to(FOLDER).with_suffix("").parts): path for path in sorted(FOLDER.glob("*/*.yaml"))}
# programs that are no grids, each the `main` of its module
OTHERS = {
    "labels": ("q_sweep", "tables"),
    "robustness": ("fuzz", "kills"),
    "speed": ("frozen", "gpu", "heads", "labeler", "many_classes", "pipeline", "scale", "train_steps"),
    "training": ("rate_search",),
}
NAMES = sorted([*FILES, *(f"{folder}.{name}" for folder, names in OTHERS.items() for name in names)])


def text(value: Any) -> str:
    """Return a value as tables have it: numbers with six digits, and nothing if there is no number."""
    if value is None or value != value:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def complete(
    out: Path,
    cells: Iterable[Row],
    measure: Callable[..., Row | list[Row]],
    columns: Sequence[str],
    *,
    ordered: bool = False,
    again: bool = False,
    **options: Any,
) -> None:
    """Measure the cells that a table lacks; write the rows of each as soon as it is measured.

    Training that diverges leaves a row without measurements; any other error ends the run.

    Parameters
    ----------
    out : Path
        The table. Its rows stay as they are, to the letter.
    cells : iterable of dict
        Values of the keys, by column.
    measure : callable
        Takes a cell and the options by name, and returns one row or several.
    columns : sequence of str
        What is measured.
    ordered : bool, default=False
        Whether rows are in the order of the keys.
    again : bool, default=False
        Whether rows that are there are measured again and replaced.
    """
    for cell in cells:
        if not again and _of(_read(out, cell), cell).any():
            continue
        try:
            found = measure(**cell, **options)
        except DivergedError as error:
            typer.echo(f"{cell}: {error}")
            found = {}
        rows = [cell | row for row in ([found] if isinstance(found, dict) else found)]
        new = pd.DataFrame([{name: text(row.get(name)) for name in (*cell, *columns)} for row in rows])
        # another process may have added rows meanwhile
        known = _read(out, cell)
        table = pd.concat([known[~_of(known, cell)], new], ignore_index=True)
        if ordered:
            numbers = {name for name, value in cell.items() if type(value) in (int, float)}
            table = table.sort_values(
                [*cell], kind="stable", key=lambda column: pd.to_numeric(column) if column.name in numbers else column
            )
        store.write_csv(out, table)
        for row in rows:
            typer.echo(" ".join(f"{name}={text(value)}" for name, value in row.items()))


def _of(table: pd.DataFrame, cell: Row) -> "pd.Series[bool]":
    """Tell which rows are those of a cell."""
    return (table[[*cell]] == pd.Series({name: text(value) for name, value in cell.items()})).all(axis=1)


def _read(out: Path, cell: Row) -> pd.DataFrame:
    """Return the rows of a table as text."""
    if out.exists():
        return pd.read_csv(out, dtype=str, keep_default_na=False)
    return pd.DataFrame(columns=[*cell], dtype=str)


def command(name: str) -> Callable[..., None]:
    """Return the command of a study, whether it is a grid or not."""
    return program(name) if name in FILES else _found(f"studies.{name}:main")


def program(name: str) -> Callable[..., None]:
    """Return the command of a study, with an option for each of its keys.

    Parameters
    ----------
    name : str
        Name of the YAML file, such as labels.grid.
    """
    study = read_yaml(FILES[name])
    keys = {key: _found(values) if isinstance(values, str) else values for key, values in study["keys"].items()}
    measure, more = _found(study["measure"]), study.get("options", {})
    asked = {_name(key, values): values if isinstance(values, int) else [*values] for key, values in keys.items()}
    options = [_option(key, value) for key, value in (asked | more).items()]
    options += [_option("out", study["out"], "the table"), _option("again", False, "replace rows that are there")]

    def run(**given: Any) -> None:
        chosen = {option.name: option.default for option in options} | given
        cells = [*_cells(keys, chosen)]
        if "cell" in study:
            changed = [_found(study["cell"])(cell) for cell in cells]
            cells = [cell for place, cell in enumerate(changed) if cell not in changed[:place]]
        settings = {key: values for key, values in study["keys"].items() if isinstance(values, dict)}

        def measured(**how: Any) -> Row | list[Row]:
            own = {name: value for key, values in settings.items() for name, value in values[how[key]].items()}
            return measure(**how, **({"settings": own} if settings else {}))

        how = {"ordered": study.get("sorted", False), "again": chosen["again"]} | {key: chosen[key] for key in more}
        complete(chosen["out"], cells, measured, study["columns"], **how)
        if "then" in study:
            _found(study["then"])(pd.read_csv(chosen["out"]))

    run.__doc__ = study["about"]
    run.__signature__ = Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def _cells(keys: dict[str, Any], chosen: Row) -> Iterator[Row]:
    """Yield the product of the values that were chosen for the keys."""
    lists = []
    for key, known in keys.items():
        option, names = _name(key, known), key.split(", ")
        values: Any = range(chosen[option]) if isinstance(known, int) else chosen[option]
        for value in values:
            if isinstance(known, (dict, tuple)) and value not in known:
                raise typer.BadParameter(f"--{option}: expected {' or '.join(map(str, known))}, got {value!r}")
        split = [value.split(":") if len(names) > 1 else [value] for value in values]
        lists.append([dict(zip(names, map(_number, parts), strict=True)) for parts in split])
    for parts in product(*lists):
        yield {name: value for part in parts for name, value in part.items()}


def _number(value: Any) -> Any:
    """Return a text as a number if it is one."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _name(key: str, values: Any) -> str:
    """Return the name of the option of a key."""
    return "seeds" if isinstance(values, int) else key.split(", ")[-1]


def _option(name: str, value: Any, words: str = "") -> Parameter:
    """Return an option by its default; whole numbers beside others stand for numbers of any kind."""
    kind: Any = type(value)
    if isinstance(value, str) and "/" in value:
        kind, value = Path, Path(value)
    if isinstance(value, list):
        kinds = {type(one) for one in value} or {str}
        kind = list[float if float in kinds else kinds.pop()]  # type: ignore[misc]
    option = typer.Option(f"--{name}", help=words or None)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=value, annotation=Annotated[kind, option])


def _found(name: str) -> Any:
    """Return what a study names as module:name."""
    module, _, what = name.partition(":")
    return getattr(import_module(module), what)
