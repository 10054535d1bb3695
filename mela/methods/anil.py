"""ANIL: only the classifier adapts to a task (Raghu et al., 2020)."""

from mela.learners.gradient import GradientLearner
from mela.learners.method import Method


class ANIL(GradientLearner):
    """The classifier takes the steps, on features that stay as they are."""

    adapts = "head"


METHOD = Method(title="ANIL", source="Raghu et al., 2020", sees="tasks", learner=ANIL)
