"""Moves: the only transactions that change refs, commits, holds and policies, each with its record in the journal.

The database learns first that a move is coming. Its record is put beside the objects
when everything else of the transaction is done, and before it commits. Cut off
between the two, the record stays, and whoever comes next carries the move out, or
gives it up.
"""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime

from desilt.domain.record import Record
from desilt.errors import Conflict, DesiltError, MissingTable, StorageFailed, WentBack
from desilt.lake import changes, commits, intents, journal, refs, repositories, restored, returned
from desilt.lake.change import Change, Moment, facts, read
from desilt.lake.core import Core
from desilt.lake.events import GivenUp
from desilt.records import removals as tombstones
from desilt.records.database import Transaction
from desilt.records.holds import HoldKind

MARK_BYTES = 8
FEW = 10  # records that the database does not know; more are not read to find out what they are


class Move:
    """A move under way, in its transaction."""

    def __init__(self, tx: Transaction, core: Core, mark: str, *, number: int | None = None) -> None:
        self.tx, self._core, self._changes = tx, core, list[Change]()
        self.generation, self._follows = repositories.begin_move(tx, core.uid, number=number)
        self._moment = Moment(core.uid, self.generation, mark, core.clock())
        self.on_record = False

    @property
    def at(self) -> datetime:
        return self._moment.at

    def do(self, change: Change) -> None:
        """Carry ``change`` out, as part of this move."""
        change.apply(self.tx, self._moment)
        self._changes.append(change)

    def note(self, change: Change) -> None:
        """``change`` is what this transaction has done; carried out late, it is done as it says itself."""
        self._changes.append(change)

    def finish(self) -> None:
        """Put the record beside the objects; if nothing was done, there was no move."""
        intents.forget(self.tx, self._core.uid, self._moment.mark)
        if not self._changes:
            repositories.undo_move(self.tx, self._core.uid, self._follows)
            return
        repositories.end_move(self.tx, self._core.uid, self.generation, self._moment.mark)
        before = repositories.mark_at(self.tx, self._core.uid, self._follows)
        said = tuple(facts(change) for change in self._changes)
        record = Record(self.generation, self._follows, before, self._moment.mark, self.at, said)
        self.on_record = True  # from here on, perhaps
        try:
            mine = journal.write(self._core, record)
        except StorageFailed as error:
            raise StorageFailed(f"{error}; it may have been done or not: look before you try again") from error
        if not mine:
            raise Conflict(f"move {self.generation} of somebody else was cut off; nothing was done, try again")


@contextmanager
def moving(core: Core, *, alone: bool = False) -> Iterator[Move]:
    """A transaction of its own that moves something; ``alone``, while nobody stages anything."""
    mark, made = intend(core), None
    try:
        with core.database.write() as tx:
            if alone:
                repositories.condemning(tx, core.uid)
            with moving_in(tx, core, mark) as made:
                yield made
    except DesiltError:
        if made is None or not made.on_record:  # it was refused
            with suppress(StorageFailed), core.database.write() as tx:
                intents.forget(tx, core.uid, mark)
        raise


def intend(core: Core) -> str:
    """Settle the journal, and let the database know that a move is coming: its mark."""
    settle(core)
    return new_intent(core)


def new_intent(core: Core) -> str:
    """The mark of a move that is coming, of whatever is in the journal."""
    mark = new_mark()
    with core.database.write() as tx:
        intents.write(tx, core.uid, mark)
    return mark


def new_mark() -> str:
    return secrets.token_hex(MARK_BYTES)


@contextmanager
def moving_in(tx: Transaction, core: Core, mark: str, *, number: int | None = None) -> Iterator[Move]:
    """A move within ``tx``, and the last that is done in it, of a ``mark`` that the database knows by now."""
    made = Move(tx, core, mark, number=number)
    yield made
    made.finish()


def cut_off(core: Core) -> Record | None:
    """The move that is on record, and that the database only knew to be coming.

    :class:`WentBack` where it knows nothing of it, or where there are more than one.
    """
    last, newer = journal.newer(core)
    if not newer:
        return None
    line = journal.line(core, last, newer[-1]) if len(newer) <= FEW else []
    if len(line) == 1 and line[0].mark in last.intents:
        return line[0]
    some = f"{len(newer):,} moves" if len(newer) > 1 else "a move"
    raise WentBack(
        f"the journal has {some} after {last.generation}, the last one that the database knows "
        f"(the newest: {journal.told(journal.read(core, newer[-1]))})"
    )


