"""One file: written to, and taken away."""

import os
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, repeat
from stat import S_ISREG

FIRST = 64  # files, by which it is seen how long the disk takes
AT_ONCE, EACH = 16, 16  # threads, and files that each takes away one after the other
TOGETHER = AT_ONCE * EACH  # between two looks at whether to go on
WAITS = 2.0  # times as long as it is at work: less, and threads would only be in each other's way


def taken_away(names: Sequence[str], folder: int, between: Callable[[], None]) -> Generator[bool, None, None]:
    """Of each of some ``names``, in turn: whether there was a file, no link and no device, and is no longer.

    A disk may let each file wait, and many at once hardly longer: where the first ones are waited for more than worked
    on, others are asked for together. Nothing is on its way any more once this is closed.
    """
    began, worked = time.monotonic(), time.thread_time()
    for name in names[:FIRST]:
        between()
        yield _taken(name, folder)
    rest = names[FIRST:]
    if rest and time.monotonic() - began > WAITS * (time.thread_time() - worked):
        with ThreadPoolExecutor(AT_ONCE) as threads:
            for at in range(0, len(rest), TOGETHER):
                between()
                some = rest[at : at + TOGETHER]
                slices = [some[first : first + EACH] for first in range(0, len(some), EACH)]
                yield from chain.from_iterable(threads.map(_taken_of, slices, repeat(folder)))
        return
    for name in rest:
        between()
        yield _taken(name, folder)


def _taken_of(names: Sequence[str], folder: int) -> list[bool]:
    return [_taken(name, folder) for name in names]


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
