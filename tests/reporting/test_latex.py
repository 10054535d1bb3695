"""Tables in LaTeX: every cell as it is, whatever LaTeX would make of it."""

import re

from mela.reporting.latex import latex
from mela.reporting.summary import Table


def test_a_table() -> None:
    rows = [("5-shot", "K&R_1", "91.20 ± 0.30", ""), ("5-shot", "50% {x}", "9.10 ± 0.30", "-1.50 ± 0.20")]
    table = Table(title="Runs of a_b, 5%", columns=("setting", "labels", "accuracy, %", "gain"), rows=rows)
    assert latex(table).splitlines() == [
        r"\begin{table}",
        r"\caption{Runs of a\_b, 5\%}",
        r"\begin{tabular}{llrr}",
        r"\toprule",
        r"setting & labels & accuracy, \% & gain \\",
        r"\midrule",
        r"5-shot & K\&R\_1 & 91.20 $\pm$ 0.30 &  \\",
        r"5-shot & 50\% \{x\} & 9.10 $\pm$ 0.30 & $-$1.50 $\pm$ 0.20 \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


def test_a_table_without_rows_is_a_comment() -> None:
    assert re.fullmatch("% .+\n", latex(Table(title="Labels", columns=("labels",), empty="no labels were inferred")))
