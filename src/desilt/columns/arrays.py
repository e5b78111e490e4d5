"""What arrays are called that are handed about by the column."""

import numpy as np
import numpy.typing as npt

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
Seconds = npt.NDArray[np.int64]
