"""ANIL: only the classifier adapts to a task (Raghu et al., 2020)."""

from mela.learners.gradient import GradientLearner
from mela.learners.method import Method


class ANIL(GradientLearner):
    """Take the steps on the classifier alone; features do not change."""

    adapts = "head"


METHOD = Method(title="ANIL", source="Raghu et al., 2020", sees="tasks", learner=ANIL)
