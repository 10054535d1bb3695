from .base import ImageLearner as ImageLearner
from .base import LabelLearner as LabelLearner
from .base import Learner as Learner
from .base import Student as Student
from .logistic import fit_heads as fit_heads
from .method import Method as Method
