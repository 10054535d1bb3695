"""Name the types of arrays that modules exchange, once each."""

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Features = npt.NDArray[np.float32]
# features of whatever precision they were given in
AnyFeatures = npt.NDArray[np.floating]
Images = npt.NDArray[np.uint8]
AnyArray = npt.NDArray[Any]
