from .errors import MelaError as MelaError
from .inference.classifier import FewShotClassifier as FewShotClassifier
from .labeling.labeler import LearnLabeler as LearnLabeler

__version__: str
