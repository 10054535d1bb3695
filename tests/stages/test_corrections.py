"""What people say of labels, through the stages: in the labels of images, and in what is left to ask."""

from itertools import combinations
from pathlib import Path

import pytest

from mela.errors import MelaError
from mela.io import schemas, store
from mela.io.name_tables import LISTING
from mela.io.text_tables import read_text_csv
from mela.labeling.correction_tables import add_correction
from stages.common import paths
from tests.helpers.project import run_stages


def test_labels_keep_to_what_people_say(people_copied: Path) -> None:
    before = read_text_csv(paths.LISTING, LISTING).query("split == 'train' and clustered")
    rows = list(before[["task", "label", "cluster"]].itertuples(index=False, name=None))
    pairs = [(one, other) for one, other in combinations(rows, 2) if one[0] != other[0]]
    same, different = (
        next(pair for pair in pairs[::-1] if pair[0][2] != pair[1][2]),
        next(pair for pair in pairs if pair[0][2] == pair[1][2]),
    )
    for pair, answer in ((same, True), (different, False)):
        add_correction(paths.CORRECTIONS, pair[0][:2], pair[1][:2], same=answer)
    run_stages("corrections", "label_merged", "label", "assign")
    after = read_text_csv(paths.LISTING, LISTING).set_index(["task", "label"])
    one, other = (after.loc[row[:2]] for row in same)
    assert one["cluster"] == other["cluster"]
    one, other = (after.loc[row[:2]] for row in different)
    assert one["cluster"] != other["cluster"]
    assert after.loc[[row[:2] for row in (*same, *different)], "clustered"].all()
    images = store.read_table(paths.TRAIN, schemas.MANIFEST).merge(
        store.read_table(paths.MERGED_TASKS, schemas.ASSIGNMENTS), on=["task_id", "local_label"]
    )
    labels = store.read_table(paths.MERGED_LABELS, schemas.LABELS).set_index("image_id")["label"]
    told = images[images["clustered"]]
    assert (labels[told["image_id"]].to_numpy() == told["cluster"].to_numpy()).mean() > 0.9


def test_a_contradiction_ends_the_run_before_anything_is_trained(people_copied: Path) -> None:
    rows = read_text_csv(paths.LISTING, LISTING).query("split == 'train'")[["task", "label"]].to_numpy().tolist()
    one, other = next((a, b) for a, b in combinations(rows, 2) if a[0] != b[0])
    for answer in (True, False):
        add_correction(paths.CORRECTIONS, tuple(one), tuple(other), same=answer)
    with pytest.raises(
        MelaError, match=r"^corrections\.csv, line 3: .* are said to differ, but .* \(corrections\.csv, "
    ):
        run_stages("corrections")
