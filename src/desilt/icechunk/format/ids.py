"""Ids as bytes and as names: base 32 in the digits and letters of Crockford, the last bits zero.

Twelve bytes make twenty letters and name a snapshot, a manifest, a log or a chunk; eight make thirteen and
name a node. The library reads small letters and I for 1 too; what it writes is only ever what is taken here.
"""

import base64
import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from desilt.sstable.varint import Malformed

ID_BYTES = 12
NODE_BYTES = 8
LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
NAME = "[0-9A-HJKMNP-TV-Z]{19}[0G]"
ROOT = "1CECHNKREP0F1RSTCMT0"  # the first snapshot of every repository

_PLAIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_THERE = str.maketrans(_PLAIN, LETTERS)
_BACK = str.maketrans(LETTERS, _PLAIN)
_CODES = np.frombuffer(LETTERS.encode(), np.uint8)


def name_of(raw: bytes) -> str:
    return base64.b32encode(raw).decode().rstrip("=").translate(_THERE)


def bytes_of(name: str) -> bytes:
    """Of an id of twelve bytes."""
    if not re.fullmatch(NAME, name):
        raise Malformed(f"{name[:40]!r} is not an id")
    return base64.b32decode(name.translate(_BACK) + "====")


def names_of(ids: pa.FixedSizeBinaryArray) -> pa.StringArray:
    """The names of many ids; none may be null."""
    width, count = ids.type.byte_width, len(ids)
    raw: npt.NDArray[np.uint8] = np.frombuffer(ids.buffers()[1] or b"", np.uint8)
    raw = raw[ids.offset * width : (ids.offset + count) * width].reshape(count, width)
    fives = -(-width // 5)
    padded = np.zeros((count, fives * 5), np.uint8)
    padded[:, :width] = raw
    letters = -(-width * 8 // 5)
    numbers = np.zeros((count, fives), np.uint64)
    for at in range(5):
        numbers |= padded[:, at::5].astype(np.uint64) << np.uint64(8 * (4 - at))
    digits = numbers[:, :, None] >> np.arange(35, -1, -5, dtype=np.uint64) & np.uint64(31)
    text = _CODES[digits.reshape(count, fives * 8)[:, :letters].astype(np.intp)]
    offsets = np.arange(count + 1, dtype=np.int32) * letters
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(text)))
