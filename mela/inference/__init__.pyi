from .classifier import FewShotClassifier as FewShotClassifier
from .embedding import Embedding as Embedding
from .export import Export as Export
from .provenance import Provenance as Provenance
