"""One file: written to, and taken away."""

import os
from collections.abc import Callable, Iterable, Iterator
from stat import S_ISREG


def taken_away(names: Iterable[str], folder: int, between: Callable[[], None]) -> Iterator[bool]:
    """Of each of some ``names``, in turn: whether there was a file, no link and no device, and is no longer."""
    look, unlink = os.stat, os.unlink
    for name in names:
        between()
        try:
            gone = S_ISREG(look(name, dir_fd=folder, follow_symlinks=False).st_mode)
            if gone:
                unlink(name, dir_fd=folder)  # no fsync: an object that a power cut brings back is only garbage again
        except OSError:
            gone = False
        yield gone


def write_all(descriptor: int, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
