"""Writes to a branch: each uploads first, then stages in one transaction.

That transaction checks that the upload's ticket still holds and that no run has
condemned the address: a slow upload lives, or fails loudly. What fails or is
killed in between leaves an object that nothing points to, and nothing else. No
write removes bytes.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TypeVar

from desilt.domain.entry import AddressType, Entry, decode_path, encode_path, encode_prefix, new_path
from desilt.domain.times import nanoseconds
from desilt.errors import BadRequest, BranchMoved, NotFound
from desilt.lake import commits, fresh, journal, refs, repositories, staging
from desilt.lake.core import Core
from desilt.lake.dropping import By, Dropping, dropping
from desilt.lake.moves import settle
from desilt.lake.partitions import Partitions, new_uid
from desilt.lake.refs import LakeBranch
from desilt.lake.upload import About, Upload
from desilt.lake.vanished import telling_gone
from desilt.records import removals as tombstones
from desilt.records.database import Transaction
from desilt.sstable.values import decode_entry, encode_entry

T = TypeVar("T")
TRIES = 10


class Writer:
    """Stages changes on the branches of one repository."""

    def __init__(self, core: Core, partitions: Partitions) -> None:
        self._core, self._partitions = core, partitions

    def put(self, branch: str, path: str, body: Iterable[bytes], about: About) -> Entry:
        """Upload ``body`` as it streams, then stage it at ``path``."""
        key, upload = new_path(path), self._upload(branch, path)
        metered = upload.metered(body)
        self._core.store.put(upload.key, metered)
        entry = Entry(
            path,
            upload.address,
            metered.size,
            metered.md5.hexdigest(),
            self._now(),
            about.metadata,
            content_type=about.content_type,
        )
        return self._stage_upload(upload, key, entry)

    def copy_in(self, source: Entry, branch: str, path: str) -> Entry:
        """Copy an object that another branch or commit holds: the bytes too, inside the store."""
        if source.address_type is not AddressType.RELATIVE:
            raise BadRequest(f"{source.path!r} points outside the lake; copy the file itself and put it")
        key, upload = new_path(path), self._upload(branch, path)
        try:
            self._core.store.copy(self._core.prefix + source.address, upload.key)
        except NotFound:
            with self._core.database.read() as tx:  # condemned since its entry was read, or lost?
                tombstones.refuse_gone(tx, self._core.uid, source.address, source.path)
            raise
        entry = replace(source, path=path, address=upload.address, modified_ns=self._now())
        return self._stage_upload(upload, key, entry, source=source)

    def copy(self, branch: str, source: str, destination: str, *, move: bool = False) -> Entry:
        """A second entry on the same object, in the same branch; with ``move``, the first one goes."""
        key, target = encode_path(source), new_path(destination)

        def stage(tx: Transaction, on: LakeBranch, values: Sequence[bytes]) -> Entry:
            entry = replace(decode_entry(key, values[0]), path=destination, modified_ns=self._now())
            tombstones.refuse_gone(tx, self._core.uid, entry.address, source)
            with self._dropping(tx, on, By.OVERWRITTEN) as drops:
                if move:
                    staging.stage(tx, on.token, key, None, drops)
                staging.stage(tx, on.token, target, encode_entry(entry), drops)
            return entry

        return self._amend(branch, [key], stage)

    def remove(self, branch: str, paths: Iterable[str]) -> None:
        """``paths``, sorted, are gone from the branch, all or none; what commits hold of them stays."""
        keys = [encode_path(path) for path in paths]

        def stage(tx: Transaction, on: LakeBranch, _: Sequence[bytes]) -> None:
            with self._dropping(tx, on, By.REMOVED) as drops:
                for key in keys:
                    staging.stage(tx, on.token, key, None, drops)

        self._amend(branch, keys, stage)

    def reset(self, branch: str, *, path: str | None = None, prefix: str | None = None) -> int:
        """Forget what is staged: all of it, below ``prefix``, or at ``path``; how many changes that were.

        A commit that is under way loses the race and says so: its sealed areas are gone.
        """
        key = encode_path(path) if path is not None else None
        for _ in range(TRIES):
            settle(self._core)  # a commit that was cut off has what it took: it is not brought back after this
            with self._core.database.write() as tx:
                repositories.writing(tx, self._core.uid)  # what stays staged may move to another area
                on = refs.branch(tx, self._core.uid, branch, lock="alone")
                if not journal.has_next(self._core, tx):  # else a commit was cut off since
                    with self._dropping(tx, on, By.RESET) as drops:
                        forgotten = self._forget(tx, on, key, prefix, drops)
                    if not forgotten and key is not None:
                        raise NotFound("staged change at", str(path), f"see `desilt lake diff` on {branch!r}")
                    return forgotten
        raise BranchMoved(branch, "resetting it")

    def _forget(self, tx: Transaction, on: LakeBranch, key: bytes | None, prefix: str | None, drops: Dropping) -> int:
        if key is None and prefix is None:
            forgotten = staging.drop_all(tx, on.tokens, drops)
            refs.restart(tx, on, token=new_uid(self._core.clock()))
            return forgotten
        if on.sealed:
            token = new_uid(self._core.clock())
            staging.gather(tx, on.tokens, token, drops)
            refs.restart(tx, on, token=token)
            on = replace(on, token=token, sealed=())
        if key is not None:
            return staging.unstage(tx, on.token, key, drops)
        return staging.drop(tx, on.token, drops, encode_prefix(str(prefix)))

    def _upload(self, branch: str, path: str) -> Upload:
        """A new address of ``branch``, held by nothing but its ticket."""
        with self._core.database.read() as tx:
            seen = refs.branch(tx, self._core.uid, branch)
        return Upload(self._core, seen, path, self._partitions.new_address(seen.uid))

    def _stage_upload(self, upload: Upload, key: bytes, entry: Entry, *, source: Entry | None = None) -> Entry:
        with self._core.database.write() as tx:
            on = upload.finish(tx)
            if source is not None:  # what is gone by now is not to live on as a copy
                tombstones.refuse_gone(tx, self._core.uid, source.address, source.path)
            fresh.add(tx, self._core.uid, entry.address, entry.size)
            with self._dropping(tx, on, By.OVERWRITTEN) as drops:
                staging.stage(tx, on.token, key, encode_entry(entry), drops)
        return entry

    def _amend(
        self, branch: str, keys: Sequence[bytes], stage: Callable[[Transaction, LakeBranch, Sequence[bytes]], T]
    ) -> T:
        """Run ``stage`` in a transaction in which ``keys``, sorted, surely have the values it is given.

        Committed values are read before, outside of it: a slow store must not hold a lock.
        """
        for _ in range(TRIES):
            with self._core.database.read() as tx:
                seen = refs.branch(tx, self._core.uid, branch)
                staged = [staging.find(tx, seen.tokens, key) for key in keys]
                head = commits.fetching(tx, self._core.uid)(seen.head)
            with telling_gone(self._core, head.id):
                committed = self._core.ranges.get_many(head.metarange, keys)
            values = [upper[1] if upper[0] else lower for upper, lower in zip(staged, committed, strict=True)]
            there = [value for value in values if value is not None]
            if len(there) < len(keys):
                missing = decode_path(keys[values.index(None)])
                raise NotFound("object", missing, f"see `desilt lake ls` on {branch!r}")
            with self._core.database.write() as tx:
                repositories.writing(tx, self._core.uid)
                now = refs.branch(tx, self._core.uid, branch, lock="alone")
                if now.head == seen.head and [staging.find(tx, now.tokens, key) for key in keys] == staged:
                    return stage(tx, now, there)
        raise BranchMoved(branch, "changing it")

    def _dropping(self, tx: Transaction, on: LakeBranch, by: By) -> AbstractContextManager[Dropping]:
        return dropping(tx, self._core.uid, on.uid, head=on.head, by=by, at=self._core.clock())

    def _now(self) -> int:
        return nanoseconds(self._core.clock())
