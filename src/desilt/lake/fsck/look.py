"""The check itself: one look, and a second one before anything stored is blamed.

Rows are read in one snapshot, then the store is listed. What others do meanwhile
must not look like damage: an error about a table or an object is only reported if
a second look, from a new snapshot, meets it again. Whatever was rightly removed in
between is no longer claimed by then.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from desilt.domain.entry import decode_path
from desilt.domain.units import many
from desilt.errors import BadRequest, NotFound
from desilt.lake.core import Core
from desilt.lake.fsck.deep import Progress, unwatched, wrong_bytes
from desilt.lake.fsck.history import note_rows, witnesses
from desilt.lake.fsck.journal import note_journal
from desilt.lake.fsck.objects import Comparison, condemned_by
from desilt.lake.fsck.rows import take
from desilt.lake.fsck.tables import MOST_AT_ONCE, Claims, at_once
from desilt.lake.repository import LakeRepository
from desilt.repository.findings import LISTED, Finding, Findings, LookedAt, Notebook

LOOKS = 1_000  # missing objects that are asked for by name; for more, two listings must do


@dataclass(frozen=True, slots=True)
class Suspects:
    """What a look blames: tables by id, objects by address."""

    tables: frozenset[str]
    addresses: pa.ChunkedArray

    def __bool__(self) -> bool:
        return bool(self.tables) or len(self.addresses) > 0


def check(repository: LakeRepository, *, deep: bool = False, progress: Progress = unwatched) -> Findings:
    """What is wrong with ``repository``, and what is worth knowing; ``deep`` reads every object, too."""
    look = Look(repository.core, deep=deep)
    if suspects := look.suspects:
        look = Look(repository.core, deep=deep)
        look.confirm(suspects)
    return look.findings(progress)


class Look:
    """One snapshot, one listing, and how they compare."""

    def __init__(self, core: Core, *, deep: bool) -> None:
        self._core, self._deep = core, deep
        self._seen = take(core)
        self._objects = Comparison(core, self._seen, keep_live=deep)  # lists the store: after the snapshot
        self._claims = Claims(core, self._seen, witnesses(self._seen, core.default_branch))
        for entries in self._claims.entries():
            self._objects.add(entries)
        self._missing, self._wrong = self._objects.missing(), self._objects.wrong()
        self._blamed = frozenset(flaw.table for flaw in self._claims.flaws)

    @property
    def suspects(self) -> Suspects:
        addresses = [*self._missing["address"].chunks, *self._wrong["address"].chunks]
        return Suspects(self._blamed, pa.chunked_array(addresses, pa.large_string()))

    def confirm(self, suspects: Suspects) -> None:
        """Go on blaming only what an earlier look blamed too, and what is not there when asked for by name."""
        self._blamed &= suspects.tables
        self._wrong = self._wrong.filter(pc.is_in(self._wrong["address"], value_set=suspects.addresses))
        missing = self._missing.filter(pc.is_in(self._missing["address"], value_set=suspects.addresses))
        addresses = pc.unique(missing["address"])
        if 0 < len(addresses) <= LOOKS:
            asked = at_once(self._is_there, addresses.to_pylist(), MOST_AT_ONCE)
            there = pa.array([address for address, found in asked if found], pa.large_string())
            missing = missing.filter(pc.invert(pc.is_in(missing["address"], value_set=there)))
        self._missing = missing

    def findings(self, progress: Progress) -> Findings:
        notes, claims, objects = Notebook(), self._claims, self._objects
        note_rows(self._seen, notes, self._core.default_branch)
        flaws = {(flaw.table, flaw.fact): flaw for flaw in claims.flaws if flaw.table in self._blamed}
        for _, flaw in sorted(flaws.items()):
            kind = "missing-table" if flaw.missing else "corrupt-table"
            notes.add(kind, flaw.fact, **{"table": flaw.table, **flaw.where})
        for table, where, stone in claims.condemned():
            notes.add("condemned-table", condemned_by(stone), **{"table": table, **where})
        note_journal(self._core, notes, deep=self._deep)
        self._note(notes, "missing-object", self._missing, lambda row: f"there is no object at {row['address']}")
        self._note(
            notes, "wrong-size", self._wrong, lambda row: f"its object has {row['stored']:,} bytes, not {row['size']:,}"
        )
        if self._deep:
            wrong = wrong_bytes(self._core, objects.live(), notes, progress)
            self._note(notes, "wrong-bytes", wrong, lambda row: str(row["fact"]))
        self._note(notes, "removed", objects.removed(), condemned_by)
        objects.note_facts(notes, (*claims.metaranges, *claims.ranges), whole=self._whole(notes))
        commits = len(self._seen.commits) + len(self._seen.corrupt_commits)
        totals = LookedAt(commits, claims.tables, objects.entries, objects.outside, *objects.totals())
        return notes.close(totals, deep=self._deep)

    def _whole(self, notes: Notebook) -> bool:
        """Whether all is known that may hold something; if not, nothing may be called unreferenced."""
        reasons = []
        if tables := len({flaw.table for flaw in self._claims.flaws}):
            reasons.append(f"{many(tables, 'table')} could not be read")
        if notes.count("missing-commit", "corrupt-commit"):
            reasons.append("commits are missing or corrupt")
        if notes.count("newer-journal", "broken-journal", "unknown-partition"):
            reasons.append("the database may know less than the store")
        if reasons:
            notes.left_out.append(f"unreferenced objects and tables were not looked for: {', '.join(reasons)}")
        return not reasons

    def _is_there(self, address: str) -> bool:
        try:
            self._core.store.head(self._core.prefix + address)
        except (NotFound, BadRequest):  # what no store takes as a key has no object
            return False
        return True

    def _note(self, notes: Notebook, kind: str, rows: pa.Table, fact: Callable[[dict[str, Any]], str]) -> None:
        def found() -> Iterator[Finding]:
            for row in rows.slice(0, LISTED).to_pylist():
                about = {
                    "path": decode_path(row["path"]),
                    **self._claims.sources[row["source"]],
                    "address": row["address"],
                }
                yield Finding(kind, about, fact(row))

        notes.add_many(kind, len(rows), found())
