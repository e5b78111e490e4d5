"""Staged references that one transaction drops, and the rule of hard delete at its end.

**The rule:** at the end of a transaction that dropped staged references, each dropped
address that is :mod:`~desilt.lake.fresh`, that no staging area of any branch points to
any more, sealed ones included, and that nobody ordered to be kept, is condemned.

At the end, and not before: a move drops its source first and stages it elsewhere then.
Whoever shares a branch with others first has the staged row to itself, then locks the
address, and only then looks for other references: in any other order, two who drop the
last two of them each see the other's.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from desilt.lake import discards, dropped
from desilt.records.database import Transaction


class By(StrEnum):
    """What drops a staged reference: the rule that the tombstone of the last one names."""

    OVERWRITTEN = "overwritten"
    REMOVED = "removed from its branch"
    RESET = "reset"
    BRANCH_DELETED = "branch deleted"
    HIDDEN = "hidden by a newer entry"  # of two staging areas that became one, or a commit
    NOTHING = "nothing to commit"


@dataclass(slots=True)
class Dropping:
    """Where something staged is dropped, when, and by what."""

    repository: str  # its uid
    branch: str  # its uid
    head: str  # of the branch
    by: By
    at: datetime
    fresh: set[str] = field(default_factory=set, init=False)  # the fresh ones of the dropped addresses

    def note(self, tx: Transaction, where: str, *values: object, by: By | None = None) -> None:
        """The rows of ``staging`` that a condition chooses, at most one of each path, are about to go.

        What is noted twice was dropped by what was said first.
        """
        dropped.write(tx, self.repository, self.branch, self.at, where, *values)
        why = by or self.by
        self.fresh |= set(discards.note(tx, self.repository, self.branch, self.head, why, self.at, where, *values))


@contextmanager
def dropping(tx: Transaction, repository: str, branch: str, *, head: str, by: By, at: datetime) -> Iterator[Dropping]:
    """What is dropped in this block is dropped by one transaction, which does nothing to staging areas after it."""
    found = Dropping(repository, branch, head, by, at)
    yield found
    if found.fresh:
        discards.condemn(tx, repository, found.fresh, at=at)
