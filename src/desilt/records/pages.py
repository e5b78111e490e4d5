"""The ledger's tombstones in parts: whoever wants all of them reads them run by run, some batches at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from desilt.records.database import Row, Transaction
from desilt.records.removals import RECORD

AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class Page:
    """The tombstones of neighbouring batches of a run, and how many they are."""

    run: str
    first: int  # batch
    last: int
    rows: int


def pages(tx: Transaction, repository: str, *, most: int) -> list[Page]:
    """All tombstones, in parts of about ``most`` rows, or of one batch."""
    found: list[Page] = []
    counted = tx.each(
        "SELECT run, batch, COUNT(*) FROM tombstones WHERE repository = ? GROUP BY run, batch ORDER BY run, batch",
        repository,
    )
    for run, batch, rows in counted:
        last = found[-1] if found else None
        if last is not None and last.run == run and last.rows + rows <= most:
            found[-1] = Page(run, last.first, batch, last.rows + rows)
        else:
            found.append(Page(run, batch, batch, rows))
    return found


def read(tx: Transaction, repository: str, page: Page) -> Iterator[list[Row]]:
    """Its rows, as RECORD, some at a time."""
    rows = tx.each(
        f"SELECT {RECORD} FROM tombstones WHERE repository = ? AND run = ? AND batch BETWEEN ? AND ?",
        *(repository, page.run, page.first, page.last),
    )
    while some := list(islice(rows, AT_ONCE)):
        yield some
