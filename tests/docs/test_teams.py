"""docs/guides/teams.md followed word by word, with real DVC, Git and servers, in fresh clones; only /mnt is elsewhere.

What the stages compute matters nothing here, so a stand-in writes a line to each of their outputs.
"""

import asyncio
import re
import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import asyncssh
import pytest

from tests.helpers.docs import blocks
from tests.helpers.dvc import ran
from tests.helpers.pipeline import STAGES as DEFINITIONS
from tests.helpers.pipeline import listed
from tests.helpers.project import ROOT, STAGE_NAMES
from tests.helpers.team_servers import AWS_KEYS, keys, name_host, s3_server, sftp_server
from tests.helpers.teams import Place, cached

pytestmark = pytest.mark.slow

PAGE = "docs/guides/teams.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
COMMANDS = iter([block.content.splitlines() for block in blocks(PAGE) if block.language == "sh"])
SHARE, JOIN, STATUS, CLOUD, FROM_CLOUD, ENDPOINT, SSH, FROM_SSH = islice(COMMANDS, 8)
EXPERIMENT, ITS_PULL, RUNS, ITS_RUNS, CACHE, WITHOUT, DIFFERENCE = COMMANDS
(LEFT_OUT,) = (block.content for block in blocks(PAGE) if block.language == "yaml")
# those that Git does not keep
CACHED = {
    stage: {**about, "outs": [path for path in about["outs"] if isinstance(path, str)]}
    for stage, about in DEFINITIONS.items()
}
OUTPUTS = [path for stage in STAGE_NAMES for path in listed(stage, "outs", stages=CACHED)]
TEAMS = "https://git.example.org/team/mela.git"
UP_TO_DATE = "Data and pipelines are up to date."


