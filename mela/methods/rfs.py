"""RFS: classify all labels at once, and nothing else (Tian et al., 2020)."""

from mela.learners.base import LabelLearner
from mela.learners.method import Method

METHOD = Method(title="RFS", source="Tian et al., 2020", sees="labels", learner=LabelLearner)
