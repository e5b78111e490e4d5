"""One file: written to, and taken away."""

import os
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from stat import S_ISREG

AT_ONCE = 16  # files
TOGETHER = 64  # between two looks at whether to go on
QUICK = 0.000_2  # seconds to a file, in which threads would only be in each other's way


def taken_away(names: Sequence[str], folder: int, between: Callable[[], None]) -> Generator[bool, None, None]:
    """Of each of some ``names``, in turn: whether there was a file, no link and no device, and is no longer.

    A disk that has other things to write lets each file wait, and many at once hardly longer: where the first take
    long, others are asked for together. Nothing is on its way any more once this is closed.
    """
    began = time.monotonic()
    for name in names[:TOGETHER]:
        between()
        yield _taken(name, folder)
    rest = names[TOGETHER:]
    if rest and time.monotonic() - began > QUICK * TOGETHER:
        with ThreadPoolExecutor(AT_ONCE) as threads:
            for at in range(0, len(rest), TOGETHER):
                between()
                yield from threads.map(_taken, rest[at : at + TOGETHER], repeat(folder))
        return
    for name in rest:
        between()
        yield _taken(name, folder)


def _taken(name: str, folder: int) -> bool:
    try:
        gone = S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        if gone:
            os.unlink(name, dir_fd=folder)  # no fsync: an object that a power cut brings back is only garbage again
    except OSError:
        return False
    return gone


def write_all(descriptor: int, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
