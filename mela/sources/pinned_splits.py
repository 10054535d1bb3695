"""Read the splits of tasks that the user pins by a table, and find what has moved since the last run."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from mela.errors import MelaError
from mela.io.reading_errors import Report, refuse
from mela.io.schemas import SPLITS
from mela.io.store import read_json, write_json
from mela.io.text_tables import as_known, parse_csv, read_text

PINS = "splits.csv"
KEPT = Path(".checkpoints/splits.json")
EXAMPLES = 3


def read_pins(table: Path, tasks: Collection[str], *, report: Report = refuse) -> dict[str, str]:
    """Read which tasks are pinned to which split.

    Parameters
    ----------
    table : Path
        CSV with the columns ``task`` and ``split``; it may leave out tasks. Blanks around cells count only where the
        name of a task has them.
    tasks : collection of str
        All that there are.
    report : callable
        Told of each wrong row, which is left out.

    Returns
    -------
    dict
        From task to split.
    """
    text = parse_csv(read_text(table, str(table)), where=str(table), required=("task", "split"), report=report)
    pins: dict[str, str] = {}
    for line, name, cell in zip(text.lines, text.columns["task"], text.columns["split"], strict=True):
        task, split = as_known(name, tasks), cell.strip()
        if split not in SPLITS:
            report(f"{table}, line {line}: expected the split {' or '.join(SPLITS)}, got {split!r}; correct it")
        elif task not in tasks:
            report(f"{table}, line {line}: expected the name of a task, got {task!r}; correct it, or remove the row")
        elif task in pins:
            report(f"{table}, line {line}: expected every task once, got {task!r} again; remove the row")
        else:
            pins[task] = split
    return pins


def keep_splits(root: str, splits: Mapping[str, str], path: Path = KEPT) -> None:
    """Remember the split of every task or class, by name, so that the next run can tell what has moved."""
    write_json(path, {"root": str(Path(root).resolve()), "splits": dict(splits)})


def moves(root: str, splits: Mapping[str, str], path: Path = KEPT) -> Iterator[str]:
    """Yield a line if some names of the last run, of the same folder, are in another split now."""
    try:
        last = read_json(path)
        before = last["splits"]
        if last["root"] != str(Path(root).resolve()):
            return
    # nothing that anybody waits for: there was no run, or its note is damaged
    except (MelaError, OSError, KeyError):
        return
    moved = [name for name in splits if isinstance(before, dict) and before.get(name, splits[name]) != splits[name]]
    if moved:
        named = ", ".join(f"{name!r} from {before[name]} to {splits[name]}" for name in moved[:EXAMPLES])
        more = ", ..." if len(moved) > EXAMPLES else ""
        yield (
            f"{len(moved)} of {len(splits)} tasks or classes changed their split since the last run: {named}{more}; "
            "pin their splits in a table to keep them"
        )
