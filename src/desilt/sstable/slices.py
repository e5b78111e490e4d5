"""Many pieces of one buffer as an Arrow column, cut in C++.

A binary array's offsets only ever grow. Pieces that follow one another in the
buffer, without overlapping, are therefore every second element of an array
over that buffer, the gaps between them being the others; taking the even
elements copies the pieces out.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.sstable.varint import Bytes, Ints, Malformed

MAX_BYTES = 2**31 - 1  # Arrow's binary columns have 32-bit offsets
NOTHING = pa.scalar(b"", pa.binary())  # a value without its type costs Arrow a look at what kinds of values there are


def cut(data: Bytes, starts: Ints, ends: Ints, *, order: Ints | None = None) -> pa.Array:
    """The pieces ``starts[i]:ends[i]``, which must lie in rising order; then taken in ``order`` if given."""
    n = len(starts)
    if len(data) > MAX_BYTES:
        raise Malformed("it is too large to be decoded at once")
    offsets = np.empty(2 * n + 1, np.int32)
    offsets[0 : 2 * n : 2] = starts
    offsets[1 : 2 * n : 2] = ends
    offsets[2 * n] = ends[-1] if n else 0
    pieces = pa.Array.from_buffers(pa.binary(), 2 * n, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    wanted = np.arange(0, 2 * n, 2) if order is None else 2 * order
    return pieces.take(pa.array(wanted))


def joined(*columns: pa.Array | pa.Scalar) -> pa.Array:
    """The values of some columns, one after the other, row by row."""
    return pc.binary_join_element_wise(*columns, NOTHING)


def layout(column: pa.Array) -> tuple[Bytes, Ints]:
    """A binary column's bytes and its ``n + 1`` offsets into them, whatever slice of a larger one it is."""
    _, offset_buffer, data = column.buffers()
    first = column.offset
    if len(column) == 0 or offset_buffer is None:
        return np.empty(0, np.uint8), np.zeros(len(column) + 1, np.int64)
    offsets = np.frombuffer(offset_buffer, np.int32)[first : first + len(column) + 1].astype(np.int64)
    bytes_ = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    return bytes_[offsets[0] : offsets[-1]], offsets - offsets[0]


def from_layout(data: Bytes, offsets: Ints) -> pa.Array:
    """The binary column with these bytes and these ``n + 1`` offsets."""
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)
