"""Hashes of definitions, on small made-up packages: which changes touch which scripts, and which touch none."""

import shutil
from pathlib import Path

import pytest

from mela.errors import MelaError
from stages.code_hashes.reached_code import Code, scripts
from tests.helpers.project import ROOT, edit, write

PACKAGES = ("lib", "jobs")
JOB = """
{imports}

def main():
    {work}

if __name__ == "__main__":
    main()
"""
FILES = {
    "lib/__init__.py": '"""A library."""\n',
    "lib/core.py": '''
        """The core."""

        import math
        import os
        from typing import TYPE_CHECKING

        from lib.deep import helper
        from lib.names import LABEL

        if TYPE_CHECKING:
            from lib.types import Shape

        LIMIT = 3
        OTHER: int = 4

        class Base:
            """A base."""

            def size(self) -> int:
                """How large."""
                return LIMIT

        class Derived(Base):
            """Derived."""

            name = "derived"

        def used(x: float, power: int = 2) -> float:
            """What the first script uses."""
            # this is a comment
            return helper(math.floor(x)) ** power + OTHER

        def unrelated() -> str:
            """What nobody uses."""
            return os.name + LABEL

        def lazy() -> object:
            """What imports inside."""
            from lib import rare

            return rare.treasure()
        ''',
    "lib/deep.py": '"""Below the core."""\n\nfrom lib.deeper import step\n\ndef helper(x):\n    return step(x) + 1\n',
    "lib/deeper.py": '''
        """Below that."""
        SCALE = 2

        def step(x):
            return SCALE * x

        if __name__ == "__main__":
            print(step(1))
        ''',
    "lib/face.py": '"""What the library offers."""\n\nfrom lib.core import Derived, used as offered\n',
    "lib/names.py": '"""Names."""\n\nLABEL = "label"\n',
    "lib/rare.py": '"""Rare."""\n\n\ndef treasure():\n    return 7\n\n\ndef stone():\n    return 8\n',
    "lib/types.py": '"""For type checkers."""\n\nShape = tuple\n',
    # a function by another name, a class as an attribute of a module, what imports inside, and nothing
    "jobs/first.py": JOB.format(imports="from lib.face import offered", work="print(offered(1.5))"),
    "jobs/second.py": JOB.format(imports="from lib import core", work="print(core.Derived().size())"),
    "jobs/third.py": "import lib.core\n\nif __name__ == '__main__':\n    lib.core.lazy()\n",
    "jobs/alone.py": "if __name__ == '__main__':\n    print(\"alone\")\n",
}
Hashes = dict[str, dict[str, str]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        write(tmp_path / name, text)
    return tmp_path


def hashes(root: Path, renamed: dict[str, str] | None = None) -> Hashes:
    """Of all scripts, by their names without the package."""
    code = Code(root, PACKAGES, renamed)
    return {name.rpartition(".")[2]: code.reached(name) for name in scripts(root, Path("jobs"))}


def touched(before: Hashes, after: Hashes) -> set[str]:
    return {name for name in before if before[name] != after[name]}


def test_what_scripts_reach(root: Path) -> None:
    found = {name: sorted(each) for name, each in hashes(root).items()}
    assert found == {
        "first": [
            "jobs.first.main",
            "jobs.first:script",
            "lib.core.OTHER",
            "lib.core.used",
            "lib.deep.helper",
            "lib.deeper.SCALE",
            "lib.deeper.step",
        ],
        "second": ["jobs.second.main", "jobs.second:script", "lib.core.Base", "lib.core.Derived", "lib.core.LIMIT"],
        "third": ["jobs.third:script", "lib.core.lazy", "lib.rare.treasure"],
        "alone": ["jobs.alone:script"],
    }


def test_the_way_of_an_import_means_nothing(root: Path) -> None:
    before = hashes(root)
    edit(root / "jobs/first.py", "from lib.face import offered", "from lib import core")
    edit(root / "jobs/first.py", "offered(1.5)", "core.used(1.5)")
    edit(root / "jobs/second.py", "from lib import core", "from lib.face import Derived as Made")
    edit(root / "jobs/second.py", "core.Derived", "Made")
    edit(root / "lib/core.py", "import math\n", "from math import floor\n")
    edit(root / "lib/core.py", "math.floor", "floor")
    edit(root / "lib/core.py", "    from lib import rare\n", "    from lib.rare import treasure\n")
    edit(root / "lib/core.py", "rare.treasure()", "treasure()")
    after = hashes(root)
    assert touched(before, after) == {"third"}
    assert {key for key in before["third"] if before["third"][key] != after["third"].get(key)} == {"lib.core.lazy"}, (
        "an import inside of a function may run something, and is part of it"
    )


ALL = {"first", "second", "third"}
SWAPPED = "from lib.names import LABEL\nfrom lib.deep import helper\n"


@pytest.mark.parametrize(
    ("name", "old", "new", "scripts_"),
    [
        ("lib/core.py", "# this is a comment", "# this is another comment", set()),
        ("lib/core.py", '"""What the first script uses."""', '"""What the first script calls."""', set()),
        ("lib/core.py", '    """What the first script uses."""\n', "", set()),
        ("lib/core.py", '"""Derived."""\n\n    name', '"""Derived, and named so."""\n\n\n    name', set()),
        ("lib/core.py", '"""The core."""', '"""The core of it."""', set()),
        ("lib/core.py", "import math\nimport os\n", "import os\nimport math\n", set()),
        ("lib/core.py", "from lib.deep import helper\nfrom lib.names import LABEL\n", SWAPPED, set()),
        ("lib/core.py", "return os.name", "return os.sep", set()),
        ("lib/core.py", "    from lib.types import Shape", "    from lib.deeper import step", set()),
        ("lib/core.py", "helper(math.floor(x)) ** power", "(helper(math.floor(x))\n        ** power\n    )", set()),
        ("lib/core.py", "OTHER: int = 4\n", "NEW = 1\nOTHER: int = 4\n", set()),
        ("lib/names.py", '"label"', '"another label"', set()),
        ("lib/rare.py", "return 8", "return 9", set()),
        ("lib/deeper.py", "print(step(1))", "print(step(2))", set()),
        ("lib/core.py", "** power + OTHER", "** power - OTHER", {"first"}),
        ("lib/core.py", "power: int = 2", "power: int = 3", {"first"}),
        ("lib/core.py", "x: float, power", "x: int, power", {"first"}),
        ("lib/core.py", "OTHER: int = 4", "OTHER: int = 5", {"first"}),
        ("lib/core.py", "LIMIT = 3", "LIMIT = 3.0", {"second"}),
        ("lib/core.py", "return LIMIT", "return LIMIT + 1", {"second"}),
        ("lib/core.py", "class Derived(Base)", "class Derived(Base, dict)", {"second"}),
        ("lib/core.py", "class Derived(Base)", "class Derived(dict)", {"second"}),
        ("lib/core.py", "def used(", "@staticmethod\ndef used(", ALL),
        ("lib/core.py", "import math\n", "import cmath as math\n", {"first"}),
        ("lib/core.py", "from lib.deep import helper", "from lib.deeper import step as helper", {"first"}),
        ("lib/core.py", "    return rare.treasure()", "    return rare.stone()", {"third"}),
        ("lib/core.py", "    return rare.treasure()", "    return rare", {"third"}),
        ("lib/core.py", "OTHER: int = 4\n", "OTHER: int = 4\nOTHER = 4\n", {"first"}),
        ("lib/core.py", "OTHER: int = 4\n", "OTHER: int = 4\nOTHER += 1\n", {"first"}),
        ("lib/core.py", "OTHER: int = 4\n", "OTHER: int = 4\nprint('loaded')\n", ALL),
        ("lib/deeper.py", "SCALE = 2\n", "SCALE = 2\nprint('loaded')\n", ALL),
        ("lib/deeper.py", "SCALE = 2\n", "SCALE = 2\nif True:\n    SCALE = 3\n", ALL),
        ("lib/deeper.py", "SCALE = 2\n", "SCALE = 2\n_ = print('loaded')\n", ALL),
        ("lib/deeper.py", "SCALE = 2\n", "SCALE = {}\nSCALE['a'] = 1\n", ALL),
        ("lib/deeper.py", "return SCALE * x", "return SCALE * x + 1", {"first"}),
        ("lib/deeper.py", "SCALE = 2\n", "import readline\n\nSCALE = 2\n", ALL),
        ("lib/rare.py", "return 7", "return 77", {"third"}),
        ("lib/rare.py", "def stone", "print('loaded')\n\n\ndef stone", {"third"}),
        ("lib/face.py", "used as offered", "unrelated as offered", {"first"}),
        ("lib/__init__.py", '"""A library."""\n', '"""A library."""\nprint("loaded")\n', ALL),
        ("jobs/alone.py", '"alone"', '"lonely"', {"alone"}),
    ],
)
def test_what_an_edit_touches(root: Path, name: str, old: str, new: str, scripts_: set[str]) -> None:
    before = hashes(root)
    edit(root / name, old, new)
    assert touched(before, hashes(root)) == scripts_


def test_another_name_for_an_imported_module_means_nothing(root: Path) -> None:
    before = hashes(root)
    edit(root / "jobs/second.py", "from lib import core", "from lib import core as base")
    edit(root / "jobs/second.py", "core.Derived", "base.Derived")
    assert touched(before, hashes(root)) == set()


REGISTERS = """
def register(one):
    return one

@register
def extra():
    return 1
"""
REGISTERS_ELSEWHERE = """
import atexit
@atexit.register
def extra():
    return 1
"""
REMEMBERS = """
from functools import cache
@cache
def extra():
    return 1
"""
CALLS = """
def register():
    return 1

EXTRA = register()
"""
IS_TOLD = """
class Kind:
    known = []

    def __init_subclass__(cls):
        cls.known.append(cls)

class Extra(Kind):
    pass
"""
IS_MADE = """
class Meta(type):
    pass

class Extra(metaclass=Meta):
    pass
"""
IS_DERIVED = """
class Kind:
    pass

class Extra(Kind):
    pass
"""
ASKS_FIRST = """
if SCALE:
    from lib.rare import stone

    stone()
"""


@pytest.mark.parametrize(
    ("addition", "counts"),
    [
        (REGISTERS, {"lib.deeper.extra", "lib.deeper.register"}),
        (REGISTERS_ELSEWHERE, {"lib.deeper.extra"}),
        (REMEMBERS, set()),
        (CALLS, {"lib.deeper.EXTRA", "lib.deeper.register"}),
        ("EXTRA = dict()\n", set()),
        (IS_TOLD, {"lib.deeper.Extra", "lib.deeper.Kind"}),
        (IS_MADE, {"lib.deeper.Extra", "lib.deeper.Meta"}),
        (IS_DERIVED, set()),
        (ASKS_FIRST, {"lib.deeper:statements", "lib.deeper.SCALE", "lib.rare.stone"}),
        ("import readline\n", {"lib.deeper:statements"}),
        ("import lib.rare\n", set()),
        ("from lib.rare import stone\n", set()),
    ],
)
def test_what_acts_when_a_module_is_imported_counts(root: Path, addition: str, counts: set[str]) -> None:
    """For all who import the module, also through others, and not for those who do not."""
    before = hashes(root)
    with (root / "lib/deeper.py").open("a", encoding="utf-8") as file:
        file.write(f"\n\n{addition}")
    after = hashes(root)
    assert set(after["second"]) - set(before["second"]) == counts
    assert touched(before, after) == (ALL if counts else set())


def test_names_that_a_function_binds_itself_are_not_those_of_the_module(root: Path) -> None:
    text = """
        from lib import rare

        A = B = C = D = E = 1


        def f(A):
            B = [C for C in A]
            rare = lambda D: D
            return B, rare, E


        class K:
            C = 2
            rare = C


        if __name__ == "__main__":
            f(1)
        """
    write(root / "jobs/fourth.py", text)
    together = ",".join(f"jobs.fourth.{name}" for name in "ABCDE")
    assert set(hashes(root)["fourth"]) == {"jobs.fourth:script", together, "jobs.fourth.f"}
    edit(root / "jobs/fourth.py", "return B, rare, E", "return B, rare")
    assert set(hashes(root)["fourth"]) == {"jobs.fourth:script", "jobs.fourth.f"}
    edit(root / "jobs/fourth.py", "    B = [C for C in A]", "    B = [C for C in A]\n    global rare")
    assert "lib.rare.stone" in hashes(root)["fourth"], "a module used as a value is used whole"
    edit(root / "jobs/fourth.py", "    f(1)", "    K()")
    assert "jobs.fourth.f" not in hashes(root)["fourth"]


EITHER = """
try:
    from lib.rare import stone as one
except ImportError:
    from lib.rare import treasure as one
one()
"""


@pytest.mark.parametrize(
    ("text", "reaches"),
    [
        ("from lib.rare import *\nstone()", {"stone"}),
        ("from lib import rare\nprint(rare)", {"stone", "treasure"}),
        ("from lib import rare\ngetattr(rare, 'stone')()", {"stone", "treasure"}),
        ("from lib import rare\nrare.nothing()", {"stone", "treasure"}),
        ("from lib import rare\nprint(rare.__name__)", set()),
        ("import lib.rare\nlib.rare.stone()", {"stone"}),
        ("import lib.rare as hidden\nhidden.stone()", {"stone"}),
        ("def f(x: 'stone') -> 'None': ...\nfrom lib.rare import stone\nf(1)", {"stone"}),
        (EITHER, {"stone", "treasure"}),
        ("from lib import rare\nwith open(rare.stone()) as file:\n    pass", {"stone"}),
        ("from lib.rare import stone\nprint(f'{stone()}')", {"stone"}),
        ("from lib.rare import stone\nmatch 1:\n    case 1:\n        stone()", {"stone"}),
    ],
)
def test_ways_to_use_a_module(root: Path, text: str, reaches: set[str]) -> None:
    write(root / "jobs/fourth.py", text + "\nif __name__ == '__main__':\n    pass\n")
    found = hashes(root)["fourth"]
    assert {name.removeprefix("lib.rare.") for name in found if name.startswith("lib.rare")} == reaches


def test_relative_imports_and_packages(root: Path) -> None:
    write(root / "lib/inner/__init__.py", "from .one import first\nfrom ..rare import stone\n")
    write(root / "lib/inner/one.py", "from . import two\n\n\ndef first():\n    return two.second()\n")
    write(root / "lib/inner/two.py", "from ..rare import treasure\n\n\ndef second():\n    return treasure()\n")
    write(root / "jobs/fourth.py", "from lib import inner\n\nif __name__ == '__main__':\n    inner.first()\n")
    found = set(hashes(root)["fourth"])
    assert found == {"jobs.fourth:script", "lib.inner.one.first", "lib.inner.two.second", "lib.rare.treasure"}


def test_what_a_package_imports_when_it_is_asked(root: Path) -> None:
    lazy = """
        from typing import TYPE_CHECKING

        if TYPE_CHECKING:
            from lib.rare import stone


        def __getattr__(name):
            from importlib import import_module

            return getattr(import_module("lib.rare"), name)
        """
    write(root / "lib/__init__.py", lazy)
    write(root / "jobs/fourth.py", "from lib import stone\n\nif __name__ == '__main__':\n    stone()\n")
    assert set(hashes(root)["fourth"]) == {"jobs.fourth:script", "lib.__getattr__", "lib.rare.stone"}


def test_what_a_stub_says_where_to_find(root: Path) -> None:
    """Another name in the stub makes no stage due."""
    attach = "import lazy_loader\n\n__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)\n"
    write(root / "lib/__init__.py", attach)
    write(root / "lib/__init__.pyi", "from .rare import stone as stone\n")
    write(root / "jobs/fourth.py", "from lib import stone\n\nif __name__ == '__main__':\n    stone()\n")
    before = hashes(root)
    face = "lib.__all__,lib.__dir__,lib.__getattr__"
    assert set(before["fourth"]) == {"jobs.fourth:script", face, "lib.rare.stone"}
    write(root / "lib/__init__.pyi", "from .rare import stone as stone\nfrom .rare import treasure as treasure\n")
    assert touched(before, hashes(root)) == set()
    edit(root / "lib/rare.py", "def stone():", "def stone(size=1):")
    assert "fourth" in touched(before, hashes(root))
    write(root / "lib/__init__.pyi", "from")
    with pytest.raises(MelaError, match=r"lib/__init__.pyi: this file is no valid Python: invalid syntax .*; correct "):
        hashes(root)


def test_modules_that_import_each_other(root: Path) -> None:
    for name, other, function in (("rare", "types", "stone"), ("types", "rare", "one")):
        imports = f"from lib import {other}\nfrom lib.{other} import again\n\n"
        write(root / f"lib/{name}.py", f"{imports}def {function}():\n    return again, {other}.again\n")
    write(root / "jobs/fourth.py", "from lib.types import one\n\nif __name__ == '__main__':\n    one()\n")
    assert {"lib.types.one", "lib.rare.stone"} <= set(hashes(root)["fourth"])


def test_files_of_a_package_belong_to_the_code_that_opens_them(root: Path) -> None:
    """So stages need not list them, wherever the package is installed."""
    opens = "from importlib import resources\n\n\ndef opened():\n    return resources.files('lib.page')\n"
    write(root / "lib/opener.py", opens)
    for name in ("page.css", "page.html", "tables/a.csv"):
        write(root / "lib/page" / name, f"{name}\n")
    write(root / "jobs/opens.py", JOB.format(imports="from lib.opener import opened", work="print(opened())"))
    before = hashes(root)
    assert "lib.page:files" in before["opens"]
    write(root / "lib/page/__pycache__/page.cpython-311.pyc", "compiled\n")
    write(root / "lib/page/.page.html.swp", "being edited\n")
    assert hashes(root) == before
    for change in (
        lambda: edit(root / "lib/page/tables/a.csv", "tables", "words"),
        lambda: write(root / "lib/page/tables/b.csv", "b\n"),
        lambda: (root / "lib/page/page.css").rename(root / "lib/page/other.css"),
    ):
        change()
        after = hashes(root)
        assert touched(before, after) == {"opens"}
        assert {name for name, digest in after["opens"].items() if digest != before["opens"][name]} == {
            "lib.page:files"
        }
        before = after


def test_mela_is_read_from_where_it_is_installed_if_a_project_has_only_stages(tmp_path: Path) -> None:
    """Its hashes are those of a clone, so that both can share a cache."""
    shutil.copytree(ROOT / "stages", tmp_path / "stages", ignore=shutil.ignore_patterns("__pycache__"))
    # a folder of images, perhaps
    (tmp_path / "mela").mkdir()
    assert Code(tmp_path).reached("stages.images") == Code(ROOT).reached("stages.images")


def test_files_of_a_package_without_a_name_cannot_be_followed(root: Path) -> None:
    write(root / "lib/opener.py", "from importlib import resources\n\ndef opened(x):\n    return resources.files(x)\n")
    write(root / "jobs/opens.py", JOB.format(imports="from lib.opener import opened", work="print(opened('lib'))"))
    with pytest.raises(
        MelaError, match=r"^lib.opener, line 4: expected resources.files with a package as text, got res"
    ):
        hashes(root)


def test_a_name_that_a_module_is_asked_for(root: Path) -> None:
    """As methods are, which are found by the names of their files."""
    code = Code(root, PACKAGES)
    assert set(code.reached("lib.deep", "helper")) == {"lib.deep.helper", "lib.deeper.SCALE", "lib.deeper.step"}
    with pytest.raises(MelaError, match=r"^lib.deep: expected METHOD at the top of this module, got none; add it$"):
        code.reached("lib.deep", "METHOD")


def test_modules_that_are_not_there_or_cannot_be_read(root: Path) -> None:
    with pytest.raises(MelaError, match=r"^jobs.fifth: no such module; correct the name$"):
        Code(root, PACKAGES).reached("jobs.fifth")
    write(root / "lib/rare.py", "def (")
    with pytest.raises(MelaError, match=r"lib/rare.py: this file is no valid Python: invalid syntax .*; correct it$"):
        hashes(root)


def test_moved_modules_have_the_same_hashes_under_the_new_names(root: Path) -> None:
    moved = {"lib.deeper": "lib.low.most", "lib.core.used": "lib.high.used"}
    before = hashes(root, moved)
    (root / "lib/low").mkdir()
    (root / "lib/deeper.py").rename(root / "lib/low/most.py")
    edit(root / "lib/deep.py", "from lib.deeper import", "from lib.low.most import")
    core = (root / "lib/core.py").read_text(encoding="utf-8")
    start, end = core.index("def used"), core.index("def unrelated")
    write(root / "lib/core.py", core[:start].replace("import math\n", "") + core[end:])
    imports = "import math\n\nfrom lib.core import OTHER\nfrom lib.deep import helper\n\n\n"
    write(root / "lib/high.py", imports + core[start:end])
    edit(
        root / "lib/face.py", "import Derived, used as offered", "import Derived\nfrom lib.high import used as offered"
    )
    after = hashes(root)
    assert touched(before, after) == set()
    assert touched(hashes(root, moved), after) == set(), "names that are new already stay"
    assert {"lib.low.most.step", "lib.high.used"} <= set(after["first"])
