from .errors import MelaError as MelaError
from .inference.classifier import FewShotClassifier as FewShotClassifier
from .labeling.learn_labeler import LearnLabeler as LearnLabeler
from .labeling.merge_labeler import MergeLabeler as MergeLabeler

__version__: str
