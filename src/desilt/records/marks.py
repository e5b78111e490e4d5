"""Tombstones of objects that were marked: hidden from readers at once, and removed later by the store, or by a run.

They are those of runs whose action is ``mark``, whatever state they have come to.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from desilt.domain.times import moment
from desilt.records.database import Transaction
from desilt.records.ledger import RunState
from desilt.records.removals import MARKED, UNSETTLED


@dataclass(frozen=True, slots=True)
class MarkCount:
    """So many objects that runs marked are in a state."""

    state: str
    objects: int
    bytes: int
    oldest: datetime  # when the first of them was marked


def marking_runs(tx: Transaction, repository: str, *states: str) -> list[str]:
    """The runs that marked what is in one of ``states`` now, the oldest first."""
    marks = ", ".join("?" * len(states))
    rows = tx.rows(
        "SELECT id FROM runs WHERE repository = ? AND action = 'mark' AND EXISTS (SELECT 1 FROM tombstones AS t "
        f"WHERE t.repository = runs.repository AND t.run = runs.id AND t.state IN ({marks})) ORDER BY id DESC",
        *(repository, *states),
    )
    return [str(row[0]) for row in rows]


def marked(tx: Transaction, repository: str) -> list[str]:
    """The addresses that are marked, and still to go."""
    rows = tx.rows(f"SELECT address FROM tombstones WHERE repository = ? AND {UNSETTLED} AND {MARKED}", repository)
    return [str(row[0]) for row in rows]


def ever_marked(tx: Transaction, repository: str) -> list[str]:
    """The addresses that runs marked, and that were not brought back."""
    rows = tx.each(
        "SELECT t.address FROM tombstones AS t JOIN runs ON runs.repository = t.repository AND runs.id = t.run "
        "WHERE t.repository = ? AND runs.action = 'mark' AND t.state <> 'restored'",
        repository,
    )
    return [str(row[0]) for row in rows]


def counted(tx: Transaction, repository: str) -> list[MarkCount]:
    """What became of all that was ever marked, as far as the ledger knows."""
    rows = tx.rows(
        "SELECT t.state, COUNT(*), COALESCE(SUM(t.size_bytes), 0), MIN(t.condemned_at) FROM tombstones AS t "
        "JOIN runs ON runs.repository = t.repository AND runs.id = t.run "
        "WHERE t.repository = ? AND runs.action = 'mark' GROUP BY t.state ORDER BY t.state",
        repository,
    )
    return [MarkCount(str(state), int(count), int(size), moment(at)) for state, count, size, at in rows]


def adopt(tx: Transaction, repository: str) -> int:
    """What a run had condemned to be marked, and was given up before it wrote that down, is marked; how many."""
    return tx.execute(
        "UPDATE tombstones SET state = 'marked' WHERE repository = ? AND state = 'condemned' AND run IN "
        "(SELECT id FROM runs WHERE repository = ? AND action = 'mark' AND state <> ?)",
        *(repository, repository, RunState.SWEEPING),
    )


def remark(
    tx: Transaction, repository: str, run: str, addresses: Iterable[str], state: str, *, only: Sequence[str]
) -> None:
    """What became of some that ``run`` marked, if they are in one of the states ``only``."""
    places = ", ".join("?" * len(only))
    tx.execute_many(
        f"UPDATE tombstones SET state = ? WHERE repository = ? AND address = ? AND run = ? AND state IN ({places})",
        ((state, repository, address, run, *only) for address in addresses),
    )
