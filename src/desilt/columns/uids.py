"""Names that carry the time they were made, by the column: twenty characters, the first seven of which say when."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from desilt.columns.arrays import Seconds
from desilt.columns.hashing import layout

DIGITS = np.full(256, -1, np.int8)
DIGITS[np.frombuffer(b"0123456789abcdefghijklmnopqrstuv", np.uint8)] = np.arange(32)
UID_CHARACTERS = 20
TIME_CHARACTERS = 7  # 35 bits, the first 32 of which are seconds


def seconds_of(names: pa.Array) -> Seconds:
    """The second in which each name was made; -1 for one that is no uid and carries no time."""
    data, offsets = layout(names)
    return _seconds(data, offsets[:-1], np.diff(offsets) == UID_CHARACTERS)


def last_seconds_of(addresses: pa.Array) -> Seconds:
    """The same of what the last so many characters of each address are."""
    data, offsets = layout(addresses)
    return _seconds(data, offsets[1:] - UID_CHARACTERS, np.diff(offsets) >= UID_CHARACTERS)


def _seconds(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], long_enough: npt.NDArray[np.bool_]) -> Seconds:
    """Character by character: a table of all of them would cost more than it tells."""
    rows = slice(None) if long_enough.all() else np.flatnonzero(long_enough)
    at = starts[rows]
    value, worst = np.zeros(len(at), np.int64), np.zeros(len(at), np.int8)
    for place in range(UID_CHARACTERS):
        digit = DIGITS[data[at + place]]
        np.minimum(worst, digit, out=worst)
        if place < TIME_CHARACTERS:
            value = value * 32 + digit
    seconds = np.full(len(starts), -1, np.int64)
    seconds[rows] = np.where(worst < 0, -1, value >> 3)
    return seconds
