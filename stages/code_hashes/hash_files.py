"""Write the files of hashes on which stages depend, one for each script and one for each method."""

from dataclasses import dataclass
from pathlib import Path

from mela.errors import MelaError
from mela.io.atomic import together
from mela.io.store import write_json
from stages.code_hashes.reached_code import Code, scripts
from stages.common import paths

Start = tuple[str, str | None]
# no stage depends on how its file of hashes is written
WRITER = "stages.code"


@dataclass(frozen=True, kw_only=True)
class Files:
    """Write the files of a pipeline; all paths are relative to the root of the repository.

    Attributes
    ----------
    out : Path
        The folder that they are in.
    folders : tuple of Path
        Folders of its scripts.
    methods : Path, optional
        Folder of its methods, which are found by their names and say what they are as ``METHOD``.
    """

    out: Path
    folders: tuple[Path, ...]
    methods: Path | None = None

    def starts(self, root: Path) -> dict[str, Start]:
        """Return the module behind each file, and the name in it that counts, by the file's name without suffix.

        Raises
        ------
        MelaError
            Two scripts have one name.
        """
        found: dict[str, Start] = {}
        for script in (script for folder in self.folders for script in scripts(root, folder)):
            name = script.rpartition(".")[2]
            if script == WRITER:
                continue
            if name in found:
                raise MelaError(f"{script}: the script {found[name][0]} has the same name; rename one of them")
            found[name] = (script, None)
        if self.methods:
            for path in sorted((root / self.methods).glob("[!_]*.py")):
                found[f"methods/{path.stem}"] = (".".join([*self.methods.parts, path.stem]), "METHOD")
        return found

    def write(self, root: Path) -> None:
        """Write all files into the folder, and delete what else is there."""
        code = Code(root)
        contents = {name: code.reached(*start) for name, start in self.starts(root).items()}
        with together():
            for name, content in contents.items():
                write_json(root / self.out / f"{name}.json", content)
        for path in (root / self.out).rglob("*.json"):
            if path.relative_to(root / self.out).with_suffix("").as_posix() not in contents:
                path.unlink()


BENCHMARK = Path("benchmark")
PIPELINE = Files(out=paths.CODE, folders=(Path("stages"),))
OF_BENCHMARK = Files(
    out=BENCHMARK / "runs/code",
    folders=(Path("stages"), BENCHMARK, BENCHMARK / "stages"),
    methods=Path("mela/methods"),
)
