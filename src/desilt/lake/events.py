"""What a journal has besides changes: runs that begin, what comes back, recoveries, and what was given up."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from desilt.domain.times import microseconds, moment
from desilt.lake import discards
from desilt.lake.change import Change, Moment
from desilt.records import ledger
from desilt.records.database import Transaction
from desilt.records.ledger import RunRow, RunState


@dataclass(frozen=True, slots=True)
class RunBegan(Change):
    """A run was let pass by the guard, and begins to remove."""

    row: Mapping[str, Any]

    def apply(self, tx: Transaction, move: Moment) -> None:
        ledger.begin(tx, move.repository, self.run)

    @property
    def run(self) -> RunRow:
        facts = dict(self.row)
        return RunRow(**{**facts, "started_at": moment(facts["started_at"]), "state": RunState(facts["state"])})

    def __str__(self) -> str:
        return f"run {self.row['id']} of {self.row['job']}"


def run_began(row: RunRow) -> RunBegan:
    return RunBegan({**asdict(row), "started_at": microseconds(row.started_at)})


@dataclass(frozen=True, slots=True)
class BroughtBack(Change):
    """What a run had removed is about to be put where it was: a database that does not know would remove it again."""

    run: str

    def apply(self, tx: Transaction, move: Moment) -> None:
        """Each tombstone is lifted once its object is there."""

    def __str__(self) -> str:
        return f"run {self.run} brought back from the trash"


@dataclass(frozen=True, slots=True)
class MarksFollowed(Change):
    """What runs marked is about to be tagged, or removed: a database that does not know would show it."""

    run: str

    def apply(self, tx: Transaction, move: Moment) -> None:
        """What becomes of each is written down as it is done."""

    def __str__(self) -> str:
        return f"run {self.run} follows up what is marked"


@dataclass(frozen=True, slots=True)
class DiscardsClaimed(Change):
    """A worker of hard delete removes so many objects: a database that does not know would show some of them."""

    run: str
    number: int
    objects: int

    def apply(self, tx: Transaction, move: Moment) -> None:
        """Late: whatever was due then may be gone, and nobody brings it back."""
        discards.claim_due(tx, move.repository, self.run, self.number, at=move.at)

    def __str__(self) -> str:
        return f"{self.objects} objects claimed by run {self.run}"


@dataclass(frozen=True, slots=True)
class DiscardsRestored(Change):
    """What hard delete had condemned is staged again: a database that does not know would remove it."""

    objects: int

    def apply(self, tx: Transaction, move: Moment) -> None:
        """Late: what was staged again is not in the journal, so nothing that waits is removed."""
        discards.forget_all(tx, move.repository, at=move.at)

    def __str__(self) -> str:
        return f"{self.objects} objects restored that hard delete had condemned"


@dataclass(frozen=True, slots=True)
class DatabaseRecovered(Change):
    """Whoever still works with the database that was lost finds a move here that it does not know."""

    def apply(self, tx: Transaction, move: Moment) -> None:
        """What was brought back are moves of their own."""

    def __str__(self) -> str:
        return "database recovered"


@dataclass(frozen=True, slots=True)
class GivenUp(Change):
    """Records up to this one count no longer: of moves that were cut off, or lost with a database, not wanted back."""

    newest: int

    def apply(self, tx: Transaction, move: Moment) -> None:
        """Nothing: whoever follows the journal passes over them."""

    def __str__(self) -> str:
        return f"moves up to {self.newest} given up"
