"""Where virtual chunks are: texts in a manifest, plain or compressed with a dictionary that all of them share."""

import numpy as np
import pyarrow as pa

from desilt.icechunk.format.strides import Ints, Strides
from desilt.sstable.varint import Malformed

LONGEST = 1024  # bytes of a location that is compressed, as the library has it


def plain(strides: Strides, starts: Ints, sizes: Ints) -> pa.StringArray:
    """One text for each place; one that many name is read once."""
    starts, first, which = np.unique(starts, return_index=True, return_inverse=True)
    sizes = sizes[first]
    strides.check(starts + sizes, 1)
    if strides.bytes[starts + sizes].any():
        raise Malformed("a text does not end where it should")
    data = strides.bytes[strides.spread(starts, sizes, 1)]
    offsets = np.append(0, np.cumsum(sizes)).astype(np.int32)
    texts = pa.StringArray.from_buffers(len(starts), pa.py_buffer(offsets), pa.py_buffer(data))
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raise Malformed("a text is not UTF-8") from None
    return texts.take(pa.array(which.ravel()))


def compressed(strides: Strides, starts: Ints, sizes: Ints, dictionary: bytes | None) -> pa.StringArray:
    """The same of texts that are compressed, each for itself."""
    import zstandard  # takes a moment to load, and few manifests have such

    if dictionary is None:
        raise Malformed("its locations are compressed, and the dictionary is missing")
    data = strides.bytes.tobytes()
    try:
        known = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_FULLDICT)
        opener = zstandard.ZstdDecompressor(dict_data=known)
        texts = [
            opener.decompress(data[start : start + size], max_output_size=LONGEST)
            for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
        ]
        return pa.array([text.decode() for text in texts], pa.string())
    except (zstandard.ZstdError, UnicodeDecodeError) as fault:
        raise Malformed(f"a location cannot be decompressed ({fault})") from None
