"""Write tables of a run for LaTeX."""

import re

import pandas as pd

from mela.reporting.summary import Table

NUMBER = re.compile("[+-]?[0-9.,]+( ± [0-9.]+)?")
ESCAPED = {ord(mark): f"\\{mark}" for mark in "&%$#_{}"} | {
    ord("~"): r"{\textasciitilde}",
    ord("^"): r"{\textasciicircum}",
    ord("\\"): r"{\textbackslash}",
}


def latex(table: Table) -> str:
    r"""Return a table in LaTeX, for the package booktabs, or a comment when it has no rows.

    Columns of numbers are set to the right.
    """
    if not table.rows:
        return f"% {table.empty}\n"
    frame = pd.DataFrame(table.rows, columns=table.columns)
    columns = [[cell for cell in cells if cell] for cells in zip(*table.rows, strict=True)]
    form = "".join("r" if cells and all(map(NUMBER.fullmatch, cells)) else "l" for cells in columns)
    styled = frame.style.hide(axis="index").format(escape="latex").format_index(escape="latex", axis="columns")
    text = styled.to_latex(hrules=True, caption=table.title.translate(ESCAPED), column_format=form)
    text = text.replace("±", r"$\pm$")
    # a hyphen is no minus
    return re.sub(r"(?<=[ ~])-(?=[0-9])", "$-$", text)
