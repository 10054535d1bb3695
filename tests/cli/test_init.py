"""`mela init`: what it writes, what it leaves alone, and what it refuses."""

import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from mela.cli import init
from mela.cli.shipped_files import project_files
from tests.helpers.commands import mela
from tests.helpers.dvc import COMMITTER, Project
from tests.helpers.project import ROOT


def files(folder: Path) -> dict[str, bytes]:
    """Of a project, without Git's own."""
    paths = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def in_git(folder: Path) -> str:
    """Root of the repository that a folder is in."""
    return git(folder, "rev-parse", "--show-toplevel")


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Git knows who commits."""
    for name, value in COMMITTER.items():
        monkeypatch.setenv(name, value)


def test_what_it_writes(tmp_path: Path) -> None:
    folder = tmp_path / "a new/one"
    done = mela("init", folder, "--preset", "omniglot")
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        done.stdout == f"{folder}: is a project now, with the preset omniglot; `cd '{folder}' && dvc repro` runs it\n"
    )
    expected = {name: path.read_bytes() for name, path in project_files().items()}
    # a clone may have its user's answers, and where data are pushed to
    own = {".dvc/config": init.SETTINGS.encode()}
    own |= {name: (ROOT / name).read_bytes() for name in ("corrections.csv", "class_names.csv")}
    assert (ROOT / ".dvc/config").read_bytes() == own[".dvc/config"], "as the repository has it"
    assert all(len(content.splitlines()) == 1 for name, content in own.items() if name.endswith(".csv"))
    expected |= own
    written = files(folder)
    assert written.pop("params.yaml") == (ROOT / "presets/omniglot.yaml").read_bytes()
    assert written.pop("dvc.yaml") != expected.pop("dvc.yaml")
    assert written == expected
    assert len([name for name in written if name.startswith("stages/")]) > 30
    assert in_git(folder) == str(folder.resolve())
    assert set(git(folder, "ls-files").splitlines()) == {*written, "params.yaml", "dvc.yaml"}
    assert git(folder, "status", "--short") == ""


def test_without_dvc_another_command_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(init, "find_spec", lambda name: None)
    monkeypatch.chdir(tmp_path)
    init.init(Path("letters"))
    said = capsys.readouterr().out
    assert "`cd letters && mela run` runs it\n" in said
    assert "dvc repro` runs it" not in said
    assert "`pip install dvc`" in said


def test_its_pipeline_is_that_of_a_clone_but_for_where_the_code_is(tmp_path: Path) -> None:
    mela("init", tmp_path)
    read = YAML(typ="safe").load
    here, there = (read((folder / "dvc.yaml").read_text(encoding="utf-8")) for folder in (tmp_path, ROOT))
    code, of_clone = here["stages"].pop("code"), there["stages"].pop("code")
    assert here == there
    assert of_clone.pop("deps") == ["mela", "stages"]
    assert code == of_clone | {"always_changed": True}
    assert "mela/" not in (tmp_path / "dvc.yaml").read_text(encoding="utf-8")


def test_a_folder_with_files_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photo.png").write_bytes(b"mine")
    first = mela("init")
    assert first.stdout == ".: is a project now, with the preset glyphs; `dvc repro` runs it\n"
    before = files(tmp_path)
    assert before["photo.png"] == b"mine"
    assert git(tmp_path, "status", "--short") == "?? photo.png"
    # what is there and the same is in nobody's way
    again = mela("init")
    assert again.returncode == 0
    assert again.stdout.endswith(first.stdout)
    # what is the user's stays as it is
    (tmp_path / "params.yaml").write_text("mine", encoding="utf-8")
    (tmp_path / ".gitignore").write_text("mine", encoding="utf-8")
    (tmp_path / "stages/map.py").unlink()
    kept = mela("init")
    assert kept.stdout.splitlines()[0] == ".: kept as they are: .gitignore, params.yaml"
    assert kept.stdout.endswith(".: is a project now, with its own params.yaml; `dvc repro` runs it\n")
    assert files(tmp_path) == before | dict.fromkeys(["params.yaml", ".gitignore"], b"mine")
    (tmp_path / "stages/map.py").unlink()
    (tmp_path / "dvc.yaml").write_text("mine", encoding="utf-8")
    before = files(tmp_path)
    refused = mela("init")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        "error: .: dvc.yaml: there already, with other content; choose another folder, or add --update to have "
        "dvc.yaml, stages/, .dvc/plots/ replaced\n"
    )
    assert files(tmp_path) == before, "also what was missing is not written"


def test_another_version(tmp_path: Path) -> None:
    mela("init", tmp_path)
    whole = files(tmp_path)
    own = ["params.yaml", "corrections.csv", "class_names.csv", ".gitignore", ".dvc/config", "stages/mine.py"]
    for name in [*own, "stages/common/run.py", ".dvc/plots/sweep.json"]:
        (tmp_path / name).write_text("changed", encoding="utf-8")
    (tmp_path / "stages/map.py").unlink()
    refused = mela("init", tmp_path, "--update")
    assert refused.returncode == 1
    assert "--update would replace " in refused.stderr
    assert refused.stderr.endswith(", whose changes are in no commit; commit or undo them\n")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "-m", "my stages")
    done = mela("init", tmp_path, "--update")
    count = sum(name.startswith(("dvc.yaml", "stages/", ".dvc/plots/")) for name in whole)
    assert done.stdout == f"{tmp_path}: 3 of {count} files of the pipeline are new or have changed\n"
    assert files(tmp_path) == whole | dict.fromkeys(own, b"changed")


def test_a_project_without_names_of_classes_gets_their_table(tmp_path: Path) -> None:
    """Projects of earlier versions have none, and a stage depends on it."""
    mela("init", tmp_path)
    whole = files(tmp_path)
    (tmp_path / "class_names.csv").unlink()
    mela("init", tmp_path, "--update")
    assert files(tmp_path) == whole


def test_the_pipeline_of_another_project_is_safe(tmp_path: Path) -> None:
    (tmp_path / "dvc.yaml").write_text("stages: {}", encoding="utf-8")
    for arguments in ([], ["--update"]):
        assert mela("init", tmp_path, *arguments).returncode == 1
    assert files(tmp_path) == {"dvc.yaml": b"stages: {}"}


def test_git_that_does_not_know_who_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The project is there all the same."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "")
    done = mela("init", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    warning, told = done.stdout.splitlines()
    assert warning.startswith(f"{tmp_path}: `git commit` failed: ")
    assert warning.endswith("; `dvc exp run` needs a commit")
    assert told.startswith(f"{tmp_path}: is a project now, ")


def test_a_folder_inside_a_repository_stays_a_part_of_it(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    done = mela("init", tmp_path / "inside")
    assert in_git(tmp_path / "inside") == str(tmp_path.resolve())
    assert "inside: part of a Git repository; `dvc exp run` needs the new files committed there\n" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("git", [True, False])
def test_dvc_takes_it_with_and_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, git: bool) -> None:
    if git:
        subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    else:
        monkeypatch.setattr("mela.cli.init.shutil.which", lambda name: None)
    folder = tmp_path / "inside"
    mela("init", folder)
    assert ("no_scm" in (folder / ".dvc/config").read_text(encoding="utf-8")) == (not git)
    assert (in_git(folder) != "") == git
    Project(folder).dvc("repro", "manifest")
    assert (folder / "data/manifest/train.parquet").is_file()


def test_refusals(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for arguments, error in (
        ([tmp_path / "file"], f"{tmp_path}/file: expected a folder, got a file; choose another name"),
        ([ROOT, "--update"], f"{ROOT}: this is the clone that MeLa itself is in; choose another folder"),
        (["--preset", "nope", tmp_path / "new"], "--preset: expected one of cifar_fs, "),
        (
            ["--update", tmp_path / "new"],
            f"{tmp_path}/new: --update: expected a project of MeLa, got none; leave out",
        ),
    ):
        done = mela("init", *arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"error: {error}")
        assert done.stderr.count("\n") == 1
    assert not (tmp_path / "new").exists()