class Team(Place):
    """Ann, who has run the pipeline, and others; a Git server, a share, an S3 store and an SSH server."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.put_stand_in()
        self.ann = folder / "ann/mela"

    def run(self, command: str, folder: Path, *, succeeds: bool = True) -> str:
        return super().run(command.replace("/mnt/share", str(self.folder / "share")), folder, succeeds=succeeds)

    def follow(self, block: list[str], folder: Path) -> list[str]:
        """What each line of a block prints."""
        said = []
        for line in block:
            if line.startswith("cd "):
                folder /= line.removeprefix("cd ")
            else:
                said.append(self.run(line, folder))
        return said

    def follow_and_commit(self, block: list[str]) -> None:
        """Ann does what a block says, and lets the others know of it through Git."""
        self.follow(block, self.ann)
        self.run("git commit --quiet --all --message remotes && git push --quiet", self.ann)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """All of them; what Ann has run is committed, and pushed as the first block says."""
    folder = tmp_path_factory.mktemp("teams")
    team = Team(folder)
    keys(team.home)
    (team.home / ".aws").mkdir()
    lines = [f"{name} = {value}\n" for name, value in AWS_KEYS.items()]
    (team.home / ".aws/credentials").write_text("".join(["[lab]\n", *lines]), encoding="utf-8")
    with (team.home / ".gitconfig").open("a", encoding="utf-8") as file:
        file.write(f'[url "{folder}/git/"]\n  insteadOf = https://git.example.org/\n')
    for name in ("share", "server/srv"):
        (folder / name).mkdir(parents=True)
    team.run(f"git clone --quiet --bare {ROOT} git/team/mela.git", folder)
    team.clone("ann/mela", TEAMS)
    team.run_anew(team.ann)
    team.run("git checkout --quiet -B main && git commit --quiet --all --message run", team.ann)
    team.run("git push --quiet --set-upstream origin main", team.ann)
    team.run("git symbolic-ref HEAD refs/heads/main", folder / "git/team/mela.git")
    with s3_server("mela-results") as (address, _), sftp_server(folder / "server", team.home) as port:
        team.environment["AWS_ENDPOINT_URL"] = address
        name_host(team.home, "store.example.org", port)
        team.follow(SHARE, team.ann)
        yield team


def assert_same(one: Path, other: Path) -> None:
    """The outputs of two clones have the same bytes."""
    found = [one / path for path in OUTPUTS]
    files = [file for path in found for file in ([path] if path.is_file() else path.iterdir())]
    assert len(files) == len(OUTPUTS)
    for file in files:
        assert file.read_bytes() == (other / file.relative_to(one)).read_bytes(), file


def test_whoever_joins_has_everything(team: Team) -> None:
    (team.folder / "ben").mkdir()
    _, pulled, said = team.follow(JOIN, team.folder / "ben")
    assert f"{len(OUTPUTS)} files added" in pulled
    assert ran(said) == []
    assert said.strip().endswith(UP_TO_DATE)
    ben = team.folder / "ben/mela"
    assert_same(team.ann, ben)
    assert team.run("git status --porcelain", ben) == ""
    assert "in sync" in team.follow(STATUS, ben)[0]


def test_s3(team: Team) -> None:
    team.follow_and_commit(CLOUD)
    clone = team.clone("cid", TEAMS)
    assert "Unable to locate credentials" in team.run("dvc pull --remote cloud", clone, succeeds=False)
    team.follow(FROM_CLOUD, clone)
    assert_same(team.ann, clone)
    assert ran(team.run("dvc repro", clone)) == []
    assert team.run("git status --porcelain", clone) == "", "who somebody is there is nothing for Git"
    assert "lab" in (clone / ".dvc/config.local").read_text(encoding="utf-8")
    team.follow(ENDPOINT, clone)
    assert "+    endpointurl = https://s3.example.org" in team.run("git diff", clone)


def test_ssh(team: Team) -> None:
    team.follow_and_commit(SSH)
    clone = team.clone("dan", TEAMS)
    team.follow(FROM_SSH, clone)
    assert_same(team.ann, clone)
    assert ran(team.run("dvc repro", clone)) == []
    with pytest.raises(asyncssh.HostKeyNotVerifiable):
        asyncio.run(connect_with_care(team.home))


async def connect_with_care(home: Path) -> None:
    """What DVC should do: look into ``known_hosts``."""
    await asyncssh.connect(
        "store.example.org",
        config=str(home / ".ssh/config"),
        known_hosts=str(home / ".ssh/known_hosts"),
        client_keys=str(home / ".ssh/id_ed25519"),
    )


def test_experiments_and_what_has_been_run(team: Team) -> None:
    said, _ = team.follow(EXPERIMENT, team.ann)
    assert ran(said) == ["label_kmeans", "score_labels", "pretrain@kmeans", "evaluate", "confusions", "report"]
    eve = team.clone("eve", TEAMS)
    listed_there, *_, said = team.follow(ITS_PULL, eve)
    assert "kmeans-20" in listed_there
    assert ran(said) == []
    assert_same(team.ann, eve)
    assert (eve / "params.yaml").read_text() == (team.ann / "params.yaml").read_text()
    team.run("git commit --quiet --all --message applied", eve)
    (table,) = team.follow(DIFFERENCE, eve)
    assert table.startswith("| Path ")
    assert "results/metrics.json" in table

    team.follow(RUNS, team.ann)
    shutil.copytree(team.ann / ".dvc/cache", team.folder / "share/mela-cache")
    fay, gus = team.clone("fay", TEAMS), team.clone("gus", TEAMS)
    shutil.copy(team.ann / "params.yaml", fay / "params.yaml")
    pull, repro = ITS_RUNS
    team.run(pull, fay)
    assert repro == "dvc repro --pull"
    assert ran(team.run("dvc repro --single-item --no-commit label_kmeans", fay)) == ["label_kmeans"], "without --pull"
    team.run("git checkout --quiet dvc.lock && rm data/labels/kmeans.parquet", fay)
    said = team.run(repro, fay)
    assert cached(said) == ["label_kmeans", "score_labels", "evaluate", "confusions"]
    assert ran(said) == ["pretrain@kmeans", "report"]
    assert_same(team.ann, fay)
    team.run("git checkout --quiet . && rm --recursive .dvc/cache", team.ann)
    team.follow(CACHE, team.ann)
    team.follow(CACHE, gus)
    assert_same(team.ann, gus)


def test_which_stages_others_need_not_run() -> None:
    whole = [stage for stage in STAGE_NAMES if set(listed(stage, "outs", "metrics", "plots")) <= set(OUTPUTS)]
    (text,) = re.findall(r"keep nothing in\s+Git\*\*\s+\((.*?)\)", TEXT, flags=re.DOTALL)
    assert re.findall(r"`(\w+)`", text) == whole
    assert len(STAGE_NAMES) - len(whole) == 7


def test_what_is_left_out(team: Team) -> None:
    hal = team.clone("hal", TEAMS)
    team.run("dvc pull --quiet", hal)
    lines = (hal / "dvc.yaml").read_text(encoding="utf-8")
    images = re.sub(r":\n +push: false", "", LEFT_OUT)
    report = "    outs:\n      - results/report\n      - results/report.html\n"
    for block in (images, report):
        assert lines.count(block) == 1
        lines = lines.replace(block, re.sub(r"(- .*)", r"\1:\n          push: false", block))
    assert LEFT_OUT in lines
    (hal / "dvc.yaml").write_text(lines, encoding="utf-8")
    team.run("dvc remote add --default private /mnt/share/private", hal)
    team.run("git commit --quiet --all --message private", hal)
    assert ran(team.run("dvc repro", hal)) == []
    team.run("dvc push", hal)
    ida = team.clone("ida", hal)
    out = {"data/images/images.npy", "data/images/index.parquet", "results/report", "results/report.html"}
    said = team.run("dvc pull", ida, succeeds=False)
    assert all(name in said for name in out)
    said = team.follow(WITHOUT, ida)[-1]
    assert said.strip().endswith(UP_TO_DATE)
    assert ran(said) == []
    assert {name for name in OUTPUTS if not (ida / name).exists()} == out
    assert ran(team.run("dvc repro", ida)) == ["images", "report"]
    assert_same(hal, ida)
