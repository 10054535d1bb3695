from .backbones import Backbone as Backbone
from .backbones import build_backbone as build_backbone
from .features import extract_features as extract_features
from .features import feature_batches as feature_batches
from .files import configure as configure
from .files import load_model as load_model
from .files import save_model as save_model
