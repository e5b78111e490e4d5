"""The folders that files are in: made, made durable, and tidied away when they are empty.

A folder may vanish as soon as it is made, since whoever removes the last file
of one removes it too. Only a file keeps it: what makes a folder tries again.
"""

import os
import random
import time
from collections.abc import Iterator
from contextlib import suppress
from stat import S_ISDIR

from desilt.objects.local_failures import vanishing

TRIES = 1000  # a folder would have to be tidied away so often between being made and being used
AT_ONCE = 10  # tries without a pause
PAUSE_SECONDS = 0.02  # at most: on a busy machine, those who tidy and those who make would keep step


def tries() -> Iterator[None]:
    """Up to :data:`TRIES` turns, later ones after a moment."""
    for number in range(TRIES):
        if number >= AT_ONCE:
            time.sleep(random.uniform(0, PAUSE_SECONDS))
        yield


def make_folder(folder: str) -> None:
    """Makes ``folder`` and those above; FileNotFoundError if one of them is tidied away meanwhile."""
    try:
        os.makedirs(folder, exist_ok=True)
    except FileExistsError:
        if not S_ISDIR(os.stat(folder).st_mode):  # else it vanished, and was made again by another
            raise


def existing(folder: str) -> str:
    """``folder``, or the nearest above it that is there."""
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder


def sync_names(folder: str, *, below: str) -> None:
    """Makes every name from ``below`` down to ``folder`` durable, whoever created it."""
    while below != folder:
        sync_folder(below)
        below = os.path.join(below, os.path.relpath(folder, below).split("/")[0])


def sync_folder(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename(here: str, there: str, *, links: int, durable: set[str]) -> None:
    """Moves a file, making the folder it goes to; FileNotFoundError if there is no file. ``links``: names it has."""
    folder = os.path.dirname(there)
    for _ in tries():
        try:
            os.rename(here, there)
            break
        except FileNotFoundError:
            os.lstat(here)  # it is there: so it is the folder that is missing
            durable.discard(folder)
            with suppress(FileNotFoundError):
                make_folder(folder)
    else:
        raise vanishing(folder)
    if links > 1 and os.path.lexists(here) and os.path.samestat(os.lstat(here), os.lstat(there)):
        os.unlink(here)  # to rename one name of a file to another of its names does nothing


def tidy(folder: str, *, root: str, durable: set[str]) -> None:
    """Removes ``folder``, a key, if it is empty, and then those above it, but never ``root``."""
    while folder:
        path = f"{root}/{folder}"
        durable.discard(path)  # before it goes: whoever makes it again has to make it durable
        try:
            os.rmdir(path)
        except FileNotFoundError:
            pass  # another was faster; the one above may be empty all the same
        except OSError:
            return  # not empty, or not ours to remove
        folder = folder.rpartition("/")[0]


def is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
