"""Change YAML files that people edit, and keep their comments."""

from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import RoundTripRepresenter


class _Representer(RoundTripRepresenter):
    """Write None as ``null``; this is a class of its own, since representers are kept by class."""


def _null(representer: _Representer, value: None) -> ScalarNode:
    return representer.represent_scalar("tag:yaml.org,2002:null", "null")


_Representer.add_representer(type(None), _null)


def commented_yaml() -> YAML:
    """Return a YAML loader and dumper that keeps comments, wraps no lines, and writes None as ``null``."""
    yaml = YAML()
    yaml.Representer = _Representer
    yaml.width = 4096
    return yaml
