"""Read modules as their top-level statements: definitions, imports, and what runs at every import."""

import ast
import hashlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import mela
from mela.errors import MelaError

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Import = ast.Import | ast.ImportFrom
ALWAYS = ":statements"
CODE_SUFFIXES = (".py", ".pyc", ".pyi", ".typed")


@dataclass(frozen=True)
class Imported:
    """Hold what an import binds to a name: a module, or a name in a module."""

    module: str
    name: str | None = None


@dataclass(frozen=True, eq=False)
class Unit:
    """Hold the top-level statements of a module that bind one name, or all that bind none.

    Attributes
    ----------
    module : Module
    name : str
        The name that they bind (several, with commas, where one statement binds several), or `ALWAYS`.
    statements : list of statements
    """

    module: "Module"
    name: str
    statements: list[ast.stmt] = field(default_factory=list)


class Module:
    """Hold the top level of a file of this project, which is read but never imported.

    Parameters
    ----------
    name, text : str
    package : bool
    own : collection of str
        The packages of this project.
    where : str
        The file, for errors.

    Attributes
    ----------
    name : str
        Name by which Python imports it.
    package : bool
        Whether it is the file of a package.
    main : list of statements
        What runs only where the module is started as a script.
    imports : list of imports
        Those that run whenever the module is imported.
    imported, typing : dict
        What imports bind at the top of the module; what they bind for type checkers alone.
    units : dict
        The statements that bind a name, by this name.
    always : Unit
        The statements that run whenever the module is imported and only bind what they bind on their way.
    """

    def __init__(self, name: str, text: str, *, package: bool, own: Collection[str] = (), where: str = "") -> None:
        self.name, self.package = name, package
        self.main: list[ast.stmt] = []
        self.imports: list[Import] = []
        self.imported: dict[str, list[Imported]] = {}
        self.typing: dict[str, list[Imported]] = {}
        self.stars: list[str] = []
        self.units: dict[str, Unit] = {}
        self.always = Unit(self, ALWAYS)
        tree = _parsed(text, where or name)
        for statement in tree.body:
            self._add(statement)
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        for node in self.imports:
            # what another package offers under a name that nobody uses is there for what its import does
            outside = {name for name, target in self.bound(node) if target.module.split(".")[0] not in own}
            if unused := sorted(outside - used):
                names = [alias for alias in node.names if (alias.asname or alias.name.split(".")[0]) in unused]
                self.always.statements.append(_import_of(node, names))

    def _add(self, statement: ast.stmt) -> None:
        if isinstance(statement, Import):
            self._add_import(statement, self.imported)
        elif isinstance(statement, ast.If) and _name_of(statement.test).endswith("TYPE_CHECKING"):
            self.add_typing(statement.body)
            for other in statement.orelse:
                self._add(other)
        elif isinstance(statement, ast.If) and _is_main(statement.test):
            self.main.append(statement)
        elif names := _bound_by_definition(statement):
            self._add_unit(statement, names)
        elif not is_text(statement):
            self.always.statements.append(statement)
            for node in _here([statement]):
                if isinstance(node, Import):
                    self._add_import(node, self.imported)
                else:
                    for name in _stored([node]):
                        self.units.setdefault(name, self.always)

    def add_typing(self, statements: list[ast.stmt]) -> None:
        """Note what imports bind in statements that only type checkers read."""
        for node in _here(statements):
            if isinstance(node, Import):
                for name, target in self.bound(node):
                    self.typing.setdefault(name, []).append(target)

    def _add_import(self, node: Import, into: dict[str, list[Imported]]) -> None:
        self.imports.append(node)
        for name, target in self.bound(node):
            if name == "*":
                self.stars.append(target.module)
            elif target not in into.setdefault(name, []):
                into[name].append(target)

    def _add_unit(self, statement: ast.stmt, names: list[str]) -> None:
        """Join the statement to all earlier ones that bind one of its names."""
        joined = dict.fromkeys(self.units[name] for name in names if name in self.units)
        every = dict.fromkeys([name for name, unit in self.units.items() if unit in joined] + names)
        unit = self.always if self.always in joined else Unit(self, ",".join(sorted(every)))
        for old in joined:
            if old is not unit:
                unit.statements.extend(old.statements)
        unit.statements.append(statement)
        for name in every:
            self.units[name] = unit

    def bound(self, node: Import) -> Iterator[tuple[str, Imported]]:
        """Yield the names that an import binds, and what it binds them to."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    yield alias.asname, Imported(alias.name)
                else:
                    root = alias.name.split(".")[0]
                    yield root, Imported(root)
            return
        for alias in node.names:
            yield alias.asname or alias.name, Imported(self.absolute(node), alias.name)

    def absolute(self, node: ast.ImportFrom) -> str:
        """Return the absolute name of the module that is imported from."""
        if not node.level:
            return str(node.module)
        parts = self.name.split(".")
        parts = parts[: len(parts) - node.level + (1 if self.package else 0)]
        return ".".join([*parts, *([node.module] if node.module else [])])

    @cached_property
    def every_unit(self) -> list[Unit]:
        """Return all definitions, and the other statements."""
        return list(dict.fromkeys([*self.units.values(), self.always]))


class Tree:
    """Find the modules of a project, and read each once.

    Parameters
    ----------
    root : Path
        The folder of the packages.
    packages : iterable of str
        Their names. MeLa itself is read from where it is installed if the folder lacks it.
    """

    def __init__(self, root: Path, packages: Iterable[str]) -> None:
        self.root, self.packages = root, frozenset(packages)
        self._modules: dict[str, Module | None] = {}

    def find(self, name: str) -> Module | None:
        """Return the module of a name, or None if it is none of this project."""
        if name not in self._modules:
            self._modules[name] = self._read(name)
        return self._modules[name]

    def along(self, name: str) -> Iterator[Module]:
        """Yield the packages of this project above a module, and the module."""
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            if found := self.find(".".join(parts[:end])):
                yield found

    def digest_of_files(self, package: str) -> str:
        """Return a hash of all files of a package that are neither code nor hidden, by their names in it."""
        folder = self._path(package)
        digest = hashlib.sha256()
        for path in sorted(folder.rglob("[!.]*")):
            if path.is_file() and path.suffix not in CODE_SUFFIXES:
                content = path.read_bytes()
                digest.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode())
                digest.update(content)
        return digest.hexdigest()

    def _path(self, name: str) -> Path:
        """Return the path that a module would have, without suffix."""
        first = name.split(".")[0]
        here = (self.root / first / "__init__.py").is_file() or first != mela.__name__
        return (self.root if here else Path(mela.__file__).parents[1]).joinpath(*name.split("."))

    def _read(self, name: str) -> Module | None:
        if name.split(".")[0] not in self.packages:
            return None
        path = self._path(name)
        for file, package in ((path / "__init__.py", True), (path.with_suffix(".py"), False)):
            if file.is_file():
                text = file.read_text(encoding="utf-8")
                module = Module(name, text, package=package, own=self.packages, where=str(file))
                # `lazy_loader.attach_stub` imports what the stub names
                if (stub := file.with_suffix(".pyi")).is_file():
                    module.add_typing(_parsed(stub.read_text(encoding="utf-8"), str(stub)).body)
                return module
        # a folder without __init__.py is a package too
        return Module(name, "", package=True) if path.is_dir() else None


def _parsed(text: str, where: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise MelaError(f"{where}: this file is no valid Python: {error}; correct it") from None


def is_text(statement: ast.stmt) -> bool:
    """Tell whether a statement is nothing but a text, as docstrings are."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _bound_by_definition(statement: ast.stmt) -> list[str]:
    """Return the names that a definition or an assignment binds; none for any other statement."""
    if isinstance(statement, Definition):
        return [statement.name]
    if isinstance(statement, ast.Assign):
        targets: list[ast.expr] = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    elif type(statement).__name__ == "TypeAlias":
        targets = [statement.name]  # type: ignore[attr-defined]
    else:
        return []
    nodes = [part for target in targets for part in ast.walk(target)]
    if any(isinstance(node, ast.Attribute | ast.Subscript) for node in nodes):
        return []
    names = [node.id for node in nodes if isinstance(node, ast.Name)]
    # what nobody can ask for by its name is there for what it does
    return [] if set(names) == {"_"} else names


def _here(statements: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes that run with these statements, which leaves out the bodies of functions."""
    waiting: list[ast.AST] = list(statements)
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


def _import_of(node: Import, aliases: list[ast.alias]) -> Import:
    if isinstance(node, ast.Import):
        return ast.Import(names=aliases)
    return ast.ImportFrom(module=node.module, names=aliases, level=node.level)


def _stored(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, Definition):
            yield node.name


def _name_of(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_main(test: ast.expr) -> bool:
    return ast.unparse(test) in ("__name__ == '__main__'", "'__main__' == __name__")
