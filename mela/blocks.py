"""Read blocks of parameters from a YAML file, and say in one line what is wrong with one.

What every stage calls here knows no block by its name, so that a stage depends on those alone that it reads.
"""

from collections.abc import Mapping
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from mela.errors import MelaError

PARAMS = Path("params.yaml")


class Block(BaseModel):
    """Define one top-level key of ``params.yaml``."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
    block: ClassVar[str]
    # whether the benchmark of methods alone has it
    extra: ClassVar[bool] = False
    # whether a file without it means its defaults
    optional: ClassVar[bool] = False

    @classmethod
    def read(cls, path: Path = PARAMS) -> Self:
        """Read and check this block of a params file.

        Raises
        ------
        MelaError
            The file, the block or a value in it is missing, unknown or out of range.
        """
        document = read_document(path)
        if cls.block not in document:
            if cls.optional:
                return cls()
            raise MelaError(f"{path}: {missing_block(cls.block, document)}")
        try:
            return cls.of(document[cls.block])
        except ValidationError as error:
            raise MelaError(f"{path}: {first_problem(cls.block, error)}") from None

    @classmethod
    def of(cls, content: object) -> Self:
        """Check the content of this block; None stands for an empty one; mistakes raise ValidationError."""
        return cls.model_validate(content if content is not None else {}, strict=True)

    def content(self) -> Any:
        """Return what the file has under the block's name."""
        return self.model_dump()


def read_document(path: Path) -> dict[str, object]:
    """Read a params file as plain dictionaries; only its syntax and the names of its blocks are checked."""
    document = read_yaml(path)
    known = {block.block for block in known_blocks()}
    for name in document:
        if name not in known:
            raise MelaError(f"{path}: {name}: unknown block; expected one of {', '.join(sorted(known))}")
    return document


def known_blocks(kind: type[Block] = Block) -> list[type[Block]]:
    """Return all kinds of blocks that are defined in this process.

    What every stage calls uses this and not `BLOCKS`, which names all blocks: a stage then depends only on the blocks
    that it reads, and a new key in another block does not rerun it.
    """
    found = [kind] if "block" in vars(kind) else []
    return found + [block for derived in kind.__subclasses__() for block in known_blocks(derived)]


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file of blocks as plain dictionaries."""
    try:
        document = _parsed(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise MelaError(f"{path}: expected text in UTF-8, got {error.reason}; save it as UTF-8") from None
    except FileNotFoundError:
        raise MelaError(
            f"{path}: no such file; run from the project's root, or write it with `mela preset glyphs`"
        ) from None
    except RecursionError:
        raise MelaError(f"{path}: expected YAML, got lists or blocks nested too deeply; make it flat") from None
    # KeyError: a boolean that is none
    except (YAMLError, ValueError, KeyError) as error:
        raise MelaError(f"{path}: expected YAML, got {' '.join(str(error).split())}") from None
    if not isinstance(document, dict):
        raise MelaError(f"{path}: expected blocks such as `labeler:`, got {type(document).__name__}")
    return deepcopy(document)


@lru_cache(maxsize=32)
def _parsed(text: str) -> object:
    """Return the content of a YAML file, which most programs read once for each block."""
    return YAML(typ="safe", pure=True).load(text)


def first_problem(block: str, error: ValidationError, others: int = 0) -> str:
    """Describe in one line what is wrong with a block, or with a whole file if its name is empty.

    Parameters
    ----------
    block : str
    error : ValidationError
    others : int, default=0
        Mistakes in other blocks, which the line counts as well.
    """
    problems = error.errors(include_url=False)
    # a key that is misspelt is missing as well, which alone would not tell what is wrong
    first = min(problems, key=lambda problem: problem["type"] != "extra_forbidden")
    key = ".".join([*([block] if block else []), *(str(part) for part in first["loc"])])
    if first["type"] == "value_error":
        message = f"{key}: {first['ctx']['error']}" if key else str(first["ctx"]["error"])
    elif first["type"] == "extra_forbidden":
        message = f"{key}: unknown key; remove it or correct its name"
    elif first["type"] == "missing":
        message = f"{key}: missing; expected a value"
    else:
        message = f"{key}: {first['msg'][0].lower()}{first['msg'][1:]}, got {first['input']!r}"
    more = len(problems) - 1
    counts = [f"{more} more{' in this block' if block else ''}"] if more else []
    counts += [f"{others} more in other blocks"] if others else []
    return message + (f" (and {', '.join(counts)})" if counts else "")


def missing_block(block: str, document: Mapping[str, object]) -> str:
    """Say in one line that a block is missing."""
    return f"{block}: expected this block, found only {', '.join(document) or 'nothing'}"
