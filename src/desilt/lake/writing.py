"""Writes to a branch: each uploads first, then stages in one transaction.

What fails or is killed in between leaves an object that nothing points to, and
nothing else; the uncommitted collection takes those. No write removes bytes.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from desilt.clock import Clock
from desilt.domain.address import repository_prefix
from desilt.domain.entry import AddressType, Entry, encode_path
from desilt.domain.times import nanoseconds
from desilt.errors import BadRequest, BranchMoved, NotFound
from desilt.lake import commits, refs, staging
from desilt.lake.database import Database, Transaction
from desilt.lake.partitions import Partitions, new_uid
from desilt.lake.ranges import Ranges
from desilt.lake.refs import Branch
from desilt.objects.store import ObjectStore
from desilt.sstable.values import decode_entry, encode_entry

T = TypeVar("T")
TRIES = 10


class Writer:
    """Stages changes on the branches of one repository."""

    def __init__(
        self,
        database: Database,
        store: ObjectStore,
        repository: str,
        ranges: Ranges,
        partitions: Partitions,
        clock: Clock,
    ) -> None:
        self._database, self._store, self._repository, self._ranges = database, store, repository, ranges
        self._partitions, self._clock = partitions, clock
        self._prefix = repository_prefix(repository)

    def put(
        self, branch: str, path: str, body: Iterable[bytes], *, content_type: str, metadata: Mapping[str, str]
    ) -> Entry:
        """Upload ``body`` as it streams, then stage it at ``path``."""
        key = encode_path(path)
        metered = Metered(body)
        seen, address = self._upload(branch, lambda key: self._store.put(key, metered))
        entry = Entry(
            path, address, metered.size, metered.md5.hexdigest(), self._now(), dict(metadata), content_type=content_type
        )
        self._stage(branch, seen, key, entry)
        return entry

    def copy_in(self, source: Entry, branch: str, path: str) -> Entry:
        """Copy an object that another branch or commit holds: the bytes too, inside the store."""
        key = encode_path(path)
        if source.address_type is not AddressType.RELATIVE:
            raise BadRequest(f"{source.path!r} points outside the lake; copy the file itself and put it")
        seen, address = self._upload(branch, lambda key: self._store.copy(self._prefix + source.address, key))
        entry = replace(source, path=path, address=address, modified_ns=self._now())
        self._stage(branch, seen, key, entry)
        return entry

    def copy(self, branch: str, source: str, destination: str, *, move: bool = False) -> Entry:
        """A second entry on the same object, in the same branch; with ``move``, the first one goes."""
        key, target = encode_path(source), encode_path(destination)

        def stage(tx: Transaction, on: Branch, values: Sequence[bytes]) -> Entry:
            entry = replace(decode_entry(key, values[0]), path=destination, modified_ns=self._now())
            if move:
                staging.stage(tx, on.token, key, None)
            staging.stage(tx, on.token, target, encode_entry(entry))
            return entry

        return self._amend(branch, [key], stage)

    def remove(self, branch: str, paths: Iterable[str]) -> None:
        """``paths``, sorted, are gone from the branch, all or none; what commits hold of them stays."""
        keys = [encode_path(path) for path in paths]

        def stage(tx: Transaction, on: Branch, _: Sequence[bytes]) -> None:
            for key in keys:
                staging.stage(tx, on.token, key, None)

        self._amend(branch, keys, stage)

    def reset(self, branch: str, *, path: str | None = None, prefix: str | None = None) -> int:
        """Forget what is staged: all of it, below ``prefix``, or at ``path``; how many changes that were.

        A commit that is under way loses the race and says so: its sealed areas are gone.
        """
        key = encode_path(path) if path is not None else None
        with self._database.write() as tx:
            on = refs.branch(tx, self._repository, branch, lock=tx.for_update)
            if key is None and prefix is None:
                forgotten = sum(staging.drop(tx, token) for token in on.tokens)
                refs.restart(tx, on, token=new_uid(self._clock()))
                return forgotten
            if on.sealed:
                token = new_uid(self._clock())
                staging.gather(tx, on.tokens, into=token)
                refs.restart(tx, on, token=token)
                on = replace(on, token=token, sealed=())
            if key is not None:
                forgotten = staging.unstage(tx, on.token, key)
                if not forgotten:
                    raise NotFound("staged change at", str(path), f"see `desilt lake diff` on {branch!r}")
                return forgotten
            return staging.drop(tx, on.token, str(prefix).encode())

    def _upload(self, branch: str, upload: Callable[[str], object]) -> tuple[Branch, str]:
        """An object at a new address of ``branch``, held by nothing yet."""
        with self._database.read() as tx:
            seen = refs.branch(tx, self._repository, branch)
        address = self._partitions.new_address(seen.uid)
        upload(self._prefix + address)
        return seen, address

    def _stage(self, branch: str, seen: Branch, key: bytes, entry: Entry) -> None:
        with self._database.write() as tx:
            now = refs.branch(tx, self._repository, branch, lock=tx.for_share)
            if now.uid != seen.uid:
                raise BranchMoved(branch, "uploading: it was deleted and made anew")
            staging.stage(tx, now.token, key, encode_entry(entry))

    def _amend(
        self, branch: str, keys: Sequence[bytes], stage: Callable[[Transaction, Branch, Sequence[bytes]], T]
    ) -> T:
        """Run ``stage`` in a transaction in which ``keys``, sorted, surely have the values it is given.

        Committed values are read before, outside of it: a slow store must not hold a lock.
        """
        for _ in range(TRIES):
            with self._database.read() as tx:
                seen = refs.branch(tx, self._repository, branch)
                staged = [staging.find(tx, seen.tokens, key) for key in keys]
                metarange = commits.fetching(tx, self._repository)(seen.head).metarange
            committed = self._ranges.get_many(metarange, keys)
            values = [upper[1] if upper[0] else lower for upper, lower in zip(staged, committed, strict=True)]
            there = [value for value in values if value is not None]
            if len(there) < len(keys):
                missing = keys[values.index(None)].decode()
                raise NotFound("object", missing, f"see `desilt lake ls` on {branch!r}")
            with self._database.write() as tx:
                now = refs.branch(tx, self._repository, branch, lock=tx.for_update)
                if now.head == seen.head and [staging.find(tx, now.tokens, key) for key in keys] == staged:
                    return stage(tx, now, there)
        raise BranchMoved(branch, "changing it")

    def _now(self) -> int:
        return nanoseconds(self._clock())


class Metered:
    """Bytes on their way through, measured: size and MD5 (what lakeFS calls an etag)."""

    def __init__(self, body: Iterable[bytes]) -> None:
        self._body = body
        self.size = 0
        self.md5 = hashlib.md5(usedforsecurity=False)

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._body:
            self.size += len(chunk)
            self.md5.update(chunk)
            yield chunk
