"""A check of a server's repository: every commit, table, entry and object. It changes nothing.

An object that is missing is a *hole* if our ledger says which run removed it, or a run of lakeFS's own job does; else
it is a loss. A table that is missing is an error either way: a server needs it, and its answers do not tell it from a
missing object. What is blamed is looked at again, by name, before it is.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.buckets import every
from desilt.columns.files import Files
from desilt.domain.entry import decode_path
from desilt.errors import CorruptTable, MissingTable
from desilt.executors.executor import HERE
from desilt.inventory.listing import stored_at
from desilt.lakefs import history
from desilt.lakefs.core import LakefsCore
from desilt.lakefs.layout import DATA, LAYOUT
from desilt.lakefs.source import LakefsSource
from desilt.lakefs.staged import staged_now
from desilt.objects.store import LISTING
from desilt.records import removals
from desilt.records.removals import State
from desilt.repository.findings import Finding, Findings, LookedAt, Notebook
from desilt.repository.snapshot import Snapshot
from desilt.sstable.values import RangeData

UNIFIED = "_lakefs/retention/gc/unified/"  # where lakeFS's own job says what it deleted
HELD = (State.RESTORED,)  # on record, and there again
NOT_DEEP = "bytes of objects were not read: a server's checksums are not always of them"


def check(core: LakefsCore, *, deep: bool) -> Findings:
    """What is wrong, and what is worth knowing."""
    notes = Notebook()
    holes = _Holes(core, notes)
    if deep:
        notes.left_out.append(NOT_DEEP)
    staged = staged_now(core)
    seen = history.read(core, core.clock())
    tables = _tables(core, seen, notes)
    listing = pa.Table.from_batches(list(core.store.list(DATA)), LISTING).combine_chunks()
    held, entries = [staged], 0
    for rows in _entries(core, tables):
        entries += rows.num_rows
        held.append(rows["address"].combine_chunks())
        _compare(notes, holes, rows, listing)
    _missing_staged(holes, staged, listing)
    needed = pc.unique(pa.concat_arrays(held))
    if not notes.count("missing-table", "corrupt-table"):
        _unreferenced(core, notes, listing, needed, seen)
    reached = seen.below(seen.tips)
    lonely = sorted(seen.commits.keys() - reached)
    notes.add_many("dangling-commit", len(lonely), (Finding("dangling-commit", {"commit": one}, "") for one in lonely))
    amount = pc.sum(listing["size_bytes"]).as_py() or 0
    metaranges = {commit.metarange for commit in seen.commits.values() if commit.metarange}
    looked = LookedAt(len(seen.commits), len(tables) + len(metaranges), entries, objects=listing.num_rows, bytes=amount)
    return notes.close(looked, deep=False)


def _tables(core: LakefsCore, seen: Snapshot, notes: Notebook) -> list[RangeData]:
    """The ranges of all commits that can be read; of what cannot, a finding."""
    found: dict[str, RangeData] = {}
    for metarange in sorted({commit.metarange for commit in seen.commits.values()}):
        try:
            found |= {listed.id: listed for listed in core.ranges.metarange(metarange)}
        except MissingTable:
            notes.add("missing-table", "this metarange is not there", table=metarange)
        except CorruptTable as error:
            notes.add("corrupt-table", str(error), table=metarange)
    return [listed for name in sorted(found) if (listed := _sound(core, found[name], notes))]


def _sound(core: LakefsCore, listed: RangeData, notes: Notebook) -> RangeData | None:
    try:
        core.ranges.read(listed)
    except MissingTable:
        notes.add("missing-table", "this range is not there", table=listed.id)
    except CorruptTable as error:
        notes.add("corrupt-table", str(error), table=listed.id)
    else:
        return listed
    return None


def _entries(core: LakefsCore, tables: Sequence[RangeData]) -> Iterator[pa.Table]:
    opened = Files(core.store)
    for placed in LakefsSource(core, HERE).entries(tables):
        for bucket in every(placed.file.buckets):
            yield opened.rows(placed.held, bucket, ["hash", "owner", "path", "size_bytes", "address"])


def _compare(notes: Notebook, holes: "_Holes", rows: pa.Table, listing: pa.Table) -> None:
    """Entries laid against what is stored."""
    places = pc.index_in(rows["address"], value_set=listing["key"])
    stored = listing["size_bytes"].take(places)
    missing = rows.filter(pc.is_null(places))
    wrong = rows.filter(pc.fill_null(pc.not_equal(stored, rows["size_bytes"]), False))
    for row in _distinct(missing):
        holes.note(decode_path(row["path"]), row["address"])
    for row in _distinct(wrong):
        fact = f"its object has another size than {row['size_bytes']:,} bytes"
        notes.add("wrong-size", fact, path=decode_path(row["path"]), address=row["address"])


def _missing_staged(holes: "_Holes", staged: pa.Array, listing: pa.Table) -> None:
    gone = staged.filter(pc.invert(pc.is_in(staged, value_set=listing["key"])))
    for address in pc.unique(gone).to_pylist():
        holes.note("", address)


class _Holes:
    """Objects that are not there: which are holes, and which are losses."""

    def __init__(self, core: LakefsCore, notes: Notebook) -> None:
        self._core, self._notes = core, notes

    def note(self, path: str, address: str) -> None:
        """Not of an object that was only put there after the listing."""
        core, notes = self._core, self._notes
        if stored_at(core.store, address) is not None:
            return
        about = {"path": path, "address": address} if path else {"address": address, "staging": "some branch"}
        with core.records.read() as tx:
            stone = removals.recorded(tx, core.uid, [address]).get(address)
        if stone is not None and stone.state not in HELD:
            notes.add("removed", f"run {stone.run} removed it, by {stone.rule} ({stone.state})", **about)
        elif address in self._theirs:
            notes.add("removed", f"lakeFS's own job removed it, in run {self._theirs[address]}", **about)
        else:
            notes.add("missing-object", f"there is no object at {address}", **about)

    @cached_property
    def _theirs(self) -> dict[str, str]:
        """What lakeFS's own job says it deleted, and in which run; read once, when something is missing."""
        store, found = self._core.store, dict[str, str]()
        for folder in store.folders(UNIFIED):
            run = folder.rstrip("/").rpartition("/")[2]
            for key in [key for batch in store.list(f"{folder}deleted.text/") for key in batch["key"].to_pylist()]:
                found |= dict.fromkeys(store.get(key).decode(errors="replace").splitlines(), run)
        return found


def _unreferenced(core: LakefsCore, notes: Notebook, listing: pa.Table, needed: pa.Array, seen: Snapshot) -> None:
    loose = listing.filter(pc.invert(pc.is_in(listing["key"], value_set=needed)))
    served = LakefsSource(core, HERE).served(seen, loose.rename_columns(["address", "size_bytes", "modified_at"]))
    loose = loose.filter(pc.invert(pc.is_in(loose["key"], value_set=served)))
    ours = loose.filter(pa.array(LAYOUT.objects(loose["key"].combine_chunks())))
    foreign = loose.filter(pa.array(~LAYOUT.objects(loose["key"].combine_chunks())))
    for kind, rows in (("unreferenced-object", ours), ("foreign-file", foreign)):
        some = (Finding(kind, {"address": key}, "") for key in rows["key"].to_pylist())
        notes.add_many(kind, rows.num_rows, some)


def _distinct(rows: pa.Table) -> list[dict[str, Any]]:
    seen = rows.select(["path", "address", "size_bytes"])
    return list({(row["path"], row["address"]): row for row in seen.to_pylist()}.values())
