"""The command line: what it writes, and how it refuses."""

from pathlib import Path

import pytest

from mela.cli import main as cli
from mela.params import DataParams
from mela.sources import benchmarks
from tests.helpers.commands import mela
from tests.helpers.processes import python
from tests.helpers.project import ROOT

OLD = "# edited by hand\n"
NONE_THERE = "no such preset; expected one of none in elsewhere/; leave out --folder"


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with an edited params.yaml and three presets, the last two of them broken; the current directory."""
    monkeypatch.chdir(tmp_path)
    presets = tmp_path / "presets"
    presets.mkdir()
    text = (ROOT / "presets" / "omniglot.yaml").read_text(encoding="utf-8")
    (presets / "omniglot.yaml").write_text(text, encoding="utf-8")
    (presets / "broken.yaml").write_text(text.replace("labeler:", "labeller:"), encoding="utf-8")
    (presets / "syntax.yaml").write_text("labeler: [\n", encoding="utf-8")
    (tmp_path / "params.yaml").write_text(OLD, encoding="utf-8")
    return tmp_path


def test_preset_makes_a_preset_the_active_experiment(sandbox: Path) -> None:
    done = python("-W", "error", "-c", "from mela.cli.main import main; main()", "preset", "omniglot")
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        done.stdout
        == "params.yaml is now the preset omniglot; `dvc repro` runs it in a project, which `mela init` makes\n"
    )
    assert (sandbox / "params.yaml").read_bytes() == (ROOT / "presets" / "omniglot.yaml").read_bytes()
    assert sorted(path.name for path in sandbox.iterdir()) == ["params.yaml", "presets"]


def test_preset_reads_and_writes_where_it_is_told(sandbox: Path, tmp_path: Path) -> None:
    new = tmp_path / "new" / "other.yaml"
    done = mela("preset", "glyphs", "--folder", str(ROOT / "presets"), "--params", str(new))
    assert (done.returncode, done.stderr) == (0, "")
    assert new.read_bytes() == (ROOT / "presets" / "glyphs.yaml").read_bytes()
    assert (sandbox / "params.yaml").read_text(encoding="utf-8") == OLD


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("preset nope", "preset nope: no such preset; expected one of broken, cifar_fs, "),
        ("preset nope --folder presets", "preset nope: no such preset; expected one of broken, omniglot, syntax"),
        ("preset omniglot --folder elsewhere", f"preset omniglot: {NONE_THERE}"),
        ("preset broken", "presets/broken.yaml: labeller: unknown block; expected one of augment, "),
        ("preset syntax", "presets/syntax.yaml: expected YAML, got "),
        ("download nope", "download nope: no such data set; expected one of omniglot, cifar100\n"),
    ],
)
def test_it_refuses_in_one_line_and_writes_nothing(sandbox: Path, arguments: str, message: str) -> None:
    done = mela(*arguments.split())
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1
    assert (sandbox / "params.yaml").read_text(encoding="utf-8") == OLD
    assert sorted(path.name for path in sandbox.iterdir()) == ["params.yaml", "presets"]


@pytest.mark.parametrize(
    ("name", "source", "presets"),
    [
        ("omniglot", "omniglot", ["omniglot", "omniglot_cpu"]),
        ("cifar100", "cifar_fs", ["cifar_fs", "cifar_fs_short", "cifar_fs_cpu", "fc100", "fc100_short", "fc100_cpu"]),
    ],
)
def test_download_goes_where_the_presets_look(
    monkeypatch: pytest.MonkeyPatch, name: str, source: str, presets: list[str]
) -> None:
    calls = []

    def fetch(root: Path, *, download: bool) -> list[int]:
        calls.append((root, download))
        return [0]

    monkeypatch.setattr(benchmarks, source, fetch)
    cli.download(name)
    cli.download(name, Path("elsewhere"))
    (root, _), _ = calls
    assert calls == [(root, True), (Path("elsewhere"), True)]
    for preset in presets:
        assert Path(DataParams.read(ROOT / "presets" / f"{preset}.yaml").root) == root
