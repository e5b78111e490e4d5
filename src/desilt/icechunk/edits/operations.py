"""The log of operations in ``repo``, newest first: each row but the newest names the file as that row had made it.

There is room for so many rows as the configuration says; the file then names the one that had the others.
"""

from desilt.icechunk.edits.forward import NewTable, Old, Part, Text, Vector
from desilt.icechunk.edits.repo_change import RepoChange, RepoOperation
from desilt.icechunk.format.buffer import FlatTable
from desilt.icechunk.format.repo_info import BRANCHES, CONFIG, ID, SNAPSHOTS, TAGS, UPDATES
from desilt.icechunk.format.values import flexbuffer

KIND, WHAT, WHEN, BACKUP = range(4)
ROWS = "num_updates_per_repo_info_file"
MOST = 1000  # rows, as the library has it where nothing is said


def with_one_more(table: FlatTable, change: RepoChange, at: int, backup: str) -> tuple[Vector, str | None]:
    """The log of a file that is changed ``at`` a time, and kept as ``backup``; and which file has those left out now.

    None: no more are left out than before.
    """
    rows = list(table.tables(UPDATES))
    at = max(at, max((row.number(WHEN, 8) + 1 for row in rows[:1]), default=0))  # no clock makes it an older one
    new = NewTable({KIND: bytes([change.operation]), WHAT: _what(table, change), WHEN: at.to_bytes(8, "little")})
    newest = [
        NewTable({KIND: row.raw(KIND, 1), WHAT: kept(row, WHAT), WHEN: row.raw(WHEN, 8), BACKUP: Text(backup)})
        for row in rows[:1]
    ]
    found: list[Part] = [new, *newest, *(Old(row.at) for row in rows[1:])]
    most = _most(table)
    names = [backup, *((row.content(BACKUP) or b"").decode() for row in rows[1:])]
    return Vector(found[:most]), names[most - 1] if len(found) > most else None


def kept(table: FlatTable, slot: int) -> Old | None:
    """A field as it was."""
    place = table.place(slot)
    return None if place is None else Old(place)


def said(row: FlatTable) -> tuple[object, ...]:
    """What a row says, but for the file; where what it is about lies is counted from the end."""
    place = row.place(WHAT)
    return row.number(KIND, 1), row.number(WHEN, 8), len(row.data) - (place or 0)


def _what(table: FlatTable, change: RepoChange) -> NewTable:
    """Of a ref that goes by itself, its name and where it was; of all else nothing."""
    slot = {RepoOperation.TAG_DELETED: TAGS, RepoOperation.BRANCH_DELETED: BRANCHES}.get(change.operation)
    if slot is None:
        return NewTable({})
    snapshots = list(table.tables(SNAPSHOTS))
    (one,) = (ref for ref in table.tables(slot) if ref.text(0) in change.tags | change.branches)
    return NewTable({0: kept(one, 0), 1: snapshots[one.number(1, 4)].raw(ID, 12)})


def _most(table: FlatTable) -> int:
    raw = table.content(CONFIG)
    config = flexbuffer(raw) if raw else {}
    found = config.get(ROWS) if isinstance(config, dict) else None
    return found if isinstance(found, int) and found > 0 else MOST
