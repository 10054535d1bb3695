"""The plan of the house: packages with faces, no import cycles, and names that are said once."""

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

from tests.helpers.pipeline import imported_names
from tests.helpers.project import ROOT
from tests.helpers.starts import SLOW, modules_after, modules_after_each

FOLDERS = ("mela", "stages", "benchmark", "studies")


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_of(path): path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))}
PACKAGES = {module for module, path in FILES.items() if path.name == "__init__.py"}


def stub_of(package: str) -> dict[str, str]:
    """The names that a package imports when it is asked for them, and the modules that its stub says they are in."""
    stub = FILES[package].with_suffix(".pyi")
    nodes = ast.parse(stub.read_text(encoding="utf-8")).body if stub.is_file() else []
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    return {str(alias.asname): f"{package}.{node.module}" for node in imports for alias in node.names}


FACES = {package: stub for package in sorted(PACKAGES) if (stub := stub_of(package))}


def nodes_at_run_time(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only type checkers read."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield node
            yield from nodes_at_run_time(node)


def imported(text: str) -> set[str]:
    """Modules of this project that a file imports, at its top or inside of functions."""
    return set(imported_names(nodes_at_run_time(ast.parse(text)))) & set(FILES)


def imports() -> dict[str, set[str]]:
    graph = {module: imported(path.read_text(encoding="utf-8")) - {module} for module, path in FILES.items()}
    # the modules of a smaller package may import from its face what its stub does not name
    return graph | {"mela": set(FACES["mela"].values())}


def room(module: str) -> str:
    """The package that a module is in; what lies in the top folder is a room of its own."""
    if module in PACKAGES and module not in FOLDERS:
        return module
    package = module.rpartition(".")[0]
    return module if package in ("", *FOLDERS) else package


def between_rooms(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for module, others in graph.items():
        found.setdefault(room(module), set()).update({room(other) for other in others} - {room(module)})
    return found


def cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """The names along one cycle; nothing if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_files_import_each_other() -> None:
    assert cycle(imports()) == []


def test_no_packages_import_each_other() -> None:
    assert cycle(between_rooms(imports())) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "file", "line"),
    [
        ("mela.learners", "mela.learners.base", "from mela.methods import find_method"),
        ("mela.io", "mela.io.store", "from mela.labeling import LearnLabeler"),
        ("benchmark.report", "benchmark.systems", "from benchmark.report import systems_page"),
    ],
)
def test_a_cycle_would_be_noticed(package: str, file: str, line: str) -> None:
    graph = imports()
    graph[file] |= imported(line)
    assert package in cycle(between_rooms(graph))


def test_few_modules_lie_at_the_top() -> None:
    assert len(list((ROOT / "mela").glob("*.py"))) <= 5


def test_every_folder_is_a_package_that_says_what_it_is_for() -> None:
    for folder in {path.parent for path in FILES.values()}:
        package = module_of(folder / "__init__.py")
        assert package in FILES, folder
        assert ast.get_docstring(ast.parse(FILES[package].read_text(encoding="utf-8"))), package


@pytest.mark.parametrize("package", FACES)
def test_a_face_has_what_it_names(package: str) -> None:
    face = import_module(package)
    assert sorted(face.__all__) == sorted(FACES[package])
    for name, module in FACES[package].items():
        # what type checkers take for a name is what Python finds
        assert getattr(face, name) is getattr(import_module(module), name), name
    with pytest.raises(AttributeError, match="nothing"):
        _ = face.nothing


def test_there_are_faces() -> None:
    inside = {module for module in PACKAGES if module.startswith("mela.")} - {"mela.cli", "mela.methods"}
    assert inside | {"mela"} == set(FACES)


@pytest.mark.slow
def test_a_face_imports_only_what_is_asked_for() -> None:
    assert not set(SLOW) & modules_after("\n".join(f"import {package}" for package in FACES))
    assert "torch" not in modules_after("from mela import LearnLabeler")


@pytest.mark.slow
def test_the_labeler_costs_little_more_than_scikit_learn() -> None:
    """Its time depends on the machine; which packages it imports beside those of scikit-learn does not."""
    modules = modules_after_each(["from mela import LearnLabeler", "import sklearn.cluster"], "")
    ours, theirs = ({name.partition(".")[0] for name in names} for names in modules)
    assert {name for name in ours - theirs if not name.startswith("_")} <= {"mela", "lazy_loader", "array_api_compat"}


def test_file_names_of_the_library_are_said_once() -> None:
    """The command line is apart: its modules are called as its commands are."""
    names: dict[str, list[str]] = {}
    for module in FILES:
        if module.startswith("mela.") and not module.startswith("mela.cli.") and module not in PACKAGES:
            names.setdefault(module.rpartition(".")[2], []).append(module)
    assert {name: found for name, found in names.items() if len(found) > 1} == {}


def array_aliases(text: str) -> list[str]:
    """Names at the top of a module that stand for a type of NumPy's arrays, or for one of several."""
    assigned = [node for node in ast.parse(text).body if isinstance(node, ast.Assign | ast.AnnAssign)]
    found = [node for node in assigned if node.value and is_array_type(node.value)]
    return [ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target) for node in found]


def is_array_type(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return is_array_type(node.left) or is_array_type(node.right)
    written = ast.unparse(node.value if isinstance(node, ast.Subscript) else node)
    return written.startswith(("npt.", "numpy.typing.")) or written in ("NDArray", "np.ndarray")


def test_types_of_arrays_have_one_home() -> None:
    home = "mela.data.array_types"
    found = {module: names for module, path in FILES.items() if (names := array_aliases(path.read_text("utf-8")))}
    assert found.keys() == {home}


@pytest.mark.parametrize(
    "line",
    ["Rows = npt.NDArray[np.int64]", "Rows: TypeAlias = NDArray[Any]", "Rows = npt.NDArray[np.int64] | None"],
)
def test_another_type_of_arrays_would_be_noticed(line: str) -> None:
    assert array_aliases(f"import numpy.typing as npt\n{line}\nrows = np.ndarray([2])\n") == ["Rows"]


def test_no_product_file_looks_like_a_test() -> None:
    assert [path for path in FILES.values() if path.stem.startswith("test_") or path.stem.endswith("_test")] == []


def test_tests_lie_beside_what_they_test() -> None:
    """Each folder of tests is that of a package, or of what is no package."""
    others = {Path("docs"), Path("dvc"), Path("helpers")}
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("*.py")} - {Path()} - others
    for folder in folders:
        assert any((place / folder / "__init__.py").is_file() for place in (ROOT / "mela", ROOT)), folder


@pytest.mark.slow
def test_tests_of_an_inner_package_lie_in_its_folder() -> None:
    """A file that imports one package within the folder's package, and nothing beside it there, tests the inner one."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        folder = ".".join(path.parent.relative_to(ROOT / "tests").parts)
        outer = folder if folder in PACKAGES else f"mela.{folder}"
        rooms = {room(module) for module in imported(path.read_text(encoding="utf-8"))}
        inside = [name for name in rooms if name == outer or name.startswith(f"{outer}.")]
        # all stages find their files by the paths in stages.common
        assert len(inside) != 1 or inside[0] in {outer, "stages.common"} or inside[0] not in PACKAGES, path


def test_test_files_import_no_test_files() -> None:
    for path in (ROOT / "tests").rglob("test_*.py"):
        names = imported_names(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        assert not [name for name in names if any(part.startswith("test_") for part in name.split("."))], path
