"""Hash definitions: their syntax trees without docstrings, with the full names of what they use."""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from mela.errors import MelaError
from stages.code_hashes.name_lookup import Found, Names
from stages.code_hashes.parsed_modules import Import, Imported, Module, Unit, is_text

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
# decorators that do nothing but return what stands in the place of what they decorate
HARMLESS = {
    "abc.abstractmethod",
    "contextlib.asynccontextmanager",
    "contextlib.contextmanager",
    "dataclasses.dataclass",
    "enum.unique",
    "functools.cache",
    "functools.lru_cache",
    "functools.total_ordering",
    "torch.inference_mode",
    "torch.no_grad",
    "typing.final",
    "typing.overload",
    "typing.runtime_checkable",
}


@dataclass(frozen=True)
class Written:
    """Hold what is known of a unit.

    Attributes
    ----------
    digest : str
        SHA-256 of its text.
    units : tuple of Unit
        The definitions that it uses.
    modules : tuple of Module
        The modules that imports inside of it run.
    acts : bool
        Whether it may do more, when its module is imported, than bind its name.
    reads : tuple of str
        The packages whose files it opens by ``importlib.resources.files``.
    """

    digest: str
    units: tuple[Unit, ...]
    modules: tuple[Module, ...]
    acts: bool
    reads: tuple[str, ...]


@dataclass
class _Scope:
    """Hold the names that a function binds, and those of them that its imports bind."""

    names: set[str] = field(default_factory=set)
    imported: dict[str, Imported] = field(default_factory=dict)


def write(unit: Unit, names: Names) -> Written:
    """Hash a unit, and find what it uses."""
    return write_statements(unit.module, unit.statements, names)


def write_statements(module: Module, statements: list[ast.stmt], names: Names) -> Written:
    """Hash statements of a module, and find what they use."""
    writer = _Writer(module, names)
    text = writer.statements(statements)
    acts = any(writer.acts(statement) for statement in statements)
    return Written(
        digest=hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest(),
        units=tuple(writer.units),
        modules=tuple(writer.modules),
        acts=acts,
        reads=tuple(writer.reads),
    )


