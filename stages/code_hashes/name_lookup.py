"""Resolve names: each stands for a definition or a module of this project, or for another package's."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from stages.code_hashes.parsed_modules import Import, Imported, Module, Tree, Unit


@dataclass(frozen=True)
class Found:
    """Hold what a name stands for.

    Attributes
    ----------
    label : str
        Its name, the same however it was imported.
    units : tuple of Unit
        The definitions that whoever uses it depends on.
    module : Module, optional
        The module of this project that it is.
    external : bool
        Whether it belongs to another package.
    """

    label: str
    units: tuple[Unit, ...] = field(default=())
    module: Module | None = None
    external: bool = False

    def as_value(self) -> "Found":
        """Return the same for a name that is used in any way, which may reach all of a module."""
        return replace(self, units=tuple(self.module.every_unit)) if self.module else self


class Names:
    """Resolve the names in the modules of a tree.

    Parameters
    ----------
    tree : Tree
    renamed : callable
        What a dotted name of this project is called in labels, for comparing trees in which something has moved.
    """

    def __init__(self, tree: Tree, renamed: Callable[[str], str]) -> None:
        self.tree, self.renamed = tree, renamed
        self._open: set[tuple[str, str]] = set()

    def in_module(self, module: Module, name: str) -> Found | None:
        """Return what a name at the top of a module stands for; None if the module does not bind it."""
        if (module.name, name) in self._open:
            return None
        self._open.add((module.name, name))
        try:
            return self._in_module(module, name)
        finally:
            self._open.remove((module.name, name))

    def _in_module(self, module: Module, name: str) -> Found | None:
        unit, imports = module.units.get(name), module.imported.get(name, [])
        if unit is None and not imports:
            parents = [parent for star in module.stars if (parent := self.tree.find(star))]
            return next((found for parent in parents if (found := self.in_module(parent, name))), None)
        targets = [self.target(imported) for imported in imports]
        if unit is None and len(targets) == 1:
            return targets[0]
        # bound several times, and which of them counts is known only when it runs
        units = [one for target in targets for one in target.as_value().units] + ([unit] if unit else [])
        return Found(self.renamed(f"{module.name}.{name}"), tuple(dict.fromkeys(units)))

    def target(self, imported: Imported) -> Found:
        """Return what an import leads to."""
        module = self.tree.find(imported.module)
        if imported.name is None:
            return self._module(module) if module else Found(imported.module, external=True)
        return (
            self.attribute(module, imported.name)
            if module
            else Found(f"{imported.module}.{imported.name}", external=True)
        )

    def attribute(self, module: Module, name: str) -> Found:
        """Return what an attribute of a module of this project stands for."""
        if found := self.in_module(module, name):
            return found
        if inside := self.tree.find(f"{module.name}.{name}"):
            return self._module(inside)
        label = self.renamed(f"{module.name}.{name}")
        if name.startswith("__") and name.endswith("__"):
            return Found(label)
        if lazy := module.units.get("__getattr__"):
            shown = [self.target(imported).as_value() for imported in module.typing.get(name, [])]
            return Found(shown[0].label if shown else label, (lazy, *(unit for found in shown for unit in found.units)))
        return Found(label, tuple(module.every_unit))

    def _module(self, module: Module) -> Found:
        return Found(self.renamed(module.name), module=module)

    def loaded(self, module: Module, node: Import) -> Iterator[Module]:
        """Yield the modules of this project that an import statement runs."""
        names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            start = module.absolute(node)
            names = [start, *(f"{start}.{name}" for name in names)]
        for name in names:
            yield from self.tree.along(name)
