"""Build the labeler that a block of parameters asks for."""

import inspect
from typing import Any

from mela.labeling.learn_labeler import LearnLabeler
from mela.labeling.merge_labeler import MergeLabeler
from mela.labeling.task_labeler import TaskLabeler


def build_labeler(*, merge: bool = True, **parameters: Any) -> TaskLabeler:
    """Build MergeLabeler, with those of the parameters that it has, or LearnLabeler, with all of them."""
    if not merge:
        return LearnLabeler(**parameters)
    known = inspect.signature(MergeLabeler).parameters
    return MergeLabeler(**{name: value for name, value in parameters.items() if name in known})
