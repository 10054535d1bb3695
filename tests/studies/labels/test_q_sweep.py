"""Labels by q."""

import pandas as pd

from studies.labels.q_sweep import by_q


def test_rows_of_the_grid_by_q() -> None:
    names = ["merged", "merged, colliding tasks assigned", "pruned q=4.5", "pruned q=6.5", "pruned q=6.5, no guard"]
    rows = by_q(pd.DataFrame({"labeler": names, "clusters": [64, 63, 80, 90, 5]}))
    assert rows[["mode", "q", "clusters"]].to_numpy().tolist() == [
        ["pruned", 4.5, 80],
        ["pruned", 6.5, 90],
        ["pruned, no guard", 6.5, 5],
        ["merged", 4.5, 64],
        ["merged", 6.5, 64],
    ]
