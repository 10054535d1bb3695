"""What DVC does where a remote lacks something, holds damaged files or cannot be reached, as the page on teams tells.

A pipeline of one stage shows it; its outputs are a file, a folder and a metric that Git keeps.
"""

import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.project import ROOT
from tests.helpers.team_servers import AWS_KEYS, keys, name_host, s3_server, sshd
from tests.helpers.teams import Place

pytestmark = pytest.mark.slow

PIPELINE = """
stages:
  make:
    cmd: mkdir -p folder && echo one > folder/1 && echo two > folder/2 && echo file > file && echo '{"x":1}' > x.json
    deps: [input]
    outs: [file, folder]
    metrics:
      - x.json:
          cache: false
"""
NAME = "files/md5/bb/e02f946d5455d74616fc9777557c22"  # by the MD5 sum of "file\n"
WHERE = """
from dvc.repo import Repo
repo = Repo()
print(repo.cloud.get_remote().path)
for _ in repo.brancher(revs=["HEAD"], workspace=False):
    print(repo.cloud.get_remote().path)
"""


class Lab(Place):
    """Somebody who has run the pipeline, and clones of others."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.owner = folder / "owner"
        self.owner.mkdir()
        self.environment |= {name.upper(): value for name, value in AWS_KEYS.items()}
        (self.owner / "dvc.yaml").write_text(PIPELINE, encoding="utf-8")
        (self.owner / "input").write_text("", encoding="utf-8")
        for command in ("git init --quiet", "dvc init --quiet"):
            self.run(command, self.owner)
        shutil.copy(ROOT / ".dvc/config", self.owner / ".dvc/config")
        for command in ("dvc repro", "git add --all", "git commit --quiet --message run"):
            self.run(command, self.owner)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="module")
def s3() -> Iterator[tuple[str, Any]]:
    with s3_server("lab") as (address, client):
        yield address, client


def share(lab: Lab, name: str, address: str, *options: str) -> None:
    """Push all to a remote, with the options in Git."""
    lab.run(f"dvc remote add --default --force {name} {address}", lab.owner)
    for option in options:
        lab.run(f"dvc remote modify {name} {option}", lab.owner)
    lab.run("git commit --quiet --all --message remote", lab.owner)
    lab.run("dvc push", lab.owner)


def assert_whole(lab: Lab, clone: Path) -> None:
    for name in ("file", "folder/1", "folder/2", "x.json"):
        assert (clone / name).read_bytes() == (lab.owner / name).read_bytes()
    assert lab.run("git status --porcelain", clone) == ""


def damage_is_noticed_if_looked_for(lab: Lab, remote: str, put: Callable[[bytes | None], None]) -> None:
    """What users meet in both cases, and how they get out; `put` replaces the object of `file`, or deletes it."""
    put(b"FILE\n")
    careless, careful = lab.clone(f"{remote}-careless", lab.owner), lab.clone(f"{remote}-careful", lab.owner)
    lab.run("dvc pull", careless)
    assert (careless / "file").read_bytes() == b"FILE\n"
    assert "up to date" in lab.run("dvc status", careless)
    lab.run(f"dvc remote modify {remote} verify true", careful)
    lab.run("git commit --quiet --all --message verify", careful)
    said = lab.run("dvc pull", careful, succeeds=False)
    assert "failed to pull data from the cloud - Checkout failed for following targets:\nfile\n" in said
    assert not (careful / "file").exists()
    assert (careful / "folder/2").is_file()
    assert "Running stage 'make'" in lab.run("dvc repro", careful)
    assert_whole(lab, careful)
    assert "Everything is up to date" in lab.run("dvc push", careful), "the damaged object is taken for pushed"
    put(None)
    assert "1 file pushed" in lab.run("dvc push", careful)
    again = lab.clone(f"{remote}-again", lab.owner)
    lab.run("dvc pull", again)
    assert_whole(lab, again)


def test_damage_in_a_directory(lab: Lab) -> None:
    share(lab, "directory", str(lab.folder / "share"), "shared group")
    target = lab.folder / "share" / NAME

    def put(content: bytes | None) -> None:
        mode = stat.S_IMODE(target.stat().st_mode)
        target.unlink()
        if content is not None:
            target.write_bytes(content)
            target.chmod(mode)

    damage_is_noticed_if_looked_for(lab, "directory", put)
    put(b"FILE\n")
    target.chmod(0o644)
    clone = lab.clone("writable", lab.owner)
    assert "following targets:\nfile\n" in lab.run("dvc pull", clone, succeeds=False)
    assert not target.exists(), "what is not read-only is looked at, and deleted if it is wrong"


def test_damage_in_s3(lab: Lab, s3: tuple[str, Any]) -> None:
    address, client = s3
    share(lab, "cloud", "s3://lab/results", f"endpointurl {address}")

    def put(content: bytes | None) -> None:
        place = {"Bucket": "lab", "Key": f"results/{NAME}"}
        client.delete_object(**place) if content is None else client.put_object(**place, Body=content)

    damage_is_noticed_if_looked_for(lab, "cloud", put)


def test_missing_in_the_remote(lab: Lab) -> None:
    share(lab, "forgetful", str(lab.folder / "forgetful"))
    (lab.folder / "forgetful" / NAME).unlink()
    clone = lab.clone("without-one", lab.owner)
    said = lab.run("dvc pull", clone, succeeds=False)
    assert "Checkout failed for following targets:\nfile\n" in said
    assert (clone / "folder/1").is_file()
    assert lab.run("git status --porcelain", clone) == ""
    assert "Running stage 'make'" in lab.run("dvc repro", clone)
    assert_whole(lab, clone)


def assert_nothing_came(lab: Lab, clone: Path) -> None:
    assert {path.name for path in clone.iterdir()} == {path.name for path in lab.owner.iterdir()} - {"file", "folder"}
    assert lab.run("git status --porcelain", clone) == ""


def test_no_remote_at_all(lab: Lab, s3: tuple[str, Any]) -> None:
    share(lab, "away", str(lab.folder / "away"))
    clone = lab.clone("waiting", lab.owner)
    (lab.folder / "away").rename(lab.folder / "far")
    said = lab.run("dvc pull", clone, succeeds=False)
    assert "file\n" in said
    assert "folder\n" in said
    assert not (lab.folder / "away").exists(), "who pulls makes no folder there"
    for bucket, address, message in [
        ("nobody", s3[0], "The specified bucket does not exist"),
        ("lab", "http://127.0.0.1:1", "failed to connect to s3"),
    ]:
        lab.run(f"dvc remote add --local --force --default away s3://{bucket}", clone)
        lab.run(f"dvc remote modify --local away endpointurl {address}", clone)
        assert message in lab.run("dvc pull", clone, succeeds=False)
    assert "remote 'nobody' doesn't exist" in lab.run("dvc pull --remote nobody", clone, succeeds=False)
    assert_nothing_came(lab, clone)


def test_rights_in_a_directory(lab: Lab) -> None:
    """The group may add outputs; where the run cache lies, the umask decides, which is 022 here."""
    share(lab, "ours", str(lab.folder / "ours"), "shared group")
    lab.run("dvc push --run-cache", lab.owner)
    for name, mode in {"files/md5/bb": 0o2775, NAME: 0o444, "runs": 0o2755}.items():
        assert stat.S_IMODE((lab.folder / "ours" / name).stat().st_mode) == mode, name


def test_a_relative_path_is_not_the_same_for_a_commit(lab: Lab) -> None:
    """Which is what ``dvc exp push`` reads."""
    clone = lab.clone("relative", lab.owner)
    lab.run("dvc remote add --force --default near ../near", clone)
    lab.run("git commit --quiet --all --message near", clone)
    (clone / "where.py").write_text(WHERE, encoding="utf-8")
    assert lab.run(f"{sys.executable} where.py", clone).split() == [f"{lab.folder}/near", "/near"]


def test_a_real_ssh_server(lab: Lab) -> None:
    """With ``known_hosts`` that hold another key, which DVC does not look at."""
    keys(lab.home)
    with sshd(lab.home) as port:
        name_host(lab.home, "store", port)
        share(lab, "store", f"ssh://store{lab.folder}/kept", "verify true")
        clone = lab.clone("by-ssh", lab.owner)
        lab.run("dvc pull", clone)
        assert_whole(lab, clone)
        assert "didn't change" in lab.run("dvc repro", clone)
        (lab.folder / "kept" / NAME).write_bytes(b"FILE\n")
        another = lab.clone("by-ssh-damaged", lab.owner)
        assert "following targets:\nfile\n" in lab.run("dvc pull", another, succeeds=False)
