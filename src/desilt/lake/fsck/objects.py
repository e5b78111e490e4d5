"""What the store has, compared with what entries say of it: in columns, whatever the number."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.domain.address import uid
from desilt.domain.times import moment
from desilt.lake.core import Core
from desilt.lake.fsck.rows import SeenRows
from desilt.lake.fsck.tables import ENTRIES
from desilt.lake.layout import DATA, UID
from desilt.objects.store import LISTING
from desilt.repository.findings import LISTED, Finding, Notebook
from desilt.sstable.ranges import FOLDER

ROWS = ENTRIES.append(pa.field("stored", pa.int64()))
"""Entries, and how many bytes the store has at each one's address; null where it has nothing."""

TABLE = f"^{FOLDER}[^/]+$"
OURS = f"{TABLE}|^{FOLDER}retention/|^_desilt/|^{DATA}"
METADATA = f"^{FOLDER}|^_desilt/"
NAMED = f"/{UID}$"


class Comparison:
    """The store's listing, and the entries laid against it."""

    def __init__(self, core: Core, seen: SeenRows, *, keep_live: bool) -> None:
        self._seen, self._keep_live = seen, keep_live
        listing = pa.Table.from_batches(list(core.store.list(core.prefix)), LISTING).combine_chunks()
        keys = listing["key"].cast(pa.large_string())
        self._addresses = pc.utf8_slice_codeunits(keys, start=len(core.prefix))
        self._sizes, self._modified = listing["size_bytes"], listing["modified_at"]
        self._held = np.zeros(len(listing), np.bool_)
        self._rows: dict[str, list[pa.Table]] = {"missing": [], "wrong": [], "removed": [], "live": []}
        self.entries = self.outside = 0
        self.hold([ticket.address for ticket in seen.tickets])
        self.hold(seen.stray_addresses)  # nobody's, but somebody may want them back

    def add(self, entries: pa.Table) -> None:
        """Lay some entries against the listing; those outside the lake are counted."""
        inside = entries.filter(pc.invert(entries["outside"]))
        self.entries += len(entries)
        self.outside += len(entries) - len(inside)
        rows = inside.append_column(ROWS.field("stored"), self._sizes.take(self._hold(inside["address"])))
        condemned = pc.is_in(rows["address"], value_set=self._seen.stones["address"])
        there = pc.is_valid(rows["stored"])
        fits = pc.equal(rows["stored"], rows["size"])
        self._keep("missing", rows, pc.invert(pc.or_(there, condemned)))
        self._keep("removed", rows, pc.and_not(condemned, there))
        self._keep("wrong", rows, pc.and_not(pc.and_not(there, fits), condemned))
        if self._keep_live:
            self._keep("live", rows, pc.and_not(pc.and_(there, fits), condemned))

    def hold(self, addresses: Iterable[str]) -> None:
        """Something other than an entry holds ``addresses``."""
        self._hold(pa.array(addresses, pa.large_string()))

    def missing(self) -> pa.Table:
        """Entries without an object and without a tombstone, each path with each address once."""
        return self._distinct("missing", "path", "address")

    def wrong(self) -> pa.Table:
        """Entries whose object has another size."""
        return self._distinct("wrong", "path", "address", "size")

    def live(self) -> pa.Table:
        """Entries whose object is there in its size, each object with each checksum once."""
        return self._distinct("live", "address", "checksum")

    def removed(self) -> pa.Table:
        """Entries whose object a run removed, with its tombstone."""
        rows = self._distinct("removed", "path", "address")
        stones = self._seen.stones.take(pc.index_in(rows["address"], value_set=self._seen.stones["address"]))
        for name in stones.column_names[1:]:
            rows = rows.append_column(name, stones[name])
        return rows

    def totals(self) -> tuple[int, int]:
        """How many objects there are, and their bytes."""
        sizes = self._sizes.filter(pc.invert(pc.match_substring_regex(self._addresses, METADATA)))
        return len(sizes), pc.sum(sizes).as_py() or 0

    def note_facts(self, notes: Notebook, tables: Iterable[str], *, whole: bool) -> None:
        """Write down what is stored and stands apart; unreferenced things only if all that may refer is ``whole``."""
        stones, held = self._seen.stones, pa.array(self._held)
        still = stones.filter(pc.is_in(stones["address"], value_set=self._addresses))
        some = still.slice(0, LISTED).to_pylist()
        listed = (Finding("condemned", {"address": row["address"]}, condemned_by(row)) for row in some)
        notes.add_many("condemned", len(still), listed)
        foreign = pc.invert(pc.or_(pc.match_substring_regex(self._addresses, OURS), held))
        self._note("foreign-file", foreign, notes)
        if not whole:
            return
        old = pc.invert(self._young())
        condemned = pc.is_in(self._addresses, value_set=stones["address"])
        loose = pc.and_not(pc.and_not(pc.starts_with(self._addresses, DATA), held), condemned)
        self._note("unreferenced-object", pc.and_(loose, old), notes)
        needed = pa.array([FOLDER + name for name in tables], pa.large_string())
        unneeded = pc.invert(pc.or_(pc.is_in(self._addresses, value_set=needed), condemned))
        is_table = pc.match_substring_regex(self._addresses, TABLE)
        self._note("unreferenced-table", pc.and_(pc.and_(is_table, unneeded), old), notes)

    def _young(self) -> pa.ChunkedArray:
        """Whether any clock says that an object came after the snapshot; seconds are the finest some stores have."""
        second = self._seen.taken_at.replace(microsecond=0)
        by_store = pc.greater_equal(self._modified, pa.scalar(second, LISTING.field("modified_at").type))
        names = pc.utf8_slice_codeunits(self._addresses, start=-20)
        named = pc.and_(
            pc.match_substring_regex(self._addresses, NAMED),
            pc.greater_equal(names, pa.scalar(uid(second, bytes(8)), pa.large_string())),
        )
        return pc.or_(by_store, named)

    def _note(self, kind: str, wanted: pa.ChunkedArray, notes: Notebook) -> None:
        columns = (self._addresses, self._sizes, self._modified)
        found = [column.filter(wanted) for column in columns]
        some = zip(*(column.slice(0, LISTED).to_pylist() for column in found), strict=True)
        listed = (
            Finding(kind, {"address": a}, f"{size:,} bytes, from {at:%Y-%m-%d %H:%M:%S} UTC") for a, size, at in some
        )
        notes.add_many(kind, len(found[0]), listed)

    def _hold(self, addresses: pa.Array) -> pa.Array:
        """Where in the listing ``addresses`` are; null where they are not."""
        places = pc.index_in(addresses, value_set=self._addresses)
        self._held[places.drop_null().to_numpy()] = True
        return places

    def _keep(self, name: str, rows: pa.Table, wanted: pa.ChunkedArray) -> None:
        kept = rows.filter(wanted)
        if len(kept):
            self._rows[name].append(kept)

    def _distinct(self, name: str, *keys: str) -> pa.Table:
        """The first row for each combination of ``keys``: the one with the best witness."""
        rows = pa.concat_tables(self._rows[name]) if self._rows[name] else ROWS.empty_table()
        numbered = rows.select(keys).append_column("row", pa.array(np.arange(len(rows))))
        first = numbered.group_by(list(keys)).aggregate([("row", "min")])["row_min"]
        return rows.take(first.take(pc.sort_indices(first)))


def condemned_by(stone: dict[str, object]) -> str:
    at = moment(int(str(stone["condemned_at"])))
    return f"by run {stone['run']}, rule {stone['rule']!r}, on {at:%Y-%m-%d %H:%M:%S} UTC"
