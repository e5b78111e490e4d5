"""One file: written to, and taken away."""

import os
from stat import S_ISREG


def took_away(name: str, folder: int) -> bool:
    """Whether there was a file of that ``name``, no link and no device, and is no longer."""
    try:
        if S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder)  # no fsync: an object that a power cut brings back is only garbage again
            return True
    except OSError:
        pass
    return False


def write_all(descriptor: int, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
