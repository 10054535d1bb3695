"""Files on disk: written whole or not at all, and checked when they are read."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mela.io.atomic import replacing, together
    from mela.io.feature_tables import read_features, write_features
    from mela.io.store import open_images, read_csv, read_json, read_table, write_csv, write_json, write_table
    from mela.io.tables import read_labels, read_manifest
    from mela.io.text_tables import read_text_csv, write_text_csv

__all__ = [
    "open_images",
    "read_csv",
    "read_features",
    "read_json",
    "read_labels",
    "read_manifest",
    "read_table",
    "read_text_csv",
    "replacing",
    "together",
    "write_csv",
    "write_features",
    "write_json",
    "write_table",
    "write_text_csv",
]

# the module of each
_HOMES = {
    "open_images": "store",
    "read_csv": "store",
    "read_features": "feature_tables",
    "read_json": "store",
    "read_labels": "tables",
    "read_manifest": "tables",
    "read_table": "store",
    "read_text_csv": "text_tables",
    "replacing": "atomic",
    "together": "atomic",
    "write_csv": "store",
    "write_features": "feature_tables",
    "write_json": "store",
    "write_table": "store",
    "write_text_csv": "text_tables",
}


def __getattr__(name: str) -> Any:
    """Import what `__all__` names when it is asked for, since much of it takes long to import."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
