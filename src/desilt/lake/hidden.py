"""Entries that readers are not shown: those whose objects a run has marked.

Such an entry stays where it is, committed or staged. Later commits carry it on, and it is shown again once its
object was brought back. Who only looks sees less; whatever decides what is kept looks at everything.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Protocol

from desilt.lake.core import Core
from desilt.records import removals
from desilt.records.database import Transaction
from desilt.sstable.columns import entry_columns
from desilt.sstable.records import paired
from desilt.sstable.table import RAW
from desilt.sstable.values import decode_entry

FIRST, MOST = 16, 1_000  # read ahead: who seeks from folder to folder needs few, who goes on needs many
AS_COLUMNS = 100  # from so many on, decoding them together is quicker

Record = tuple[bytes, bytes]
Hidden = Callable[[Sequence[str]], set[str]]
"""Those of some addresses whose entries are not to be shown."""


class Records(Protocol):
    """Keys and values in order, to be taken one by one; it never goes back."""

    def next(self) -> Record | None: ...

    def seek(self, key: bytes) -> None: ...


def hides(tx: Transaction, core: Core, *, gone: bool) -> bool:
    """Whether anything may have to be left out; the one question that is asked where no run ever marked anything."""
    return not gone and removals.hides_any(tx, core.uid)


def at_once(tx: Transaction, core: Core, *, gone: bool) -> Hidden | None:
    """What is hidden in the snapshot ``tx``; None: everything is shown."""
    return partial(removals.hidden_among, tx, core.uid) if hides(tx, core, gone=gone) else None


def by_now(core: Core) -> Hidden:
    """What is hidden whenever that is asked, for those who keep no snapshot while they read."""

    def hidden(addresses: Sequence[str]) -> set[str]:
        with core.database.read() as tx:
            return removals.hidden_among(tx, core.uid, addresses)

    return hidden


class Shown:
    """``records`` without those that are hidden: read ahead, to ask for many at a time."""

    def __init__(self, records: Records, hidden: Hidden) -> None:
        self._records, self._hidden = records, hidden
        self._page: list[Record] = []
        self._at = 0
        self._upto = b""  # the last key that was read, shown or not
        self._size = FIRST

    def next(self) -> Record | None:
        while self._at == len(self._page):
            if not self._read_on():
                return None
        self._at += 1
        return self._page[self._at - 1]

    def seek(self, key: bytes) -> None:
        if key <= self._upto:
            self._at = max(self._at, bisect_left(self._page, key, key=lambda record: record[0]))
        else:
            self._records.seek(key)
            self._page, self._at, self._size = [], 0, FIRST

    def _read_on(self) -> bool:
        read = list(islice(iter(self._records.next, None), self._size))
        if not read:
            return False
        found = addresses(read)
        hidden = self._hidden(found)
        self._page = [record for record, address in zip(read, found, strict=True) if address not in hidden]
        self._at, self._upto, self._size = 0, read[-1][0], min(2 * self._size, MOST)
        return True


def addresses(records: Sequence[Record]) -> list[str]:
    """Where the objects of some entries are."""
    if len(records) < AS_COLUMNS:
        return [decode_entry(key, value).address for key, value in records]
    found: list[str] = entry_columns(paired(records, RAW))["address"].to_pylist()
    return found
