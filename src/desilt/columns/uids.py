"""Names that carry the time they were made, by the column: twenty characters, the first seven of which say when."""

import numpy as np
import pyarrow as pa
from numpy.lib.stride_tricks import sliding_window_view

from desilt.columns.hashing import layout
from desilt.columns.layout import Seconds

DIGITS = np.full(256, -1, np.int8)
DIGITS[np.frombuffer(b"0123456789abcdefghijklmnopqrstuv", np.uint8)] = np.arange(32)
UID_CHARACTERS = 20
TIME_CHARACTERS = 7  # 35 bits, the first 32 of which are seconds


def seconds_of(names: pa.Array) -> Seconds:
    """The second in which each name was made; -1 for one that is no uid and carries no time."""
    seconds = np.full(len(names), -1, np.int64)
    data, offsets = layout(names)
    rows = np.flatnonzero(np.diff(offsets) == UID_CHARACTERS)
    if len(rows):
        digits = DIGITS[sliding_window_view(data, UID_CHARACTERS)[offsets[rows]]]
        uids = (digits >= 0).all(axis=1)
        value = np.zeros(np.count_nonzero(uids), np.int64)
        for column in range(TIME_CHARACTERS):
            value = value * 32 + digits[uids, column]
        seconds[rows[uids]] = value >> 3
    return seconds
