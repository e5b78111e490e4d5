"""Everything that only looks: history, differences, entries and their bytes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import pyarrow.compute as pc

from desilt.domain.entry import AddressType, Entry, decode_path, encode_path, encode_prefix
from desilt.domain.history import Commit, walk
from desilt.errors import BadRequest, NotFound, Unreadable
from desilt.lake import bases, commits, hidden, refs, staging
from desilt.lake.core import Core
from desilt.lake.diff import diff
from desilt.lake.hidden import Hidden
from desilt.lake.listing import PAGE, CommonPrefix, Pair, View, listing, lookup
from desilt.lake.vanished import telling_gone
from desilt.records import removals as tombstones
from desilt.records.database import Transaction
from desilt.sstable.columns import entry_columns
from desilt.sstable.ranges import EMPTY
from desilt.sstable.values import decode_entry


@dataclass(frozen=True, slots=True)
class PathChange:
    """A path that differs between two states."""

    path: str
    before: Entry | None
    after: Entry | None

    @property
    def kind(self) -> Literal["added", "removed", "changed"]:
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


def log(core: Core, *tips: str) -> Iterator[Commit]:
    """Commits that ``tips`` (refs) descend from, children before parents."""
    with core.database.read() as tx:
        ids = [refs.resolve(tx, core.uid, tip).commit.id for tip in tips]
        yield from walk(commits.fetching(tx, core.uid), *ids)


def differences(core: Core, left: str, right: str, *, since_base: bool, gone: bool) -> Iterator[PathChange]:
    """What turns the commit ``left`` into ``right``; or only what ``right`` did ``since_base``.

    An entry that is hidden counts as absent, unless ``gone``.
    """
    with core.database.read() as tx:
        ours, theirs = (refs.resolve(tx, core.uid, ref).commit for ref in (left, right))
        base: Commit | None = ours
        if since_base:
            met = bases.met(tx, core, ours.id, theirs.id)
            base = met.usable(bases.SINCE_BASE) if met else None
        hides = hidden.hides(tx, core, gone=gone)
    with telling_gone(core, theirs.id, *([base.id] if base else [])):
        found = (
            change(key, before, after)
            for batch in diff(core.ranges, base.metarange if base else EMPTY, theirs.metarange)
            for key, before, after in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        )
        yield from seen_changes(found, hidden.by_now(core)) if hides else found


def uncommitted(core: Core, branch: str, *, prefix: str, gone: bool) -> Iterator[PathChange]:
    """What a commit of ``branch`` would change; an entry that is hidden counts as absent, unless ``gone``."""
    with core.database.read() as tx:
        seen = refs.branch(tx, core.uid, branch)
        head = commits.fetching(tx, core.uid)(seen.head)
        staged = staging.scan(tx, seen.tokens, prefix=encode_prefix(prefix))
        found, left_out = staged_changes(core, head, staged), hidden.at_once(tx, core, gone=gone)
        yield from seen_changes(found, left_out) if left_out else found


def staged_changes(core: Core, head: Commit, staged: Iterator[Pair]) -> Iterator[PathChange]:
    """Where ``staged`` values are others than those of ``head``."""
    while page := list(islice(staged, PAGE)):
        with telling_gone(core, head.id):
            committed = core.ranges.get_many(head.metarange, [key for key, _ in page])
        for (key, value), before in zip(page, committed, strict=True):
            if value != before:
                yield change(key, before, value)


def seen_changes(changes: Iterator[PathChange], left_out: Hidden) -> Iterator[PathChange]:
    """``changes`` as readers see them: a side that is hidden is absent, and without either there is no change."""
    while page := list(islice(changes, PAGE)):
        unseen = left_out([side.address for one in page for side in (one.before, one.after) if side is not None])
        for one in page:
            before, after = (
                None if side is None or side.address in unseen else side for side in (one.before, one.after)
            )
            if before is not None or after is not None:
                yield PathChange(one.path, before, after)


def stat(core: Core, ref: str, path: str) -> Entry:
    """What ``path`` is at ``ref``; :class:`~desilt.errors.Gone` if a run removed its object."""
    key = encode_path(path)
    with view(core, ref) as (tx, seen):
        value = lookup(tx, core.ranges, seen, key)
        if value is None:
            raise NotFound("object", path, f"see `desilt lake ls` on {ref!r}")
        entry = decode_entry(key, value)
        tombstones.refuse_gone(tx, core.uid, entry.address, path)
        return entry


def get(core: Core, ref: str, path: str, *, start: int, length: int | None) -> Iterator[bytes]:
    """The bytes of an object, or ``length`` of them from ``start``, as they come."""
    entry = stat(core, ref, path)
    if entry.address_type is not AddressType.RELATIVE:
        raise BadRequest(f"{path!r} points outside the lake, to {entry.address}; read it there")
    return _bytes(core, entry, start, length)


def _bytes(core: Core, entry: Entry, start: int, length: int | None) -> Iterator[bytes]:
    try:
        yield from core.store.stream(core.prefix + entry.address, start=start, length=length)
    except NotFound:
        with core.database.read() as tx:  # condemned since we looked, or lost?
            tombstones.refuse_gone(tx, core.uid, entry.address, entry.path)
        raise Unreadable(f"the object of {entry.path!r} is missing from the store; see `desilt fsck`") from None


def entries(
    core: Core, ref: str, prefix: str, *, delimiter: str, after: str, gone: bool
) -> Iterator[Entry | CommonPrefix]:
    """Entries below ``prefix`` in path order; with a delimiter, deeper ones folded.

    What a run removed is among them; what one marked is hidden, unless ``gone``.
    """
    with view(core, ref) as (tx, seen):
        below, at, past = (encode_prefix(text) for text in (prefix, delimiter, after))
        left_out = hidden.at_once(tx, core, gone=gone)
        yield from listing(tx, core.ranges, seen, hidden=left_out, prefix=below, delimiter=at, after=past)


def count_gone(core: Core, ref: str) -> int:
    """How many committed entries of ``ref`` point to objects that a run removed."""
    with core.database.read() as tx:
        condemned = tombstones.every(tx, core.uid)
        commit = refs.resolve(tx, core.uid, ref).commit
    if not len(condemned):
        return 0
    gone = 0
    with telling_gone(core, commit.id):
        for listed in core.ranges.metarange(commit.metarange):
            addresses = entry_columns(core.ranges.read(listed), listed.id)["address"]
            gone += pc.sum(pc.is_in(addresses, value_set=condemned)).as_py() or 0
    return gone


@contextmanager
def view(core: Core, ref: str) -> Iterator[tuple[Transaction, View]]:
    """What ``ref`` shows, and the snapshot it is seen in."""
    with core.database.read() as tx:
        target = refs.resolve(tx, core.uid, ref)
        with telling_gone(core, target.commit.id):
            yield tx, View(target.commit.metarange, target.branch.tokens if target.branch else ())


def change(key: bytes, before: bytes | None, after: bytes | None) -> PathChange:
    sides = (None if value is None else decode_entry(key, value) for value in (before, after))
    return PathChange(decode_path(key), *sides)
