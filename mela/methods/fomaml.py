"""MAML without second derivatives (Finn, Abbeel and Levine, 2017, section 5.2)."""

from mela.learners.gradient import GradientLearner
from mela.learners.method import Method


class FirstOrderMAML(GradientLearner):
    """Take the steps on all weights, as constants when the outcome is differentiated."""

    first_order = True


METHOD = Method(title="MAML, first order", source="Finn et al., 2017", sees="tasks", learner=FirstOrderMAML)
