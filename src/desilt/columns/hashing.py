"""A 64-bit hash of addresses, by the column: what held sets and inventories are sorted and compared by.

It is written into files that later versions read, so it never changes. Two
addresses that share a hash make a collector keep one too many, never remove one.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]

WORD = 8
AT_ONCE = 32_768  # rows: what is worked on stays in the processor's cache
SEED = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)


def address_hash(addresses: pa.Array | pa.ChunkedArray) -> Hashes:
    """The hash of each text: its length and its bytes in words of eight, each mixed in turn."""
    if isinstance(addresses, pa.ChunkedArray):  # which may be more than one array can hold
        return np.concatenate([np.zeros(0, np.uint64), *map(address_hash, addresses.chunks)])
    data, offsets = layout(addresses)
    lengths = np.diff(offsets)
    hashes = np.empty(len(lengths), np.uint64)
    for first in range(0, len(lengths), AT_ONCE):
        here = lengths[first : first + AT_ONCE]
        for length in np.flatnonzero(np.bincount(here)).tolist():
            rows = first + np.flatnonzero(here == length)
            hashes[rows] = _hash_equal(data, offsets[rows], length)
    return hashes


def bucket_of(hashes: Hashes, buckets: int) -> npt.NDArray[np.int64]:
    """Which of ``buckets`` (a power of two) each hash falls into by its top bits: runs of the sorted hashes."""
    bits = buckets.bit_length() - 1
    if 1 << bits != buckets:
        raise ValueError(f"{buckets} buckets: it must be a power of two")
    return (hashes >> np.uint64(64 - bits)).astype(np.int64) if bits else np.zeros(len(hashes), np.int64)


def _hash_equal(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], length: int) -> Hashes:
    """The hashes of texts that are all ``length`` bytes long; the last word may overlap the one before."""
    hashes = np.full(len(starts), SEED ^ np.uint64(length), np.uint64)
    if length < WORD:
        words = np.zeros((len(starts), WORD), np.uint8)
        for byte in range(length):
            words[:, byte] = data[starts + byte]
        return _mix(hashes, words.view("<u8")[:, 0])
    anywhere = np.ndarray((len(data) - WORD + 1,), "<u8", data, strides=(1,))
    for at in [*range(0, length - WORD, WORD), length - WORD]:
        _mix(hashes, anywhere[starts + at])
    return hashes


def _mix(hashes: Hashes, words: Hashes) -> Hashes:
    """``words`` stirred into ``hashes``, in place: fresh arrays would cost more than the sums."""
    hashes ^= words
    for shift, factor in ((30, FIRST), (27, SECOND)):
        np.right_shift(hashes, np.uint64(shift), out=words)
        hashes ^= words
        hashes *= factor
    np.right_shift(hashes, np.uint64(31), out=words)
    hashes ^= words
    return hashes


def layout(texts: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The bytes of all texts, and where in them each begins and the last ends."""
    if texts.null_count:
        raise ValueError("an address is never null")
    texts = texts.cast(pa.large_binary())
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    raw = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return raw, ends
