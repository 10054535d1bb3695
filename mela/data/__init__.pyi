from .augmentation import Augmentation as Augmentation
from .episodes import Episodes as Episodes
from .episodes import FlatTasks as FlatTasks
from .images import ImageLoader as ImageLoader
from .sampling import draw_split as draw_split
from .sampling import draw_with_replacement as draw_with_replacement
from .sampling import draw_without_replacement as draw_without_replacement
from .sampling import given_split as given_split
