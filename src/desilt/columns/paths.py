"""Columns of paths, which are bytes, for people."""

import pyarrow as pa
import pyarrow.compute as pc

from desilt.domain.entry import decode_path, shown_path


def shown(paths: pa.Array) -> pa.Array:
    """``paths`` as text: a byte that is no UTF-8, or a NUL, is told as ``\\xff``.

    A text that one of them begins with, it begins with as it is shown too.
    """
    try:
        texts = paths.cast(pa.string())
    except pa.ArrowInvalid:
        texts = pa.array([shown_path(decode_path(raw)) for raw in paths.to_pylist()], pa.string())
    return pc.replace_substring(texts, "\0", "\\x00")
