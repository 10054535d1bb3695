"""MAML: weights from which a few gradient steps lead to any task (Finn, Abbeel and Levine, 2017)."""

from mela.learners.gradient import GradientLearner
from mela.learners.method import Method


class MAML(GradientLearner):
    """Take the steps on all weights, and differentiate the outcome through them."""


METHOD = Method(title="MAML", source="Finn et al., 2017", sees="tasks", learner=MAML)
