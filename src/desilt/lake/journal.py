"""Every move of a repository, on record beside its objects: what the database is compared with.

``_desilt/journal/<thousands>/<generation>.json``, each written once and never
replaced, before the transaction that makes the move commits. So whatever the
database knows the store knows too, but for one: a move that was cut off between
the two. A database that lacks more than that was restored from a copy.
"""

import re
from dataclasses import dataclass

from desilt.domain import record as records
from desilt.domain.record import Record
from desilt.errors import JournalBroken, NotFound, WentBack
from desilt.lake import changes, intents, repositories
from desilt.lake.change import read as read_change
from desilt.lake.core import Core
from desilt.records.database import Transaction

FOLDER = "_desilt/journal/"
TO_A_FOLDER = 1_000
NAME = re.compile(rf"{FOLDER}\d{{12}}/(\d{{15}})\.json")


@dataclass(frozen=True, slots=True)
class LastMove:
    """The last move that a database knows."""

    generation: int
    mark: str
    journal_from: int
    intents: frozenset[str] = frozenset()  # the marks of moves that it knows to be coming


def name_of(generation: int) -> str:
    """Below the repository's prefix; names sort as generations do."""
    return f"{FOLDER}{generation // TO_A_FOLDER:012d}/{generation:015d}.json"


def write(core: Core, record: Record) -> bool:
    """Put ``record`` into the journal; False if another has its number."""
    name = name_of(record.generation)
    if core.store.put_new(core.prefix + name, records.write(record, core.secret)):
        return True
    return read(core, record.generation).mark == record.mark  # the answer to an earlier try was lost


def read(core: Core, generation: int) -> Record:
    """The record of a move; :class:`JournalBroken` where there is none."""
    name = name_of(generation)
    try:
        data = core.store.get(core.prefix + name)
    except NotFound:
        raise JournalBroken(generation, core.name) from None
    return records.read(data, core.secret, generation=generation, name=name)


def known(core: Core) -> LastMove:
    """What the database says."""
    with core.database.read() as tx:
        generation = repositories.generation(tx, core.uid)
        mark = repositories.mark_at(tx, core.uid, generation)
        return LastMove(generation, mark, repositories.journal_from(tx, core.uid), intents.every(tx, core.uid))


def after(core: Core, generation: int) -> list[int]:
    """The generations beyond ``generation`` that have a record, in order."""
    found = []
    for batch in core.store.list(core.prefix + FOLDER, after=core.prefix + name_of(generation)):
        for key in batch["key"].to_pylist():
            match = NAME.fullmatch(key.removeprefix(core.prefix))
            if match is not None:  # else it is what a put left that was killed
                found.append(int(match[1]))
    return found


def has_next(core: Core, tx: Transaction) -> bool:
    """Whether there is a record of the move after the last one that ``tx`` knows."""
    try:
        core.store.head(core.prefix + name_of(repositories.generation(tx, core.uid) + 1))
    except NotFound:
        return False
    return True


def first(core: Core) -> int | None:
    """The lowest generation that has a record."""
    for batch in core.store.list(core.prefix + FOLDER):
        for key in batch["key"].to_pylist():
            if match := NAME.fullmatch(key.removeprefix(core.prefix)):
                return int(match[1])
    return None


def newer(core: Core) -> tuple[LastMove, list[int]]:
    """The last move that the database knows, and the generations after it that the store has a record of.

    Listed first, then looked for in the database: a record is in the store before its move
    is in the database, and nobody makes the next one before that. So of these only the
    last may still be under way.
    """
    listed = after(core, known(core).generation)
    last = known(core)
    return last, [number for number in listed if number > last.generation]


def line(core: Core, last: LastMove, newest: int) -> list[Record]:
    """The records that lead from ``last`` to ``newest``, oldest first, without those that were given up."""
    found = [read(core, newest)]
    while found[-1].follows > last.generation:
        found.append(read(core, found[-1].follows))
    if (found[-1].follows, found[-1].before) != (last.generation, last.mark):
        raise WentBack(
            f"move {found[-1].generation} of the journal follows move {found[-1].follows}, "
            f"and the database is at another move {last.generation}",
            "restore a copy of the database that is of the same history; to give the journal's up, "
            "`desilt lake recover --give-up`",
        )
    return found[::-1]


def verify(core: Core) -> None:
    """Refuse to go on unless the last move that the database knows is the journal's, and none is from before it."""
    last = known(core)
    if last.journal_from and (early := first(core)) is not None and early < last.journal_from:
        raise WentBack(
            f"the journal has a move {early}, and begins with {last.journal_from} for this database, "
            "which was brought up to date from an older copy",
            "restore a copy of the database that was made since",
        )
    if last.generation >= last.journal_from and read(core, last.generation).mark != last.mark:
        raise WentBack(f"move {last.generation} of the journal is not the one that the database knows")


def told(record: Record) -> str:
    """What a move did, on one line."""
    done = [read_change(change) for change in record.changes]
    moved = [one for one in done if isinstance(one, changes.HeadMoved)]
    made = [one for one in done if isinstance(one, changes.Committed)]
    said = [f"{made[0]} on {moved[0].name!r}"] if made and moved else [str(one) for one in done]
    more = f" and {len(said) - 2} more" if len(said) > 2 else ""
    return f"{', '.join(said[:2])}{more}, {record.at:%Y-%m-%d %H:%M:%S} UTC"
