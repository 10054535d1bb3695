"""Provide few-shot methods, one in each module, and the registry that finds them by name."""

import pkgutil
from contextlib import suppress
from importlib import import_module

from mela.errors import MelaError
from mela.learners.method import Method, Sees, file_of, place_of, said

__all__ = ["find_method", "method_names", "methods_that_see"]


def method_names() -> list[str]:
    """List the names of all methods in alphabetical order."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)


def find_method(name: str) -> Method:
    """Return the method of a name.

    Raises
    ------
    MelaError
        There is none, or its file defines no METHOD.
    """
    if name not in method_names():
        raise MelaError(f"method {name!r}: there is none of this name; choose one of {', '.join(method_names())}")
    try:
        method = getattr(import_module(f"mela.methods.{name}"), "METHOD", None)
    except MelaError as error:
        raise MelaError(f"{file_of(error, _file(name))[0]}: {error}") from error
    except Exception as error:
        raise MelaError(
            f"{place_of(error, _file(name))}: expected a module that can be imported, got {said(error)}; correct it"
        ) from error
    if not isinstance(method, Method):
        raise MelaError(f"{_file(name)}: expected METHOD = Method(...), got {method}; add it")
    return method


def methods_that_see(sees: Sees) -> list[str]:
    """List the methods that learn from one kind of things; files that cannot be read are left out."""
    found = []
    for name in method_names():
        with suppress(MelaError):
            found += [name] if find_method(name).sees == sees else []
    return found


def _file(name: str) -> str:
    """Return the file of the method of a name, relative to the repository."""
    return f"mela/methods/{name}.py"
