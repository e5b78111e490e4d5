"""Objects as files below one directory, a key being the path of its file.

What :meth:`LocalStore.put` has stored survives a power cut: the file, its name
and every directory above it are on the disk before the call returns.

Only regular files are objects. Links are not followed by a listing.
"""

import errno
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISREG

import pyarrow as pa

from desilt.clock import Clock
from desilt.domain.times import moment, nanoseconds
from desilt.errors import BadRequest, Conflict, DesiltError, NotFound, StorageFailed
from desilt.objects.store import (
    CHUNK_BYTES,
    ObjectInfo,
    batches,
    check_key,
    check_prefix,
    check_range,
    may_hold,
    within,
)

ABSENT = (FileNotFoundError, NotADirectoryError)
FULL = {errno.ENOSPC, errno.EDQUOT}
FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


class LocalStore:
    """Objects below ``root``; ``clock`` gives their times, else the file system does."""

    def __init__(self, root: str | os.PathLike[str], *, clock: Clock | None = None, fsync: bool = True) -> None:
        self.root = os.path.abspath(root)  # links in the root stay as the user wrote them
        self.uri = Path(self.root).as_uri()
        self.clock, self.fsync = clock, fsync
        self._real = os.path.realpath(self.root)
        self._durable: set[str] = set()  # folders known to be on the disk, with all above them

    def put(self, key: str, body: Iterable[bytes]) -> int:
        target = self._path(key)
        folder = os.path.dirname(target)
        # The temporary file has an ordinary name that a listing shows. Nothing else would
        # ever find what a crash leaves here; as an object nobody points to, it is garbage
        # like any other, and goes when it is old enough.
        partial = f"{folder}/{secrets.token_hex(8)}.partial"
        with self._failures("writing", key):
            descriptor = self._create(folder, partial)
            self._date(descriptor)
        try:
            size = 0
            try:
                for chunk in body:  # an error of the body itself is the caller's, and passes as it is
                    with self._failures("writing", key):
                        write_all(descriptor, chunk)
                        self._date(descriptor)
                    size += len(chunk)
                with self._failures("writing", key):
                    self._date(descriptor)
                    if self.fsync:
                        os.fsync(descriptor)
            finally:
                os.close(descriptor)
            with self._failures("writing", key):
                os.replace(partial, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(partial)
            raise
        if self.fsync:
            with self._failures("making durable", key):
                sync_folder(folder)
        return size

    def get(self, key: str, *, start: int = 0, length: int | None = None) -> bytes:
        return b"".join(self.stream(key, start=start, length=length))

    def stream(self, key: str, *, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        check_range(start, length)
        with self._failures("reading", key):
            descriptor = os.open(self._path(key), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            with self._failures("reading", key):
                status = os.fstat(descriptor)
            if not S_ISREG(status.st_mode):
                raise NotFound("object", key)
            end = status.st_size if length is None else start + length
            while start < end:
                with self._failures("reading", key):
                    chunk = os.pread(descriptor, min(CHUNK_BYTES, end - start), start)
                if not chunk:
                    return
                yield chunk
                start += len(chunk)
        finally:
            os.close(descriptor)

    def head(self, key: str) -> ObjectInfo:
        with self._failures("looking at", key):
            status = os.lstat(self._path(key))
        if not S_ISREG(status.st_mode):
            raise NotFound("object", key)
        return ObjectInfo(key, status.st_size, moment(status.st_mtime_ns // 1000))

    def copy(self, source: str, destination: str) -> None:
        self.put(destination, self.stream(source))

    def folders(self, folder: str = "") -> Sequence[str]:
        check_prefix(folder)
        with self._failures("listing", folder):
            try:
                with os.scandir(f"{self.root}/{folder}") as found:
                    return sorted(f"{folder}{each.name}/" for each in found if each.is_dir(follow_symlinks=False))
            except ABSENT:
                return []

    def list(self, prefix: str = "", *, after: str = "") -> Iterator[pa.RecordBatch]:
        folder = check_prefix(prefix).rpartition("/")[0]
        self._inside(folder)
        if not os.path.isdir(self.root):
            raise StorageFailed(f"{self.uri} is not a directory; create it, or mount the disk it is on")
        return batches(self._walk(folder + "/" if folder else "", prefix, after))

    def _walk(self, folder: str, prefix: str, after: str) -> Iterator[tuple[str, int, int]]:
        with self._failures("listing", folder):
            try:
                with os.scandir(f"{self.root}/{folder}") as found:
                    # a folder sorts as its keys do, by its name and a slash: `a-b` comes before `a/x`
                    entries = sorted(
                        (entry.name + "/" * entry.is_dir(follow_symlinks=False), entry)
                        for entry in found
                        if entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)
                    )
            except ABSENT:
                return  # gone since its parent was read, or never there
        for name, entry in entries:
            key = folder + name
            if not key.isascii() and not is_utf8(key):
                raise StorageFailed(
                    f"{self.uri} holds a file whose name is not UTF-8: {key!a}; rename it or move it away"
                )
            if name.endswith("/"):
                if may_hold(key, prefix, after):
                    yield from self._walk(key, prefix, after)
            elif within(key, prefix, after):
                with self._failures("listing", key):
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # gone since its folder was read
                yield key, status.st_size, status.st_mtime_ns // 1000

    def _date(self, descriptor: int) -> None:
        """What is half written is dated as well: a listing sees it."""
        if self.clock is not None:
            stamp = nanoseconds(self.clock())
            os.utime(descriptor, ns=(stamp, stamp))

    def _path(self, key: str) -> str:
        self._inside(check_key(key).rpartition("/")[0])
        return f"{self.root}/{key}"

    def _inside(self, folder: str) -> None:
        """A link planted among the folders must not lead a read or a write out of the root."""
        if folder and os.path.realpath(f"{self._real}/{folder}") != f"{self._real}/{folder}":
            raise BadRequest(f"{folder!r} in {self.uri} is behind a link; only real directories hold objects")

    def _create(self, folder: str, path: str) -> int:
        """A new file, open for writing, in a folder that will still be there after a power cut."""
        for _ in range(10):
            try:
                if folder not in self._durable:
                    make_folder(folder, below=self.root, fsync=self.fsync)
                    self._durable.add(folder)
                return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            except FileNotFoundError:
                self._durable.discard(folder)  # somebody tidied the empty folder away; make it again
        raise StorageFailed(f"{folder} vanishes as soon as it is made; see who removes it, and try again")

    @contextmanager
    def _failures(self, doing: str, key: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._failure(doing, key, error) from error

    def _failure(self, doing: str, key: str, error: OSError) -> DesiltError:
        where = f"{doing} {key!r} in {self.uri}"
        if doing != "writing" and (isinstance(error, ABSENT) or error.errno == errno.ELOOP):
            return NotFound("object", key)
        if isinstance(error, (FileExistsError, IsADirectoryError, NotADirectoryError)):
            return Conflict(f"{where} failed: on a disk a key cannot be both an object and a folder; use another key")
        if error.errno == errno.ENAMETOOLONG:
            return BadRequest(f"{where} failed: the name is too long for this file system; use a shorter key")
        if error.errno in FULL:
            return StorageFailed(f"{where} failed: the disk is full; free some space and try again, nothing was stored")
        if error.errno in FORBIDDEN:
            return StorageFailed(f"{where} failed: {error.strerror}; check the owner and mode of the directory")
        return StorageFailed(f"{where} failed: {error.strerror}; check the disk and try again")


def write_all(descriptor: int, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def make_folder(folder: str, *, below: str, fsync: bool) -> None:
    """Makes ``folder``, and every name from ``below`` down to it durable, whoever created it."""
    while not os.path.isdir(below):
        below = os.path.dirname(below)
    os.makedirs(folder, exist_ok=True)
    while fsync and below != folder:
        sync_folder(below)
        below = os.path.join(below, os.path.relpath(folder, below).split("/")[0])


def sync_folder(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
