"""Memory that arrays of one bucket had is used again for those of the next.

What is given back to the system comes back as pages that it has to clear: where arrays of megabytes are made and
dropped for every bucket, that was a sixth of a mark. So the C library is told to keep some, once in a process.
"""

import ctypes
from functools import cache

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # as glibc's malloc.h has them
KEPT = 128 << 20  # bytes, free at the end of the heap
FROM_THE_HEAP = 32 << 20  # bytes, of one array; the most that glibc takes


@cache
def kept_for_the_next() -> None:
    """Ask for it, where there is a glibc; elsewhere nothing changes."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    mallopt(M_TRIM_THRESHOLD, KEPT)
    mallopt(M_MMAP_THRESHOLD, FROM_THE_HEAP)
