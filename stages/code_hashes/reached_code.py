"""Follow scripts to all definitions that they reach, directly or through others."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from mela.errors import MelaError
from stages.code_hashes.name_lookup import Names
from stages.code_hashes.parsed_modules import Module, Tree, Unit
from stages.code_hashes.tree_hashes import Written, write, write_statements

PACKAGES = ("mela", "stages", "benchmark")
MAIN, FILES = ":script", ":files"


class Code:
    """Hash the definitions of a tree of modules.

    Parameters
    ----------
    root : Path
        The folder of the packages; one that is not there is read from where it is installed.
    packages : tuple of str
    renamed : mapping of str to str
        What modules and definitions, by their dotted names, are called in what this returns; all others keep theirs.
    """

    def __init__(
        self, root: Path, packages: tuple[str, ...] = PACKAGES, renamed: Mapping[str, str] | None = None
    ) -> None:
        self.tree = Tree(root, packages)
        self._renamed = renaming(renamed or {})
        self._names = Names(self.tree, self._renamed)
        self._written: Callable[[Unit], Written] = cache(lambda unit: write(unit, self._names))

    def reached(self, name: str, start: str | None = None) -> dict[str, str]:
        """Return hashes of all definitions that a module reaches, and of files that these read, by their names.

        Parameters
        ----------
        name : str
            The module that is started as a script, or imported for a name in it.
        start : str, optional
            This name; what the script starts by default.

        Raises
        ------
        MelaError
            There is no such module, or it does not say where to start.
        """
        script = self.tree.find(name)
        if script is None:
            raise MelaError(f"{name}: no such module; correct the name")
        found: dict[str, str] = {}
        walk = _Walk(self._names, self._written)
        if start is None:
            main = write_statements(script, script.main, self._names)
            found[self._renamed(name) + MAIN] = main.digest
            walk.use(main)
        elif start in script.units:
            walk.units[script.units[start]] = None
        else:
            raise MelaError(f"{name}: expected {start} at the top of this module, got none; add it")
        walk.load(script)
        for unit in walk.all():
            written = self._written(unit)
            found[self._key(unit)] = written.digest
            for package in written.reads:
                found[self._renamed(package) + FILES] = self.tree.digest_of_files(package)
        return dict(sorted(found.items()))

    def _key(self, unit: Unit) -> str:
        if unit is unit.module.always:
            return self._renamed(unit.module.name) + unit.name
        return ",".join(self._renamed(f"{unit.module.name}.{part}") for part in unit.name.split(","))


class _Walk:
    """Collect all used units, and all modules that are imported on the way."""

    def __init__(self, names: Names, written: Callable[[Unit], Written]) -> None:
        self.names, self.written = names, written
        self.units: dict[Unit, None] = {}
        self.modules: dict[Module, None] = {}

    def use(self, written: Written) -> None:
        self.units.update(dict.fromkeys(written.units))
        for module in written.modules:
            self.load(module)

    def load(self, module: Module) -> None:
        """Import a module, and its imports; what acts when it is imported counts."""
        waiting = [module]
        while waiting:
            here = waiting.pop()
            if here in self.modules:
                continue
            self.modules[here] = None
            waiting += self.names.tree.along(here.name)
            for node in here.imports:
                waiting += self.names.loaded(here, node)
            for unit in here.every_unit:
                if unit is here.always or self.written(unit).acts:
                    self.units[unit] = None

    def all(self) -> list[Unit]:
        """Return all units that the known ones use, directly or not."""
        seen: dict[Unit, None] = {}
        while new := [unit for unit in self.units if unit not in seen]:
            for unit in new:
                seen[unit] = None
                self.load(unit.module)
                self.use(self.written(unit))
        return [unit for unit in seen if unit.statements]


def renaming(renamed: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that replaces the longest known beginning of a dotted name."""

    def rename(name: str) -> str:
        parts = name.split(".")
        for end in range(len(parts), 0, -1):
            if new := renamed.get(".".join(parts[:end])):
                return ".".join([new, *parts[end:]])
        return name

    return rename


def scripts(root: Path, folder: Path) -> list[str]:
    """Return the names of the modules in a folder that can be started."""
    found = []
    for path in sorted((root / folder).glob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "__main__" in text and Module(path.stem, text, package=False, where=str(path)).main:
            found.append(".".join([*folder.parts, path.stem]))
    return found
