"""The stage of code under real DVC, and lock files that are carried over, in a small project of two stages."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.helpers.docs import RELOCK
from tests.helpers.dvc import Project, ran
from tests.helpers.project import ROOT, edit, write

pytestmark = pytest.mark.slow


STAGE = '''
    """Write a number."""
    from pathlib import Path
    from mela import numbers

    def main() -> None:
        """Write it."""
        Path("{name}.txt").write_text(str(numbers.{function}(2)))

    if __name__ == "__main__":
        main()
    '''
NUMBERS = '''
    """Numbers."""

    FACTOR = 2

    def double(x: int) -> int:
        """Twice."""
        return FACTOR * x

    def square(x: int) -> int:
        """The square."""
        return x * x
    '''
PIPELINE = """
    stages:
      code:
        cmd: python -m stages.code
        deps: [mela, stages]
        outs: [data/code]
      one:
        cmd: python -m stages.one
        deps: [data/code/one.json]
        outs: [one.txt]
      two:
        cmd: python -m stages.two
        deps: [one.txt, data/code/two.json]
        outs: [two.txt]
    """

DIFFERENT = "error: stages reach what is not the same as at main:"
# of this project, by packages: what the stage of code needs
COPIED = {
    "mela": ["errors"],
    "mela/io": ["atomic", "store"],
    "mela/runtime": ["console", "usage"],
    "stages": ["code"],
    "stages/common": ["guard", "orphans", "paths", "run"],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which both stages have run, committed on `main`."""
    folder = tmp_path_factory.mktemp("numbers") / "project"
    for name, modules in COPIED.items():
        (folder / name).mkdir(parents=True)
        for path in (path for module in ("__init__", *modules) for path in (ROOT / name).glob(f"{module}.py*")):
            shutil.copy(path, folder / name)
    shutil.copytree(ROOT / "stages/code_hashes", folder / "stages/code_hashes")
    write(folder / "mela/numbers.py", NUMBERS)
    for name, function in (("one", "double"), ("two", "square")):
        write(folder / f"stages/{name}.py", STAGE.format(name=name, function=function))
    write(folder / "dvc.yaml", PIPELINE)
    shutil.copy(ROOT / ".dvcignore", folder)
    shutil.copy(ROOT / "presets/glyphs.yaml", folder / "params.yaml")
    (folder / ".gitignore").write_text("__pycache__/\n/results/usage/\n")
    project = Project(folder)
    project.run("git", "init", "--quiet", "--initial-branch", "main")
    project.dvc("init", "--quiet")
    shutil.copy(ROOT / ".dvc/config", folder / ".dvc/config")
    assert ran(project.dvc("repro")) == ["code", "one", "two"]
    project.run("git", "add", "--all")
    project.run("git", "commit", "--quiet", "--message", "run")
    return folder


@pytest.fixture
def project(made: Path, tmp_path: Path) -> Project:
    shutil.copytree(made, tmp_path / "project", symlinks=True)
    return Project(tmp_path / "project")


def relock(project: Project, *arguments: str, succeeds: bool = True) -> str:
    return project.run("python", "-m", "stages.code_hashes.relock", *arguments, succeeds=succeeds)


def due(project: Project) -> list[str]:
    """Stages other than that of code that would run, where nothing that was made is at hand."""
    project.dvc("repro", "--quiet", "code")
    said = project.dvc("repro", "--allow-missing", "--dry")
    assert ("up to date" in said) == (not ran(said))
    return ran(said)


def test_what_runs_again(project: Project) -> None:
    numbers = project.folder / "mela/numbers.py"
    assert ran(project.dvc("repro")) == []
    edit(numbers, '"""Twice."""', '"""Two times."""\n    # a comment')
    assert ran(project.dvc("repro")) == ["code"]
    edit(numbers, "return x * x", "return x**2")
    assert ran(project.dvc("repro")) == ["code", "two"]
    # of another length, since DVC takes a file of the same time, size and inode for the same file
    edit(numbers, "FACTOR = 2", "FACTOR = 30")
    assert ran(project.dvc("repro")) == ["code", "one", "two"], "the second one reads what the first one writes"
    assert (project.folder / "one.txt").read_text() == "60"
    assert ran(project.dvc("repro")) == []