def settle(core: Core) -> None:
    """Carry out the move that was cut off, if there is one; refuse where the database lacks anything else.

    One that releases something is given up: whoever wanted that was never told that it was done, and has
    seen since that it was not.
    """
    record = cut_off(core)
    if record is None:
        return
    needed, mark = tables(core, record), new_intent(core)
    with core.database.write() as tx:
        tx.lock(core.uid)
        intents.forget(tx, core.uid, mark)
        if repositories.generation(tx, core.uid) != record.follows:
            return  # it was only under way
        if needed is None or _releases(record) or not fits(tx, core, record, needed) or not _sealed(tx, record):
            supersede(tx, core, mark, record.generation, GivenUp(record.generation))
            return
        redo(tx, core, record)
        if any(isinstance(read(said), changes.PolicySet) for said in record.changes):
            restored.ask_again(tx, core)  # whoever set it may have seen the other one since


def redo(tx: Transaction, core: Core, record: Record, *, late: bool = False) -> None:
    """Carry a move out again, as it is on record; ``late``, into a database that knows less than that move did."""
    _, before = repositories.begin_move(tx, core.uid, number=record.generation)
    if (before, repositories.mark_at(tx, core.uid, before)) != (record.follows, record.before):
        raise WentBack(f"move {record.generation} of the journal does not follow move {before}")
    moment = Moment(core.uid, record.generation, record.mark, record.at, core.clock() if late else None)
    for said in record.changes:
        read(said).apply(tx, moment)
    repositories.end_move(tx, core.uid, record.generation, record.mark)
    intents.forget(tx, core.uid, record.mark)


def supersede(tx: Transaction, core: Core, mark: str, newest: int, change: Change) -> None:
    """Put a record behind ``newest`` that follows the last move the database knows: those between count no longer."""
    with moving_in(tx, core, mark, number=newest + 1) as made:
        made.do(change)


def check(core: Core) -> None:
    """Refuse to go on where the journal has a move that the database neither knows nor expects, or another one.

    Nothing is written. Whoever removes something settles the journal as well.
    """
    cut_off(core)
    journal.verify(core)


def _sealed(tx: Transaction, record: Record) -> bool:
    """Whether the staging areas that a move takes are still there: what was reset does not become a commit."""
    taken = [change for change in map(read, record.changes) if isinstance(change, changes.AreasTaken)]
    return all(set(one.tokens) <= refs.sealed_for(tx, one.branch) for one in taken)


def _releases(record: Record) -> bool:
    return any(read(said).releases for said in record.changes)


def tables(core: Core, record: Record) -> list[str] | None:
    """The tables of the commits that a move makes; None if one is not there any more."""
    made = [read(said) for said in record.changes]
    try:
        return [
            address
            for one in made
            if isinstance(one, changes.Committed)
            for address in returned.stored_tables(core, one.metarange)
        ]
    except MissingTable:
        return None


def fits(tx: Transaction, core: Core, record: Record, tables: Sequence[str]) -> bool:
    """Whether a move may be carried out late: what it needs, its ``tables`` too, is still there.

    Nobody knew of it, so what it needs may have been collected meanwhile.
    """
    new, wanted, back = set[str](), set[str](), set[tuple[str, str]]()
    for change in (read(said) for said in record.changes):
        match change:
            case changes.Committed():
                new.add(change.id)
                wanted |= set(change.parents)
            case changes.BranchMade() | changes.HeadMoved():
                wanted.add(change.head)
            case changes.TagMade():
                wanted.add(change.target)
            case changes.HoldMade(kind=HoldKind.REF):
                wanted.add(change.value)
            case changes.TablesBack():
                back |= {(run, address) for run, address in change.stones}
    missing = wanted - new - commits.there(tx, core.uid, sorted(wanted))
    stones = tombstones.found_in(tx, core.uid, tables)
    return not missing and all((stone.run, address) in back for address, stone in stones.items())
