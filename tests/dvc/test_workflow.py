"""The workflows for a hosted CI: what they may do, that their commands exist, and that they work in a clone."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.helpers.project import ROOT
from tests.helpers.teams import Place

pytestmark = pytest.mark.slow

TEXTS = [(ROOT / f".github/workflows/{name}.yml").read_text(encoding="utf-8") for name in ("ci", "tests", "release")]
WORKFLOWS: list[dict[str, Any]] = [YAML(typ="safe").load(text) for text in TEXTS]
JOBS = {name: job for workflow in WORKFLOWS for name, job in workflow["jobs"].items()}
STEPS = [step for job in JOBS.values() for step in job["steps"]]
COMMANDS = [step["run"] for step in STEPS if "run" in step]


def test_what_starts_it_gives_no_rights_to_strangers() -> None:
    own, tests, release = WORKFLOWS
    assert own["on"] == {"push": {"branches": ["main"]}, "pull_request": None}
    assert tests["on"] == own["on"] | {"schedule": [{"cron": "0 5 * * 1"}]}
    assert release["on"] == {"push": {"tags": ["v*"]}}
    assert own["permissions"] == tests["permissions"] == release["permissions"] == {}
    assert {name: job["permissions"] for name, job in JOBS.items()} == {
        "check": {"contents": "read"},
        "figures": {"contents": "read"},
        "comment": {"pull-requests": "write"},
        "tests": {"contents": "read"},
        "build": {"contents": "read"},
        "publish": {"id-token": "write"},
    }
    text = "".join(TEXTS)
    assert "secrets" not in text.replace("import secrets; print(secrets.token_hex())", "")
    assert re.findall(r"\$\{\{ github\.token \}\}", text) == ["${{ github.token }}"]


def test_whoever_may_publish_runs_nothing_of_the_project() -> None:
    fetch, publish = JOBS["publish"]["steps"]
    assert fetch["uses"].startswith("actions/download-artifact@")
    assert publish == {"run": "pipx run uv publish --trusted-publishing always dist/*"}
    assert JOBS["publish"]["needs"] == "build"
    assert JOBS["publish"]["environment"] == "pypi"


def test_whoever_may_write_runs_nothing_of_a_pull_request() -> None:
    (step,) = JOBS["comment"]["steps"]
    assert set(step) == {"env", "run"}
    assert "head.repo.full_name == github.repository" in JOBS["comment"]["if"]
    assert all(step["with"]["persist-credentials"] is False for step in STEPS if "checkout" in step.get("uses", ""))


@pytest.mark.parametrize("name", JOBS)
def test_every_job_ends(name: str) -> None:
    assert JOBS[name]["timeout-minutes"] <= 60
    assert JOBS[name]["runs-on"] == "ubuntu-latest"


@pytest.mark.parametrize("action", sorted({step["uses"] for step in STEPS if "uses" in step}))
def test_actions_are_the_platforms_own_and_pinned(action: str) -> None:
    assert re.fullmatch(r"actions/(cache|checkout|setup-python|(up|down)load-artifact)@(v\d+|[0-9a-f]{40})", action)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_bash_and_exist(command: str) -> None:
    ended = subprocess.run(["bash", "-n"], input=command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "${{" not in command, "what others wrote must not become part of a command; variables carry it"
    targets = re.findall(r"^(\w+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert set(re.findall(r"^make (\w+)", command, flags=re.MULTILINE)) <= set(targets)
    for script in re.findall(r"^(\.\S+)", command, flags=re.MULTILINE):
        assert (ROOT / script).is_file()
        assert (ROOT / script).stat().st_mode & 0o111


def test_the_commands_are_those_that_are_meant() -> None:
    firsts = [[step["run"].split()[0] for step in job["steps"] if "run" in step] for job in JOBS.values()]
    assert firsts == [
        [".ci/run"],
        ["make", "source"],
        ["gh"],
        ["make", "python", "source", "source"],
        [".ci/run", "make", "version=${GITHUB_REF_NAME#v}"],
        ["pipx"],
    ]
    assert JOBS["figures"]["if"] == "github.event_name == 'pull_request'"


def test_every_python_and_both_ends_of_the_ranges_have_a_job() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    matrix = JOBS["tests"]["strategy"]["matrix"]
    pythons = [kind.rpartition(" ")[2] for kind in project["classifiers"] if "Python :: 3." in kind]
    assert matrix["python"] == pythons == ["3.11", "3.12", "3.13", "3.14"]
    assert project["requires-python"] == f">={pythons[0]}"
    ends = [(end["versions"], end["python"]) for end in matrix["include"]]
    assert ends == [("pinned", "3.14"), ("lowest-direct", "3.11"), ("highest", "3.14")]


class Runner(Place):
    """A clone of a change on top of its base, as a hosted runner has it, and the runner's variables."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.files = {name: folder / name for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
        self.environment |= {name: str(file) for name, file in self.files.items()}
        self.environment |= {"RUNNER_TEMP": str(folder), "GITHUB_REPOSITORY": "team/mela"}
        origin = self.clone("origin", ROOT)
        self.run("git commit --quiet --allow-empty --message 'a change'", origin)
        self.checkout = self.clone("clone", f"--depth 2 file://{origin}")
        activate = self.checkout / ".venv/bin/activate"
        activate.parent.mkdir(parents=True)
        activate.write_text(f'PATH="{Path(sys.executable).parent}:$PATH"\n', encoding="utf-8")

    def step(self, command: str) -> None:
        """Run what a step says, as the platform does."""
        self.run(f"set -e\n{command}", self.checkout)

    def compare(self) -> str:
        """What the step `compare` hands over."""
        for file in self.files.values():
            file.unlink(missing_ok=True)
        (command,) = [step["run"] for step in STEPS if step.get("id") == "compare"]
        self.step(command)
        first, *lines, last = self.files["GITHUB_OUTPUT"].read_text(encoding="utf-8").splitlines()
        assert first == f"comment<<{last}"
        assert "\n".join(lines) + "\n" == self.files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")
        return "\n".join(lines)


def test_metrics_are_compared_and_told(tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    assert "\n\nNo metric differs.\n\n" in runner.compare()
    path = runner.checkout / "results/metrics.json"
    metrics = json.loads(path.read_text(encoding="utf-8"))
    old = metrics["merged"]["1_shot"]["mean"]
    metrics["merged"]["1_shot"]["mean"] = old + 1.5
    path.write_text(json.dumps(metrics), encoding="utf-8")
    comment = runner.compare()
    table = [re.split(r"\s*\|\s*", line.strip("| ")) for line in comment.splitlines() if line.startswith("|")]
    assert table[0] == ["Path", "Metric", "HEAD^", "workspace", "Change"]
    ((name, metric, before, after, change),) = table[2:]
    assert (name, metric, change) == ("results/metrics.json", "merged.1_shot.mean", "1.5")
    assert (float(before), float(after)) == pytest.approx((old, old + 1.5), rel=1e-3)

    runner.put_program("gh", 'printf "%s\\n" "$@" > "$HOME/gh"')
    runner.environment |= {"NUMBER": "7", "COMMENT": comment}
    (step,) = JOBS["comment"]["steps"]
    assert set(step["env"]) == {"GH_TOKEN", "NUMBER", "COMMENT"}
    runner.step(step["run"])
    told = (runner.home / "gh").read_text(encoding="utf-8")
    assert told == f"pr\ncomment\n7\n--repo\nteam/mela\n--edit-last\n--create-if-none\n--body\n{comment}\n"
