"""A check of an Icechunk repository: every ref, snapshot, log, manifest and reference. It changes nothing.

A chunk that is missing is a *hole* if our ledger says which run removed it; else it is a loss. What is blamed is looked
at again, by name, before it is. A file that is missing or damaged is told by its key, and the rest is checked as far as
that goes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.errors import DamagedAsset, MissingAsset, NotFound, Unreadable
from desilt.icechunk import seen
from desilt.icechunk.core import IcechunkCore
from desilt.icechunk.format import manifest, nodes, states, transactions
from desilt.icechunk.format.container import AssetKind, fetched
from desilt.icechunk.format.ids import ROOT
from desilt.icechunk.format.manifest import INLINE, VIRTUAL
from desilt.icechunk.format.states import ListedManifest
from desilt.icechunk.layout import CHUNKS, FOREIGN, MANIFESTS, SNAPSHOTS, TRANSACTIONS, kinds
from desilt.icechunk.seen import Looked
from desilt.icechunk.tables import entries_of
from desilt.inventory.listing import stored_at
from desilt.objects.store import LISTING
from desilt.records import removals
from desilt.records.removals import State
from desilt.repository.findings import Finding, Findings, LookedAt, Notebook, Progress
from desilt.repository.snapshot import Snapshot

OURS = "_desilt/"
TABLES = {"snapshot": SNAPSHOTS, "manifest": MANIFESTS, "transaction": TRANSACTIONS}
NO_SUMS = "bytes of chunks were read, and compared with nothing: Icechunk keeps no checksums of them"
NO_HISTORY = "nothing but refs was checked, since what they reach cannot be read"
UNKNOWN_LOOSE = "what nothing refers to was not looked for, since some of what does could not be read"


@dataclass(slots=True)
class Read:
    """What could be read."""

    manifests: dict[str, tuple[ListedManifest, str]] = field(default_factory=dict)  # each with a snapshot that lists it
    logs: set[str] = field(default_factory=set)  # of which snapshots
    tables: int = 0
    references: int = 0
    inline: int = 0
    virtual: int = 0
    chunks: list[pa.Array] = field(default_factory=list)  # addresses, each once for a manifest


def check(core: IcechunkCore, *, deep: bool, progress: Progress) -> Findings:
    """What is wrong, and what is worth knowing."""
    notes, read = Notebook(), Read()
    try:
        looked = seen.look(core, core.clock())
    except Unreadable as fault:
        _blame(notes, fault)
        notes.left_out.append(NO_HISTORY)
        return notes.close(LookedAt(), deep=False)
    listing = _listing(core)
    _snapshots(core, looked, notes, read)
    chunks = listing.filter(pc.starts_with(listing["key"], CHUNKS))
    for name in sorted(read.manifests):
        _manifest(core, *read.manifests[name], chunks, notes, read)
    needed = pc.unique(pa.concat_arrays([pa.array([], pa.string()), *read.chunks]))
    if notes.count("missing-table", "corrupt-table"):
        notes.left_out.append(UNKNOWN_LOOSE)
    else:
        _loose(listing, notes, read, needed, looked.seen)
    foreign = listing.filter(pc.equal(kinds(listing["key"].combine_chunks()), FOREIGN))
    _told(notes, "foreign-file", "address", foreign["key"].to_pylist())
    if deep:
        _every_byte(core, chunks.filter(pc.is_in(chunks["key"], value_set=needed)), notes, progress)
        notes.left_out.append(NO_SUMS)
    size = pc.sum(chunks["size_bytes"]).as_py() or 0
    totals = LookedAt(
        len(looked.seen.commits), read.tables, read.references, read.virtual, chunks.num_rows, size, inside=read.inline
    )
    return notes.close(totals, deep=deep)


def _listing(core: IcechunkCore) -> pa.Table:
    """All there is but for our own."""
    found = pa.Table.from_batches(list(core.store.list()), LISTING).combine_chunks()
    return found.filter(pc.invert(pc.starts_with(found["key"], OURS)))


def _blame(notes: Notebook, fault: Unreadable) -> None:
    if isinstance(fault, DamagedAsset):
        notes.add("missing-table" if isinstance(fault, MissingAsset) else "corrupt-table", str(fault), table=fault.name)
    else:
        notes.add("missing-commit", str(fault), table="refs")


def _snapshots(core: IcechunkCore, looked: Looked, notes: Notebook, read: Read) -> None:
    """Every snapshot that the repository has, with its log and those that it took over; and when each was made."""
    whole = looked.seen
    for commit in whole.in_time:
        for parent in commit.parents:
            if commit.created_at <= whole.commits[parent].created_at:
                notes.add("commit-time", "it is not later than its parent", commit=commit.id, parent=parent)
        try:
            one = states.fetch(core.store, commit.id)
        except DamagedAsset as fault:
            _blame(notes, fault)
            continue
        read.tables += 1
        read.manifests |= {listed.id: (listed, commit.id) for listed in one.manifests}
        read.logs |= {commit.id, *looked.found.pruned.get(commit.id, ())}
    for name in sorted(read.logs - {ROOT}):  # of which format 1 has none
        try:
            transactions.check(fetched(core.store, TRANSACTIONS + name, AssetKind.TRANSACTION), name)
            read.tables += 1
        except DamagedAsset as fault:
            _blame(notes, fault)
    dangling = sorted(whole.commits.keys() - whole.below(whole.tips))
    some = (Finding("dangling-commit", {"commit": one}, "") for one in dangling)
    notes.add_many("dangling-commit", len(dangling), some)


def _manifest(
    core: IcechunkCore, listed: ListedManifest, snapshot: str, chunks: pa.Table, notes: Notebook, read: Read
) -> None:
    """All references of one manifest laid against what is stored."""
    try:
        found = manifest.fetch(core.store, listed)
        rows = entries_of(core.store, found, 0)
    except DamagedAsset as fault:
        _blame(notes, fault)
        return
    read.tables += 1
    read.references += len(found)
    read.inline += int(np.count_nonzero(found.kinds == INLINE))
    read.virtual += int(np.count_nonzero(found.kinds == VIRTUAL))
    read.chunks.append(pc.unique(rows["address"]))
    places = pc.index_in(rows["address"], value_set=chunks["key"])
    stored = chunks["size_bytes"].take(places)
    short = rows.filter(pc.fill_null(pc.less(stored, rows["size_bytes"]), False))
    missing = rows.filter(pc.is_null(places))
    if missing.num_rows or short.num_rows:
        _lost(core, notes, snapshot, missing, short)


def _lost(core: IcechunkCore, notes: Notebook, snapshot: str, missing: pa.Table, short: pa.Table) -> None:
    """Chunks that are not there, or not whole; but for what was only written after the listing."""
    arrays = nodes.fetch(core.store, snapshot)
    for path, address, size in _distinct(short):
        about = {"path": arrays.called(path), "address": address, "commit": snapshot}
        notes.add("wrong-size", f"it is shorter than {size:,} bytes", **about)
    gone = [(path, address) for path, address, _ in _distinct(missing) if stored_at(core.store, address) is None]
    with core.records.read() as tx:
        stones = removals.recorded(tx, core.uid, [address for _, address in gone])
    for path, address in gone:
        about = {"path": arrays.called(path), "address": address, "commit": snapshot}
        stone = stones.get(address)
        if stone is not None and stone.state is not State.RESTORED:
            notes.add("removed", f"run {stone.run} removed it, by {stone.rule} ({stone.state})", **about)
        else:
            notes.add("missing-object", f"there is no object at {address}", **about)


def _distinct(rows: pa.Table) -> Iterator[tuple[str, str, int]]:
    """Each object once, with one of its paths."""
    columns = (rows[name].to_pylist() for name in ("path", "address", "size_bytes"))
    found = {address: (path.decode(), address, size) for path, address, size in zip(*columns, strict=True)}
    yield from found.values()


def _loose(listing: pa.Table, notes: Notebook, read: Read, needed: pa.Array, whole: Snapshot) -> None:
    """What lies there under a name of Icechunk's, and nothing that the repository has refers to it."""
    there = listing["key"].combine_chunks()
    named = kinds(there)
    loose = there.filter(pc.and_(pc.equal(named, "chunk"), pc.invert(pc.is_in(there, value_set=needed))))
    _told(notes, "unreferenced-object", "address", loose.to_pylist())
    known = {"snapshot": set(whole.commits), "manifest": set(read.manifests), "transaction": read.logs | {ROOT}}
    tables = []
    for kind, folder in TABLES.items():
        keys = there.filter(pc.equal(named, kind)).to_pylist()
        tables += [key for key in keys if key.removeprefix(folder) not in known[kind]]
    _told(notes, "unreferenced-table", "table", tables)


def _told(notes: Notebook, kind: str, what: str, keys: Sequence[str]) -> None:
    notes.add_many(kind, len(keys), (Finding(kind, {what: key}, "") for key in keys))


def _every_byte(core: IcechunkCore, rows: pa.Table, notes: Notebook, progress: Progress) -> None:
    """Every chunk that something refers to, read to its end."""
    total = pc.sum(rows["size_bytes"]).as_py() or 0
    for key, size in zip(rows["key"].to_pylist(), rows["size_bytes"].to_pylist(), strict=True):
        try:
            found = sum(len(some) for some in core.store.stream(key))
        except NotFound:
            notes.add("missing-object", f"there is no object at {key}", address=key)
            continue
        progress(found, total)
        if found != size:
            notes.add("wrong-size", f"{found:,} bytes of it can be read, and it has {size:,}", address=key)
