"""The files below a directory, as a listing of keys.

A folder is held open while its files are looked at, each by its name there, which takes half of what whole paths do.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, groupby, islice
from operator import methodcaller

import pyarrow as pa

from desilt.errors import StorageFailed
from desilt.objects.local_failures import ABSENT, failure
from desilt.objects.local_folders import is_utf8
from desilt.objects.store import BATCH_ROWS, batches, may_hold, within

Row = tuple[str, int, int]
OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY
is_folder = methodcaller("endswith", "/")


def listing(root: str, uri: str, prefix: str, after: str, until: str) -> Iterator[pa.RecordBatch]:
    """Every file below ``root``, in order of keys: of those with ``prefix``, after ``after`` and before ``until``."""
    folder = prefix.rpartition("/")[0]
    return batches(chain.from_iterable(walk(root, uri, folder + "/" if folder else "", prefix, after, until)))


def walk(root: str, uri: str, folder: str, prefix: str, after: str, until: str) -> Iterator[Sequence[Row]]:
    """Key, size and microseconds since 1970 of every file below ``folder`` that a listing shows, some at a time."""
    with failures(uri, folder):
        try:
            descriptor = os.open(f"{root}/{folder}", OPEN_FOLDER)
        except ABSENT:
            return  # gone since its parent was read, or never there
    try:
        with failures(uri, folder):
            names = sorted(names_in(descriptor, folder, after, until))
        refuse_unless_utf8(uri, folder, names)
        whole = folder.startswith(prefix) and folder > after and not after.startswith(folder)
        for of_folders, some in groupby(names, is_folder):
            if of_folders:
                for key in map(folder.__add__, some):
                    if may_hold(key, prefix, after):
                        yield from walk(root, uri, key, prefix, after, until)
            else:
                shown = some if whole else (name for name in some if within(folder + name, prefix, after))
                while rows := list(islice(shown, BATCH_ROWS)):
                    yield looked_at(descriptor, uri, folder, rows)
    finally:
        os.close(descriptor)


def names_in(descriptor: int, folder: str, after: str, until: str) -> Iterator[str]:
    """The files of a folder, and, with a slash, its folders: as keys sort, by which `a-b` comes before `a/x`.

    What comes before ``after`` is passed over by its name alone, be it a file or a folder, and so is what comes later
    than ``until``: it may be nearly all.
    """
    last = after.removeprefix(folder) if after.startswith(folder) else ""
    with os.scandir(descriptor) as found:
        for entry in found:
            name = entry.name
            if last and not (name + "/" > last or last.startswith(name + "/")):
                continue
            if until and folder + name >= until:
                continue
            if entry.is_file(follow_symlinks=False):
                yield name
            elif entry.is_dir(follow_symlinks=False):
                yield name + "/"


def refuse_unless_utf8(uri: str, folder: str, names: Sequence[str]) -> None:
    if not "".join(names).isascii():
        for name in names:
            if not is_utf8(key := folder + name):
                raise StorageFailed(f"{uri} holds a file whose name is not UTF-8: {key!a}; rename it or move it away")


def looked_at(descriptor: int, uri: str, folder: str, names: Sequence[str]) -> list[Row]:
    """Those of some files that are there still."""
    rows: list[Row] = []
    for name in names:
        try:  # not `failures`, which would take longer than the call
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        except FileNotFoundError:
            continue  # gone since its folder was read
        except OSError as error:
            raise failure(uri, "listing", folder + name, error) from error
        rows.append((folder + name, status.st_size, status.st_mtime_ns // 1000))
    return rows


@contextmanager
def failures(uri: str, key: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise failure(uri, "listing", key, error) from error
