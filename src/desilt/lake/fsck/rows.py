"""The rows of a repository at one moment, as a check needs them: refs, commits, staging, tickets, tombstones."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from desilt.domain.history import Commit
from desilt.domain.ticket import Ticket
from desilt.errors import CorruptTable, Unreadable
from desilt.lake import commits, reader, refs, staging, tickets
from desilt.lake.core import Core
from desilt.lake.refs import LakeBranch
from desilt.records import holds
from desilt.records import removals as tombstones
from desilt.records.database import Transaction
from desilt.repository.snapshot import Tag
from desilt.sstable.columns import entry_columns
from desilt.sstable.table import RAW

About = Mapping[str, str]

STONES = pa.schema(
    [("address", pa.large_string()), ("run", pa.string()), ("rule", pa.string()), ("condemned_at", pa.int64())]
)


@dataclass(frozen=True, slots=True)
class Flaw:
    """A table that is not sound; ``missing`` if it is not there at all."""

    table: str
    where: About
    fact: str
    missing: bool = False


@dataclass(slots=True)
class SeenRows:
    """The rows of a repository at one moment."""

    taken_at: datetime
    branches: list[LakeBranch]
    tags: list[Tag]
    commits: dict[str, Commit]
    corrupt_commits: list[str]
    collected: dict[str, str]  # by run
    tickets: list[Ticket]
    stones: pa.Table
    miscounted: list[str] = field(default_factory=list)  # what does not add up
    staged: list[tuple[About, pa.RecordBatch]] = field(default_factory=list)
    flaws: list[Flaw] = field(default_factory=list)
    strays: list[tuple[str, str]] = field(default_factory=list)  # staging token, what is wrong with it
    stray_addresses: list[str] = field(default_factory=list)

    def has_commit(self, commit_id: str) -> bool:
        return commit_id in self.commits or commit_id in self.corrupt_commits


def take(core: Core) -> SeenRows:
    """All rows that matter, in one snapshot. The clock is read first: what is younger may be missing here."""
    now = core.clock()
    with core.database.read() as tx:
        found, corrupt = _commits(tx, core.uid)
        stones = tx.each(
            "SELECT address, run, rule, condemned_at FROM tombstones WHERE repository = ? AND state <> ?",
            *(core.uid, tombstones.State.RESTORED),
        )
        seen = SeenRows(
            now,
            refs.branches(tx, core.uid),
            list(refs.tags(tx, core.uid)),
            found,
            corrupt,
            commits.collected(tx, core.uid),
            list(tickets.open_at(tx, core.uid, now)),
            pa.Table.from_arrays(
                [pa.array(column, kind) for column, kind in zip(_columns(stones, 4), STONES.types, strict=True)],
                schema=STONES,
            ),
        )
        there = {
            "commit": len(found) + len(corrupt),
            "branch": len(seen.branches),
            "tag": len(seen.tags),
            "hold": len(holds.every(tx, core.uid)),
        }
        seen.miscounted += reader.miscounted(tx, core, there, found)
        for branch in seen.branches:
            for token in branch.tokens:
                _stage(seen, tx, token, {"ref": branch.name, "staging": token})
        _strays(seen, tx)
    return seen


def _commits(tx: Transaction, repository: str) -> tuple[dict[str, Commit], list[str]]:
    try:
        return {commit.id: commit for commit in commits.every(tx, repository)}, []
    except Unreadable:
        pass  # one by one, to leave out only what is not readable
    found, corrupt, fetch = {}, [], commits.fetching(tx, repository)
    for (commit_id,) in tx.rows("SELECT id FROM commits WHERE repository = ?", repository):
        try:
            found[commit_id] = fetch(commit_id)
        except Unreadable:
            corrupt.append(commit_id)
    return found, corrupt


def _stage(seen: SeenRows, tx: Transaction, token: str, where: About) -> None:
    for changes in staging.changes(tx, [token]):
        records = changes.filter(pc.is_valid(changes["value"])).cast(RAW)
        try:
            seen.staged.append((where, entry_columns(records, token)))
        except CorruptTable as error:
            seen.flaws.append(Flaw(token, where, f"up to {len(records):,} staged changes: {error.reason}"))


def _strays(seen: SeenRows, tx: Transaction) -> None:
    """Staging areas of no branch, in the whole lake: their rows do not say whose they were."""
    known = "SELECT token FROM branches UNION SELECT token FROM sealed WHERE branch IN (SELECT uid FROM branches)"
    lost = tx.rows(f"SELECT token, COUNT(*) FROM staging WHERE token NOT IN ({known}) GROUP BY token")
    for token, count in lost:
        seen.strays.append((token, f"{count:,} staged changes belong to no branch of any repository"))
        for changes in staging.changes(tx, [token]):
            try:
                records = changes.filter(pc.is_valid(changes["value"])).cast(RAW)
                seen.stray_addresses += entry_columns(records, token)["address"].to_pylist()
            except CorruptTable as error:
                seen.flaws.append(Flaw(token, {"staging": token}, error.reason))
    for token, branch in tx.rows("SELECT token, branch FROM sealed WHERE branch NOT IN (SELECT uid FROM branches)"):
        seen.strays.append((token, f"it is sealed for branch {branch}, which is not there"))


def _columns(rows: Iterable[tuple[object, ...]], width: int) -> list[list[object]]:
    columns = [list(column) for column in zip(*rows, strict=True)]
    return columns or [[] for _ in range(width)]
