"""The page about using the model does what it says."""

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT

from mela import cli, store

PAGE = ROOT / "docs/using-the-model.md"


def test_every_block_runs_after_the_pipeline(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    printed: list[Any] = []
    for language, code in blocks:
        if language == "python":
            exec(code, names | {"print": printed.append}, names)
        else:
            (command,) = code.splitlines()
            monkeypatch.setattr(sys, "argv", shlex.split(command))
            with pytest.raises(SystemExit) as ended:
                cli.main()
            assert not ended.value.code
    score, probabilities, difference = printed
    measured = store.read_table(copied / "results/evaluate/per_task.parquet", store.ACCURACIES)
    task = measured.query("split == 'test' and model == 'mela' and setting == '5_shot' and task_id == 0")
    assert 100 * score == pytest.approx(task["accuracy"].item())
    assert probabilities.shape == (3, 5)
    assert difference < 1e-4
    written = pd.read_csv("data/raw/few/predictions.csv")
    right = written["label"] == written["path"].map(
        {f"data/raw/few/new/{row.image_id}.png": f"letter {row.local_label}" for row in names["task"].itertuples()}
    )
    assert np.mean(right) == pytest.approx(score)
    assert sorted(path.name for path in Path("data/raw/few").glob("final.*")) == [
        "final.onnx",
        "final.onnx.md",
        "final.pt2",
        "final.pt2.md",
    ]
