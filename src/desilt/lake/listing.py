"""Entries in path order: committed ones with staged ones on top, directories folded on request."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from desilt.domain.entry import Entry, after_prefix, decode_path
from desilt.lake import staging
from desilt.lake.hidden import Hidden, Records, Shown
from desilt.records.database import Transaction
from desilt.sstable.columns import decode_entries
from desilt.sstable.ranges import Ranges
from desilt.sstable.records import paired
from desilt.sstable.table import RAW

PAGE = 1_000
Pair = tuple[bytes, bytes | None]
Scan = Callable[[bytes], Iterator[list[Pair]]]


@dataclass(frozen=True, slots=True)
class View:
    """What a ref shows: a metarange, and staging areas on top of it, newest first."""

    metarange: str
    tokens: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CommonPrefix:
    """One or more paths that go on after a delimiter."""

    path: str


def lookup(tx: Transaction, ranges: Ranges, view: View, key: bytes) -> bytes | None:
    """What ``key`` means in ``view``."""
    staged, value = staging.find(tx, view.tokens, key)
    return value if staged else ranges.get(view.metarange, key)


def listing(
    tx: Transaction,
    ranges: Ranges,
    view: View,
    *,
    hidden: Hidden | None,
    prefix: bytes = b"",
    delimiter: bytes = b"",
    after: bytes = b"",
) -> Iterator[Entry | CommonPrefix]:
    """Entries below ``prefix`` and past ``after``; with a delimiter, what lies behind it is folded and skipped.

    Those that are ``hidden`` are left out, and so is what would be folded of nothing else.
    """
    start = max(prefix, after + b"\0" if after else b"")
    everything = Overlaid(_committed(ranges, view, prefix), _staged(tx, view, prefix), start)
    found = _folded(Shown(everything, hidden) if hidden else everything, prefix, delimiter, after)
    while page := list(islice(found, PAGE)):
        records = paired([pair for pair in page if pair[1] is not None], RAW)
        entries = iter(decode_entries(records))
        for key, value in page:
            yield CommonPrefix(decode_path(key)) if value is None else next(entries)


def _folded(records: Records, prefix: bytes, delimiter: bytes, after: bytes) -> Iterator[Pair]:
    """Keys with their values, and folded ones with None."""
    while (pair := records.next()) is not None:
        key = pair[0]
        cut = key.find(delimiter, len(prefix)) if delimiter else -1
        if cut < 0:
            yield pair
            continue
        folded = key[: cut + len(delimiter)]
        if not after.startswith(folded):
            yield folded, None
        beyond = after_prefix(folded)
        if beyond is None:
            return
        records.seek(beyond)


class Cursor:
    """A place in sorted pages of pairs; moving on inside a page is free, past it a new scan."""

    def __init__(self, scan: Scan, start: bytes) -> None:
        self._scan = scan
        self._pages = scan(start)
        self._page: list[Pair] = []
        self._at = 0

    def head(self) -> Pair | None:
        while self._at >= len(self._page):
            page = next(self._pages, None)
            if page is None:
                return None
            self._page, self._at = page, 0
        return self._page[self._at]

    def advance(self) -> None:
        self._at += 1

    def seek(self, key: bytes) -> None:
        if self.head() is None:
            return
        if self._page[-1][0] >= key:
            self._at = max(self._at, bisect_left(self._page, key, key=lambda pair: pair[0]))
        else:
            self._pages, self._page, self._at = self._scan(key), [], 0


class Overlaid:
    """Two cursors as one: where both have a key, the upper one counts; its None hides it."""

    def __init__(self, lower: Scan, upper: Scan, start: bytes) -> None:
        self._lower, self._upper = Cursor(lower, start), Cursor(upper, start)

    def next(self) -> tuple[bytes, bytes] | None:
        while True:
            low, high = self._lower.head(), self._upper.head()
            if low is None and high is None:
                return None
            if high is None or (low is not None and low[0] < high[0]):
                assert low is not None
                chosen = low
                self._lower.advance()
            else:
                chosen = high
                self._upper.advance()
                if low is not None and low[0] == high[0]:
                    self._lower.advance()
            if chosen[1] is not None:
                return chosen[0], chosen[1]

    def seek(self, key: bytes) -> None:
        self._lower.seek(key)
        self._upper.seek(key)


def _committed(ranges: Ranges, view: View, prefix: bytes) -> Scan:
    def scan(start: bytes) -> Iterator[list[Pair]]:
        for batch in ranges.scan(view.metarange, start, after_prefix(prefix)):
            yield list(zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True))

    return scan


def _staged(tx: Transaction, view: View, prefix: bytes) -> Scan:
    def scan(start: bytes) -> Iterator[list[Pair]]:
        pairs = staging.scan(tx, view.tokens, prefix=prefix, start=start)
        while page := list(islice(pairs, PAGE)):
            yield page

    return scan
