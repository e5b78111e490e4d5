"""Objects as files below one directory, a key being the path of its file.

What :meth:`LocalStore.put` has stored survives a power cut: the file, its name
and every directory above it are on the disk before the call returns. What was
removed may come back with a power cut, and what was moved be at its first key
again: that is garbage, found again by whoever removed it.

Only regular files are objects. Links are not followed by a listing.
"""

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import NoReturn

import pyarrow as pa

from desilt.clock import Clock
from desilt.domain.times import moment, nanoseconds
from desilt.errors import BadRequest, Conflict, NotFound, StorageFailed
from desilt.objects.local_failures import ABSENT, failure, vanishing
from desilt.objects.local_files import taken_away, write_all
from desilt.objects.local_folders import existing, make_folder, rename, sync_folder, sync_names, tidy, tries
from desilt.objects.local_listing import listing
from desilt.objects.removal import attempt, by_folder, check_pairs, failed
from desilt.objects.store import (
    CHUNK_BYTES,
    ObjectInfo,
    Outcome,
    Outcomes,
    Result,
    check_key,
    check_keys,
    check_prefix,
    check_range,
    nothing,
)

# Where a system has O_PATH, a folder that may be changed but not listed can be held open too.
HOLD_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW


class LocalStore:
    """Objects below ``root``; ``clock`` gives their times, else the file system does."""

    delete_batch = 1000
    moves_cheaply = True
    tagging = versions = parts = conditional = None

    def __init__(self, root: str | os.PathLike[str], *, clock: Clock | None = None, fsync: bool = True) -> None:
        self.root = os.path.abspath(root)  # links in the root stay as the user wrote them
        self.uri = Path(self.root).as_uri()
        self.clock, self.fsync = clock, fsync
        self._durable: set[str] = set()  # folders known to be on the disk, with all above them

    def put(self, key: str, body: Iterable[bytes]) -> int:
        size, _ = self._store(key, body, replace)
        return size

    def put_new(self, key: str, body: bytes) -> bool:
        return self._store(key, [body], link)[1]

    def _store(self, key: str, body: Iterable[bytes], place: Callable[[str, str], bool]) -> tuple[int, bool]:
        """Writes ``body`` aside and gives it its name by ``place``; its size, and whether it got the name."""
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
                placed = place(partial, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(partial)
            raise
        if self.fsync:
            # a folder that is missing was tidied away by whoever has removed the object already
            with self._failures("making durable", key), suppress(FileNotFoundError):
                sync_folder(folder)
        return size, placed

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

    def list(self, prefix: str = "", *, after: str = "", until: str = "") -> Iterator[pa.RecordBatch]:
        folder = check_prefix(prefix).rpartition("/")[0]
        self._inside(folder)
        self._check_root()
        return listing(self.root, self.uri, prefix, after, until)

    def delete_many(self, keys: Sequence[str], *, between: Callable[[], None] = nothing) -> Outcomes:
        check_keys(keys)
        between()
        outcomes: dict[int, Outcome] = {}
        for folder, places in by_folder(keys).items():
            outcomes |= zip(places, self._delete_in(folder, [keys[place] for place in places], between), strict=True)
        return self._tidied([outcomes[place] for place in range(len(keys))])

    def move_many(self, pairs: Sequence[tuple[str, str]], *, between: Callable[[], None] = nothing) -> Outcomes:
        check_pairs(pairs)
        outcomes: Outcomes = []
        for source, target in pairs:
            between()
            outcomes.append(attempt(self._move, source, target))
        return self._tidied(outcomes)

    def _delete_in(self, folder: str, keys: Sequence[str], between: Callable[[], None]) -> Outcomes:
        """Removes ``keys`` of one folder, which is looked at once and held open: a link put there now leads nowhere."""
        try:
            self._inside(folder)
            descriptor = os.open(f"{self.root}/{folder or '.'}", HOLD_FOLDER)  # the root itself may be a link
        except BadRequest as error:
            return [failed(key, error) for key in keys]
        except OSError as error:
            return [attempt(self._unseen, key, error) for key in keys]
        outcomes: Outcomes = []
        begins = len(folder) + bool(folder)
        try:
            names = [key[begins:] for key in keys]
            with closing(taken_away(names, descriptor, between)) as taken:  # before the folder is let go
                for key, name, gone in zip(keys, names, taken, strict=True):
                    removed = Outcome(key, Result.REMOVED)
                    outcomes.append(removed if gone else attempt(self._delete, key, name, descriptor))
            return outcomes
        finally:
            os.close(descriptor)

    def _delete(self, key: str, name: str, folder: int) -> None:
        """What did not go at once is asked for again, to tell why."""
        self._regular(key, name, folder)
        with self._failures("removing", key):
            os.unlink(name, dir_fd=folder)

    def _move(self, source: str, destination: str) -> None:
        here = self._path(source)
        links = self._regular(source, here).st_nlink
        there = self._path(destination)
        with self._failures("moving", source):
            try:
                rename(here, there, links=links, durable=self._durable)
            except FileNotFoundError:
                raise NotFound("object", source) from None

    def _regular(self, key: str, path: str, folder: int | None = None) -> os.stat_result:
        """The file of an object to be taken away; a link or a device is none, and is not to be passed over."""
        try:
            status = os.stat(path, dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            self._unseen(key, error)
        if S_ISDIR(status.st_mode):
            raise NotFound("object", key)
        if not S_ISREG(status.st_mode):
            raise Conflict(f"{key!r} in {self.uri} is a link or a device and no object; see who put it there")
        return status

    def _unseen(self, key: str, error: OSError) -> NoReturn:
        """Raises what it means that there was no looking at ``key``; without the root, nothing is known to be gone."""
        meant = failure(self.uri, "looking at", key, error)
        if isinstance(meant, NotFound):
            self._check_root()
        raise meant from error

    def _tidied(self, outcomes: Outcomes) -> Outcomes:
        """``outcomes``, with the folders left empty gone. One behind a link is a failure, and left alone."""
        done = {each.key.rpartition("/")[0] for each in outcomes if each.result is not Result.FAILED}
        for folder in sorted(done, reverse=True):  # the deepest first
            tidy(folder, root=self.root, durable=self._durable)
        return outcomes

    def _date(self, descriptor: int) -> None:
        """What is half written is dated as well: a listing sees it."""
        if self.clock is not None:
            stamp = nanoseconds(self.clock())
            os.utime(descriptor, ns=(stamp, stamp))

    def _check_root(self) -> None:
        if not os.path.isdir(self.root):
            raise StorageFailed(f"{self.uri} is not a directory; create it, or mount the disk it is on")

    def _path(self, key: str) -> str:
        self._inside(check_key(key).rpartition("/")[0])
        return f"{self.root}/{key}"

    def _inside(self, folder: str) -> None:
        """A link planted among the folders must not lead a read or a write out of the root."""
        path = self.root
        for name in folder.split("/") if folder else ():
            path = f"{path}/{name}"
            if os.path.islink(path):
                raise BadRequest(f"{folder!r} in {self.uri} is behind a link; only real directories hold objects")

    def _create(self, folder: str, path: str) -> int:
        """A new file, open for writing, in a folder that will still be there after a power cut."""
        below = existing(self.root)
        for _ in tries():
            try:
                if folder not in self._durable:
                    make_folder(folder)
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            except FileNotFoundError:
                self._durable.discard(folder)  # somebody tidied the empty folder away; make it again
                continue
            if folder not in self._durable:  # asked only now, when the file keeps the folder from being tidied away
                try:
                    if self.fsync:
                        sync_names(folder, below=below)
                except BaseException:
                    os.close(descriptor)
                    with suppress(OSError):
                        os.unlink(path)
                    raise
                self._durable.add(folder)
            return descriptor
        raise vanishing(folder)

    @contextmanager
    def _failures(self, doing: str, key: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise failure(self.uri, doing, key, error) from error


def replace(partial: str, target: str) -> bool:
    os.replace(partial, target)
    return True


def link(partial: str, target: str) -> bool:
    """Give a file its name unless another has it."""
    try:
        os.link(partial, target)
    except FileExistsError:
        return False
    finally:
        os.unlink(partial)
    return True