@pytest.mark.parametrize("command", RELOCK)
def test_what_has_moved_is_carried_over(project: Project, command: str) -> None:
    """As the page for contributors has it."""
    (project.folder / "mela/runtime/console.py").rename(project.folder / "mela/runtime/messages.py")
    for path in project.folder.glob("**/*.py"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("mela.runtime.console", "mela.runtime.messages"), "utf-8")
    said = relock(project, "main", succeeds=False)
    assert "mela.runtime.messages.print_error: not the same as at main; reached by one, two (2 in all)" in said
    assert re.search(rf"^{DIFFERENT} .* and \d+ more; nothing", said, re.MULTILINE)
    assert due(project) == ["one", "two"]
    words = shlex.split(command)
    assert words[:3] == ["python", "-m", "stages.code_hashes.relock"]
    assert "dvc.lock: 2 of 2 stages carried over" in relock(project, *words[3:])
    assert due(project) == []
    carried = (project.folder / "dvc.lock").read_bytes()
    project.dvc("repro", "--force")
    assert (project.folder / "dvc.lock").read_bytes() == carried, "as DVC writes it"
    assert "mela.runtime.messages.print_error" in (project.folder / "data/code/one.json").read_text()


def test_a_file_in_a_package_that_has_moved_is_carried_over(project: Project) -> None:
    """It is a dependency under its path, and its content stays the same."""
    words = project.folder / "mela/words/english.txt"
    words.parent.mkdir()
    words.write_text("one two three")
    edit(project.folder / "dvc.yaml", "deps: [one.txt,", "deps: [mela/words,")
    assert ran(project.dvc("repro")) == ["code", "two"]
    project.run("git", "add", "--all")
    project.run("git", "commit", "--quiet", "--message", "words")
    (project.folder / "mela/texts").mkdir()
    words.parent.rename(project.folder / "mela/texts/words")
    edit(project.folder / "dvc.yaml", "mela/words", "mela/texts/words")
    said = relock(project, "HEAD", succeeds=False)
    assert "mela/texts/words, which was no dependency,: not the same as at HEAD; reached by two" in said
    relock(project, "HEAD", "--moved", "mela.words=mela.texts.words")
    assert due(project) == []
    (project.folder / "mela/texts/words/english.txt").write_text("one two three four")
    assert due(project) == ["two"]


def test_what_differs_is_refused_by_its_name(project: Project) -> None:
    numbers, lock = project.folder / "mela/numbers.py", project.folder / "dvc.lock"
    before = lock.read_bytes()
    edit(numbers, "return FACTOR * x", "return x * FACTOR")
    said = relock(project, "main", succeeds=False)
    advice = "name what still does the same with --accept, and what its stages are to run again for with --rerun"
    assert f"\n{DIFFERENT} mela.numbers.double; nothing was written; {advice}\n" in f"\n{said}"
    assert lock.read_bytes() == before
    assert "carried over" not in said
    project.run("git", "commit", "--quiet", "--all", "--message", "after")
    edit(numbers, "return x * x", "return 1")
    relock(project, "HEAD^", "HEAD", "--accept", "mela.numbers.dou*")
    assert due(project) == ["two"], "the second revision is compared, not the files here"
    edit(numbers, "return 1", "return x * x")
    assert due(project) == []


def test_what_was_due_stays_due(project: Project) -> None:
    edit(project.folder / "mela/numbers.py", "FACTOR = 2", "FACTOR = 3")
    project.run("git", "commit", "--quiet", "--all", "--message", "due")
    said = relock(project, "HEAD")
    assert "dvc.lock: 1 of 2 stages carried over; the others are due" in said
    assert due(project) == ["one"]


def test_some_are_carried_over_and_others_run_again(project: Project) -> None:
    numbers = project.folder / "mela/numbers.py"
    edit(numbers, "return FACTOR * x", "return x * FACTOR")
    edit(numbers, "return x * x", "return x * x * x")
    said = relock(project, "main", "--accept", "mela.numbers.d*", succeeds=False)
    assert f"{DIFFERENT} mela.numbers.square; nothing was written" in said
    said = relock(project, "main", "--accept", "mela.numbers.d*", "--rerun", "mela.numbers.square")
    assert "dvc.lock: 1 of 2 stages carried over; the others are due" in said
    assert due(project) == ["two"]


def test_a_command_may_name_its_options_anew_and_nothing_else(project: Project) -> None:
    edit(project.folder / "dvc.yaml", "python -m stages.one", "python -m stages.one --to one")
    said = relock(project, "main", succeeds=False)
    assert f"{DIFFERENT} the command of one; nothing was written" in said
    project.dvc("commit", "--force", "one")
    project.run("git", "commit", "--quiet", "--all", "--message", "an option")
    edit(project.folder / "dvc.yaml", "--to one", "--out one")
    assert due(project) == ["one"]
    relock(project, "HEAD")
    assert due(project) == []


def test_revisions_and_names_that_make_no_sense(project: Project) -> None:
    said = relock(project, "nowhere", succeeds=False)
    assert re.search(r"^error: nowhere: .*; give a revision of this repository$", said, flags=re.MULTILINE)
    said = relock(project, "main", "--moved", "mela.numbers", succeeds=False)
    assert "error: --moved: expected OLD=NEW, got 'mela.numbers'; give the dotted names" in said
