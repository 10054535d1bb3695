"""The pipeline under real DVC, on tiny data: what runs, what does not run again, and what users are shown."""

import json
import re
import shutil
import time
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest

from mela.io.name_tables import LISTING
from mela.io.text_tables import read_text_csv
from mela.labeling.correction_tables import add_correction
from mela.labeling.given_names import add_given_name
from mela.params import ROUNDS
from studies.robustness.kills import running
from tests.helpers.copies import copy_parts
from tests.helpers.docs import DVC, NOT_RUN, blocks, commands
from tests.helpers.dvc import AFTER_LABEL, Project, ran
from tests.helpers.forked import Forked
from tests.helpers.pipeline import listed
from tests.helpers.project import CELLS, ROOT, STAGE_NAMES, change, run_stages

pytestmark = pytest.mark.slow

# the labels that the preset does not compare, and what runs where they are turned on
MORE = {
    "kmeans": ["confusions", "evaluate", "pretrain@kmeans", "report"],
    "merged_soft": ["confusions", "evaluate", "label_merged", "pretrain@merged_soft", "report"],
}


@pytest.fixture(scope="module")
def project(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A clone in which a run is committed that DVC has only taken over, but for the report, which names the commit."""
    folder = tmp_path_factory.mktemp("project")
    copy_parts(folder, "mela", "stages", "presets", "dvc.yaml", "corrections.csv", "class_names.csv")
    copy_parts(folder, ".dvcignore", ".gitignore")
    copy_parts(folder, *(f"data/raw/{name}/README.md" for name in ("glyphs", "features", "weights")))
    project = Project(folder)
    project.run("git", "init", "--quiet")
    project.dvc("init", "--quiet")
    shutil.copy(ROOT / ".dvc/config", folder / ".dvc/config")
    shutil.copytree(ROOT / ".dvc/plots", folder / ".dvc/plots", dirs_exist_ok=True)
    project.run("git", "add", "--all")
    project.run("git", "commit", "--quiet", "--message", "code")
    shutil.copytree(finished, folder, dirs_exist_ok=True)
    # two trainings are enough here; with a small q pruning goes on, which no larger one does in so few tasks
    change(folder / "params.yaml", {"compare.oracle": False, "labeler.q": 1.0})
    with chdir(folder):
        run_stages("label", "score_labels", "pretrain@pruned", "pretrain@oracle", "evaluate", "confusions")
    assert ran(project.dvc("repro", "code")) == ["code"]
    # all at once, since DVC writes its lock file for each stage that is named
    project.dvc("commit", "--force")
    assert ran(project.dvc("repro", "--force", "--single-item", "report")) == ["report"]
    project.run("git", "add", "--all")
    project.run("git", "commit", "--quiet", "--message", "run")
    return project


def test_a_second_run_does_nothing(project: Project) -> None:
    assert ran(project.dvc("repro")) == []
    assert project.run("git", "status", "--porcelain") == ""
    assert "up to date" in project.dvc("repro", "--allow-missing", "--dry")


def test_a_comment_reruns_nothing(project: Project) -> None:
    path = project.folder / "mela/errors.py"
    path.write_text(path.read_text(encoding="utf-8") + "# a comment\n", encoding="utf-8")
    assert ran(project.dvc("repro")) == ["code"]
    project.undo()
    assert ran(project.dvc("repro")) == []


def test_images_of_another_size_are_packed_anew(project: Project) -> None:
    """DVC's run cache takes no notice of a parameter called `size`, and would bring back images of the size before."""
    for side in (18, 20):
        change(project.folder / "params.yaml", {"data.image_size": side})
        assert ran(project.dvc("repro", "images")) == ["images"]
        images = np.load(project.folder / "data/images/images.npy", mmap_mode="r")
        assert images.shape[1:] == (side, side, 1)
    project.undo()


def test_what_is_committed_is_small(project: Project) -> None:
    committed = project.run("git", "ls-files", "data", "models", "results").split()
    assert {"results/metrics.json", "results/sweep.csv", "results/embed/curve.csv"} <= set(committed)
    assert not [name for name in committed if name.endswith((".npy", ".parquet", ".safetensors", ".png"))]


def test_the_tutorial(project: Project) -> None:
    """docs/guides/tutorial.md, block by block: an experiment runs what follows only, is compared, kept, and undone."""
    # something to commit, as a first run on another machine has
    params = project.folder / "params.yaml"
    params.write_text(params.read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")
    said: dict[str, str] = {}
    for block in blocks("docs/guides/tutorial.md"):
        if block.language == "sh":
            for command in commands(block):
                others = sorted(DVC) if command == "git checkout ." else []
                for each in [*others, command]:
                    if each not in NOT_RUN:
                        said[each] = project.run("bash", "-c", each)
        else:
            assert block.language == "text"
    (experiment,) = (command for command in said if command.startswith("dvc exp run --name "))
    name, value = re.fullmatch(r"dvc exp run --name (\S+) -S labeler\.q=(\S+)", experiment).groups()
    assert sorted(ran(said[experiment])) == sorted(AFTER_LABEL)
    assert ran(said["dvc repro"]) == []
    assert "Accuracy on test tasks" in said["mela summary"]
    assert re.search(rf"labeler\.q\s+1\.0\s+{re.escape(value)}", said["dvc params diff"])
    assert re.search(r"results/metrics\.json\s+pruned\.clusters", said["dvc metrics diff"])
    assert name in said["dvc exp show --only-changed --drop '.*/.*'"]
    compared = said["mela summary --against HEAD"].partition("on the same test tasks as HEAD")[2]
    assert re.search(r"5-shot .* MeLa, pruned .* [+-]\d+\.\d\d ± \d+\.\d\d", compared)
    assert f"labeler.q: {value}, and 1.0 there" in compared
    plots = (project.folder / "dvc_plots/index.html").read_text(encoding="utf-8")
    assert "clusters per pass" in plots
    assert "odds of the merges" in plots
    shutil.rmtree(project.folder / "dvc_plots")
    assert project.run("git", "status", "--porcelain") == ""
    assert "up to date" in project.dvc("status")


def test_labels_that_stay_the_same_train_nothing_again(project: Project) -> None:
    """With so few tasks merging draws nothing, and the list is of the labeler with another seed.

    Rounds, which would merge too, are off and pass on what they get.
    """
    change(project.folder / "params.yaml", {"merging.seed": 1})
    rounds = [f"round@{number}" for number in ROUNDS]
    assert ran(project.dvc("repro")) == [*rounds, "label_merged", "assign", "report"]
    project.undo()


def test_what_people_say_of_labels_runs_what_depends_on_it(project: Project) -> None:
    table = project.folder / "corrections.csv"
    labels = read_text_csv(project.folder / "results/labels.csv", LISTING).query("clustered")
    one, other = labels.iloc[0], labels[labels["task"] != labels.iloc[0]["task"]].iloc[0]
    names = [(row["task"], row["label"]) for row in (one, other)]
    add_correction(table, names[0], names[1], same=one["cluster"] != other["cluster"])
    found = ran(project.dvc("repro"))
    assert found[:3] == ["corrections", "label_merged", "label"]
    assert not {"images", "manifest", "embed", "extract", "round@first", "label_kmeans"} & set(found)
    assert {"assign", "score_labels", "pretrain@merged", "report"} <= set(found)
    after = read_text_csv(project.folder / "results/labels.csv", LISTING).set_index(["task", "label"])["cluster"]
    assert (after[names[0]] == after[names[1]]) == (one["cluster"] != other["cluster"])
    # what changes nothing trains nothing: the same said twice
    add_correction(table, names[1], names[0], same=one["cluster"] != other["cluster"])
    assert "pretrain@merged" not in ran(project.dvc("repro"))
    project.undo()
    assert ran(project.dvc("repro")) == []


def test_names_of_classes_are_a_matter_of_the_list_and_the_page(project: Project) -> None:
    labels = read_text_csv(project.folder / "results/labels.csv", LISTING).query("clustered")
    add_given_name(project.folder / "class_names.csv", (labels["task"].iloc[0], labels["label"].iloc[0]), "omega")
    assert ran(project.dvc("repro")) == ["assign", "report"]
    assert "<bdi>omega</bdi>" in (project.folder / "results/report.html").read_text(encoding="utf-8")
    project.undo()


def test_a_run_is_compared_with_that_of_a_revision(project: Project) -> None:
    change(project.folder / "params.yaml", {"evaluate.C": 0.1})
    assert ran(project.dvc("repro")) == ["evaluate", "confusions", "report"]
    told = project.run("python", "-m", "mela", "summary", "--against", "HEAD")
    assert "on the same test tasks as HEAD" in told
    assert "evaluate.C: 0.1, and 1.0 there\n" in told
    refused = project.run("python", "-m", "mela", "summary", "--against", "v99", succeeds=False)
    assert refused.startswith("error: --against: expected a folder, or a revision whose results DVC has, got 'v99' (")
    project.undo()


def test_other_labels_in_use_train_nothing(project: Project) -> None:
    change(project.folder / "params.yaml", {"use": "pruned"})
    assert sorted(ran(project.dvc("repro"))) == ["assign", "confusions", "map", "report"]
    project.undo()


def test_a_failing_stage_says_why_and_keeps_what_was_there(project: Project) -> None:
    change(project.folder / "params.yaml", {"labeler.q": -1.0})
    output = project.dvc("repro", succeeds=False)
    assert "error: params.yaml: labeler.q: input should be greater than or equal to 0, got -1.0" in output
    assert "Traceback" not in output
    project.undo()
    assert ran(project.dvc("repro")) == []


def names_of_experiments(project: Project) -> set[str]:
    """Those that have ended well, by what DVC keeps in Git."""
    names = project.run("git", "for-each-ref", "--format", "%(refname)", "refs/exps").split()
    assert "refs/exps/celery/failed" not in names, project.dvc("queue", "status")
    return {name.rpartition("/")[2] for name in names}


def test_a_queue_with_two_workers(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two more kinds of labels, side by side: what follows runs, and each gives what it gives without DVC."""
    metrics = {name: [f"results/pretrain/{name}.json", "results/evaluate/metrics.json"] for name in MORE}
    expected = {}
    for name in MORE:
        shutil.copytree(project.folder, tmp_path / name, ignore=shutil.ignore_patterns(".git", ".dvc"))
        monkeypatch.chdir(tmp_path / name)
        change(Path("params.yaml"), {f"compare.{name}": True})
        run_stages(f"pretrain@{name}", "evaluate")
        expected[name] = [json.loads(Path(path).read_text(encoding="utf-8")) for path in metrics[name]]
    for name in MORE:
        project.dvc("exp", "run", "--queue", "--name", name, "--set-param", f"compare.{name}=true")
    # the workers would keep a pipe open until they find, which they look for rarely, that nothing is left to do
    project.run("bash", "-c", "dvc queue start --jobs 2 &> /dev/null")
    end = time.monotonic() + 300
    while not names_of_experiments(project) >= set(MORE):
        assert time.monotonic() < end, project.dvc("queue", "status")
        time.sleep(0.5)
    assert running(project.folder)
    project.dvc("queue", "stop")
    while running(project.folder):
        assert time.monotonic() < end, project.dvc("queue", "status")
        time.sleep(0.1)
    for name in MORE:
        assert sorted(ran(project.dvc("queue", "logs", name))) == MORE[name]
        project.dvc("exp", "apply", name)
        found = [json.loads((project.folder / path).read_text(encoding="utf-8")) for path in metrics[name]]
        assert found == expected[name]
    project.undo()


def test_two_runs_at_once_from_nothing(project: Project) -> None:
    """One may be told that the other holds the lock; the other runs every stage, and dvc.lock is the same again."""
    before = project.lock()
    for stage in STAGE_NAMES:
        for output in listed(stage, "outs", "metrics", "plots"):
            path = project.folder / output
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in ("dvc.lock", ".dvc/cache", "data/code"):
        project.run("rm", "-r", path)
    words = ["-m", "dvc", "repro"]
    runs = [Forked(words, project.folder, project.environment(), together=True) for _ in range(2)]
    ended = [(run.communicate(timeout=300)[0], run.returncode) for run in runs]
    assert 0 in [status for _, status in ended], ended
    for said, status in ended:
        if status:
            assert re.search(r"Unable to acquire lock|is busy, it is being blocked by", said), said
            assert "Traceback" not in said
    assert sorted(ran("".join(said for said, _ in ended))) == sorted(["code", *CELLS])
    assert ran(project.dvc("repro")) == []
    assert project.lock() == before