class _Writer:
    """Write trees as text, and remember what they use."""

    def __init__(self, module: Module, names: Names) -> None:
        self.module, self.names = module, names
        self.units: dict[Unit, None] = {}
        self.modules: dict[Module, None] = {}
        self.reads: dict[str, None] = {}
        self.scopes: list[_Scope] = []

    def text(self, value: object) -> str:
        """Return the text of any part of a tree."""
        if isinstance(value, list):
            if value and all(isinstance(one, ast.stmt) for one in value):
                return self.statements(value)
            return f"[{','.join(map(self.text, value))}]"
        if not isinstance(value, ast.AST):
            return repr(value)
        if isinstance(value, ast.Name | ast.Attribute):
            return self._name(value)
        if isinstance(value, Function):
            return self._function(value)
        if isinstance(value, Comprehension):
            return self._comprehension(value)
        if isinstance(value, ast.Call):
            self._note_files(value)
        return self._fields(value)

    def statements(self, statements: Iterable[ast.stmt]) -> str:
        """Return the text of statements; docstrings are left out, and imports in a row are sorted."""
        parts: list[str] = []
        imports: set[str] = set()
        for statement in statements:
            if isinstance(statement, Import):
                imports.update(self._import(statement))
            elif not is_text(statement):
                parts += [*sorted(imports), self.text(statement)]
                imports = set()
        return f"[{';'.join([*parts, *sorted(imports)])}]"

    def acts(self, statement: ast.stmt) -> bool:
        """Tell whether a definition may do more than bind its name, such as register something."""
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in statement.decorator_list:
                found, _ = self._along(decorator.func if isinstance(decorator, ast.Call) else decorator)
                if found is None or not found.external or found.label not in HARMLESS:
                    return True
            return isinstance(statement, ast.ClassDef) and self._class_acts(statement, set())
        calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
        functions = [unit for call in calls if (found := self._along(call.func)[0]) for unit in found.units]
        return any(isinstance(one, Function) for unit in functions for one in unit.statements)

    def _class_acts(self, node: ast.ClassDef, seen: set[Unit]) -> bool:
        """Tell whether code of this project runs when a class is derived."""
        for base in [*node.bases, *(keyword.value for keyword in node.keywords if keyword.arg == "metaclass")]:
            found, _ = self._along(base.value if isinstance(base, ast.Subscript) else base)
            if base not in node.bases and found and not found.external:
                return True
            for unit in found.units if found else ():
                for made in unit.statements:
                    if isinstance(made, ast.ClassDef) and unit not in seen:
                        told = [one for one in made.body if getattr(one, "name", "") == "__init_subclass__"]
                        inner = _Writer(unit.module, self.names)
                        if told or inner._class_acts(made, seen | {unit}):
                            return True
        return False

    def _fields(self, node: ast.AST, *leave_out: str) -> str:
        """Return the text of a node without empty fields, in which versions of Python differ."""
        fields = []
        for name, value in ast.iter_fields(node):
            if value is None or value == [] or name in ("kind", "type_comment", *leave_out):
                continue
            if isinstance(value, ast.Load):
                continue
            fields.append(f"{name}={self.text(value)}")
            if name in ("annotation", "returns"):
                self._annotation(value)
        return f"{type(node).__name__}({','.join(fields)})"

    def _note_files(self, call: ast.Call) -> None:
        """Note the package whose files a call opens."""
        found, _ = self._along(call.func)
        if found and found.label == "importlib.resources.files":
            named = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
            if len(named) != 1 or not isinstance(named[0], str):
                raise MelaError(
                    f"{self.module.name}, line {call.lineno}: expected resources.files with a package as text, got "
                    f"{ast.unparse(call)}; write its name there, since stages depend on its files"
                )
            self.reads[named[0]] = None

    def _annotation(self, node: ast.AST) -> None:
        """Find the names in the texts of an annotation."""
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                try:
                    self.text(ast.parse(part.value, mode="eval"))
                except (SyntaxError, ValueError):
                    continue

    def _name(self, node: ast.Name | ast.Attribute) -> str:
        found, rest = self._along(node)
        if found is None:
            return self._fields(node)
        self.units.update(dict.fromkeys(found.as_value().units))
        stored = "" if isinstance(node.ctx, ast.Load) else f":{type(node.ctx).__name__}"
        return f"<{'.'.join([found.label, *rest])}{stored}>"

    def _along(self, node: ast.expr) -> tuple[Found | None, list[str]]:
        """Return what a dotted name stands for, as far as its parts are attributes of modules, and the rest.

        It stands for nothing that is known where it is any other expression.
        """
        rest: list[str] = []
        while isinstance(node, ast.Attribute):
            rest.insert(0, node.attr)
            node = node.value
        found = self._at(node.id) if isinstance(node, ast.Name) else None
        while found and rest and (found.module or found.external):
            if found.module:
                found = self.names.attribute(found.module, rest[0])
            else:
                found = Found(f"{found.label}.{rest[0]}", external=True)
            rest = rest[1:]
        return found, rest

    def _at(self, name: str) -> Found | None:
        """Return what a name stands for here; None if a function binds it, or if it is built in."""
        for scope in reversed(self.scopes):
            if name in scope.imported:
                return self.names.target(scope.imported[name])
            if name in scope.names:
                return None
        return self.names.in_module(self.module, name)

    def _import(self, node: Import) -> Iterator[str]:
        self.modules.update(dict.fromkeys(self.names.loaded(self.module, node)))
        for name, target in self.module.bound(node):
            if name == "*":
                if inside := self.names.tree.find(target.module):
                    self.units.update(dict.fromkeys(inside.every_unit))
                yield f"import {target.module}.*"
            else:
                yield f"import {self.names.target(target).label}"

    def _function(self, node: Function) -> str:
        around = self._fields(node, "body")
        names = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
        body = node.body if isinstance(node.body, list) else [node.body]
        with self._scope(names, body):
            return f"{around}{self.text(node.body)}"

    def _comprehension(self, node: Comprehension) -> str:
        first = node.generators[0]
        outside = self.text(first.iter)
        with self._scope(set(), [one.target for one in node.generators]):
            parts = [self._fields(first, "iter"), *map(self.text, node.generators[1:])]
            return f"{outside}{parts}{self._fields(node, 'generators')}"

    @contextmanager
    def _scope(self, names: set[str], nodes: Iterable[ast.AST]) -> Iterator[None]:
        scope = _Scope(names=set(names))
        elsewhere: set[str] = set()
        for node in _own(nodes):
            if isinstance(node, Import):
                scope.imported.update(self.module.bound(node))
            elif isinstance(node, ast.Global | ast.Nonlocal):
                elsewhere.update(node.names)
            elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                scope.names.add(node.id)
            elif isinstance(name := getattr(node, "name", None) or getattr(node, "rest", None), str):
                # functions and classes, exceptions, and what patterns catch
                scope.names.add(name)
        scope.names -= elsewhere
        self.scopes.append(scope)
        try:
            yield
        finally:
            self.scopes.pop()


def _own(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes that bind names in a function, and not in functions or classes inside of it."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.comprehension):
            waiting.append(node.iter)
            waiting.extend(node.ifs)
            continue
        yield node
        if not isinstance(node, Function | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(node))
