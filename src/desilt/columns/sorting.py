"""The order of texts, found by sorting numbers where that is less work.

Addresses are of one length mostly, and alike in most of their bytes. Those in which they differ, eight to a
number, are sorted in less than half of the time in which whole texts are compared.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.arrays import Numbers
from desilt.columns.hashing import Hashes, layout

AT_ONCE = 1 << 16  # rows that are compared with the first


def in_order(texts: pa.Array) -> Numbers:
    """The places of ``texts``, none of them missing, in the order of their bytes; of equal ones as they lie."""
    numbers = _numbers(texts)
    if numbers is None:
        found: Numbers = pc.sort_indices(texts).to_numpy().astype(np.int64)
        return found
    first, *others = [*numbers, np.arange(len(texts), dtype=np.uint64)]
    order: Numbers = np.argsort(first)
    new = first[order][1:] != first[order][:-1]  # than the one before
    for one in others:
        if new.all():
            break
        tied = np.flatnonzero(~(np.append(True, new) & np.append(new, True)))
        group = np.append(0, np.cumsum(new))[tied]
        order[tied] = order[tied][np.lexsort((one[order[tied]], group))]
        new |= one[order][1:] != one[order][:-1]
    return order


def _numbers(texts: pa.Array) -> list[Hashes] | None:
    """Numbers that have the order of ``texts``, the first ones first; None where these differ in length."""
    data, offsets = layout(texts)
    length = int(offsets[1] - offsets[0]) if len(texts) else 0
    if (np.diff(offsets) != length).any():
        return None
    rows = data[offsets[0] : offsets[-1]].reshape(len(texts), length)
    differ = np.zeros(length, np.bool_)
    for at in range(0, len(rows), AT_ONCE):
        differ |= (rows[at : at + AT_ONCE] != rows[0]).any(axis=0)
    places = np.flatnonzero(differ)
    padded = np.zeros((len(rows), -(-len(places) // 8) * 8), np.uint8)
    padded[:, : len(places)] = rows[:, places]
    return list(np.ascontiguousarray(padded.view(">u8").T).astype(np.uint64))
