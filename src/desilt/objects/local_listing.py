"""The files below a directory, as a listing of keys."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from desilt.errors import StorageFailed
from desilt.objects.local_failures import ABSENT, failure
from desilt.objects.local_folders import is_utf8
from desilt.objects.store import may_hold, within


def walk(root: str, uri: str, folder: str, prefix: str, after: str, until: str = "") -> Iterator[tuple[str, int, int]]:
    """Key, size and microseconds since 1970 of every file below ``folder`` that a listing shows, in order of keys."""
    last = after.removeprefix(folder) if after.startswith(folder) else ""
    with failures(uri, folder):
        try:
            with os.scandir(f"{root}/{folder}") as found:
                # what comes before is passed over by its name alone, be it a file or a folder: it may be nearly all
                some = (entry for entry in found if (name := entry.name + "/") > last or last.startswith(name))
                # a folder sorts as its keys do, by its name and a slash: `a-b` comes before `a/x`
                entries = sorted(
                    [
                        (entry.name if file else entry.name + "/", entry)
                        for entry in (some if last else found)
                        if (file := entry.is_file(follow_symlinks=False)) or entry.is_dir(follow_symlinks=False)
                    ]
                )
        except ABSENT:
            return  # gone since its parent was read, or never there
    for name, entry in entries:
        key = folder + name
        if until and key >= until:
            return
        if not key.isascii() and not is_utf8(key):
            raise StorageFailed(f"{uri} holds a file whose name is not UTF-8: {key!a}; rename it or move it away")
        if name.endswith("/"):
            if may_hold(key, prefix, after):
                yield from walk(root, uri, key, prefix, after, until)
        elif within(key, prefix, after):
            try:  # not `failures`, which would take longer than the call
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # gone since its folder was read
            except OSError as error:
                raise failure(uri, "listing", key, error) from error
            yield key, status.st_size, status.st_mtime_ns // 1000


@contextmanager
def failures(uri: str, key: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise failure(uri, "listing", key, error) from error
