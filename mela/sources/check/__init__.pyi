from .aside import set_aside as set_aside
from .inspect import Findings as Findings
from .layout import Layout as Layout
from .layout import find_layout as find_layout
from .suggest import fill_preset as fill_preset
