"""Write the findings of `mela data check` to tables: every error, every unused file, every repeated image."""

from pathlib import Path

from mela.sources.check.inspect import Findings
from mela.sources.check.lists import write_list

ERRORS, UNUSED, COPIES = FILES = ("errors.csv", "unused.csv", "copies.csv")


def write_details(folder: Path, findings: Findings) -> list[Path]:
    """Write ``errors.csv``, ``unused.csv`` and ``copies.csv``, and return their paths.

    Images with the same pixels are rows of ``copies.csv``: each further one beside the first of them, with their
    splits, so that all pairs follow.
    """
    split_of = findings.split_of
    copies = [
        (name, group[0], split_of.get(name, ""), split_of.get(group[0], ""))
        for group in findings.pictures.copies
        for name in group[1:]
    ]
    write_list(folder / ERRORS, ["error"], [[error] for error in findings.errors])
    write_list(folder / UNUSED, ["path", "reason"], [(file.path, file.reason) for file in findings.unused])
    write_list(folder / COPIES, ["path", "same_as", "split", "split_of_the_other"], copies)
    return [folder / name for name in FILES]
