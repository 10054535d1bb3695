from .open import open_source as open_source
from .packing import pack_images as pack_images
from .source import ImageSource as ImageSource
