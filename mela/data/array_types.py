"""Name the types of arrays that modules exchange, once each."""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Features = npt.NDArray[np.float32]
Images = npt.NDArray[np.uint8]
