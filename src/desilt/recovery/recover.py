"""A database that was restored from a copy, brought up to what the store knows.

The journal has every commit, ref, hold and policy since; the folders of runs have
what was removed since. What was staged since is lost: its objects stay, until
somebody says that they may go.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from desilt.domain.record import Record
from desilt.errors import Unreadable, WentBack
from desilt.executors.executor import Nobody, Watch
from desilt.inventory.listing import every_partition
from desilt.jobs.situation import check_clock
from desilt.lake import changes, commits, journal, moves, repositories, restored, staging
from desilt.lake.change import Change, read
from desilt.lake.events import DatabaseRecovered, RunBegan
from desilt.lake.journal import LastMove
from desilt.lake.layout import DATA
from desilt.lake.repository import LakeRepository
from desilt.records import locks, watermarks
from desilt.records.ledger import RunRow
from desilt.recovery import discards, marks, outcomes
from desilt.runs.plan import Plan

NOBODY = Nobody()
RELEASES = {changes.HoldLifted, changes.BranchDeleted, changes.TagDeleted}


@dataclass(frozen=True, slots=True)
class Survey:
    """What the store knows and the database does not."""

    known: LastMove
    copied_at: datetime  # the copy was made at or after this moment
    moves: tuple[Record, ...]  # in order
    newest: int  # the last generation that has a record
    partitions: tuple[str, ...]
    runs: tuple[Plan, ...]
    unreadable: tuple[str, ...] = ()  # runs whose plans cannot be read: what they removed is not known
    broken: str = ""  # why the journal cannot be followed

    def __bool__(self) -> bool:
        return bool(self.moves or self.partitions or self.runs or self.broken or self.newest > self.known.generation)


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was brought back."""

    moves: int = 0
    commits: int = 0
    runs: int = 0
    removed: int = 0  # objects, by those runs
    partitions: int = 0
    dropped: int = 0  # staged entries whose objects those runs have removed
    kept_since: datetime | None = None  # what was uploaded since then and is not committed stays


def survey(repository: LakeRepository) -> Survey:
    """How database and store differ; nothing is changed."""
    core = repository.core
    last, newer = journal.newer(core)
    newest, broken, line = max([last.generation, *newer]), "", list[Record]()
    try:
        journal.verify(core)
        line = journal.line(core, last, newest) if newer else []
        if len(line) == 1 and line[0].mark in last.intents:  # under way or cut off: the next mover sees to it
            line, newest = [], last.generation
    except (WentBack, Unreadable) as error:
        broken = str(error)
    runs, unreadable = outcomes.forgotten(repository) if newer or broken else ([], [])
    return Survey(
        last,
        _copied_at(repository, last),
        tuple(line),
        newest,
        tuple(restored.unknown_partitions(core, every_partition(core.store, core.prefix + DATA))),
        tuple(runs),
        tuple(unreadable),
        broken,
    )


def recover(repository: LakeRepository, *, give_up: bool = False, watch: Watch = NOBODY) -> Recovered:
    """Bring the database up to what the store knows; cut off and done again, it ends the same.

    With ``give_up``, what the journal has beyond the database counts no longer.
    """
    core = repository.core
    check_clock(repository)
    with locks.held(repository.database, repository.uid, run="recover", leap=True) as lock:
        found = survey(repository)
        if not found:
            return Recovered(kept_since=restored.kept_since(core))
        if found.broken and not give_up:
            raise Unreadable(f"what is newer cannot be brought back: {found.broken}")
        outcomes.check_still(repository, found.runs)
        discards.check_still(repository, found.moves)
        with repository.database.write() as tx:
            locks.check(tx, lock)
            since = restored.keep_since(tx, core, found.copied_at)
            restored.adopt(tx, found.partitions)
            watermarks.forget_all(tx, repository.uid)
        watch.begins("removals")
        removed = outcomes.remember(repository, lock, found.runs, _rows(found.moves), watch)
        removed += discards.remember(repository, lock, _rows(found.moves))
        tags = marks.known_tags(repository, _changes(found.moves), found.runs)
        marks.bring_back(repository, lock, None if found.broken else _changes(found.moves), tags)
        watch.begins("moves")
        mark, tables = moves.new_intent(core), moves.tables(core, found.moves[-1]) if found.moves else None
        with repository.database.write() as tx:  # all or nothing: nobody takes a part of it for a move cut off
            tx.lock(core.uid)
            locks.check(tx, lock)
            # before moves drop what is staged, for they may have committed it
            discards.release(tx, repository.uid, at=core.clock())
            dropped = staging.drop_gone(tx, repository.uid)
            made = () if give_up else found.moves
            if made:
                restored.set_aside(tx, core, first=made[0].at, last=made[-1].at)
                repositories.set_clock(tx, repository.uid, made[-1].at)  # a manual one went back with the rest
            for record in made[:-1]:
                moves.redo(tx, core, record, late=True)
                watch.advance(1)
            if made and not _took_a_keeper(made[-1]) and tables is not None and moves.fits(tx, core, made[-1], tables):
                moves.redo(tx, core, made[-1], late=True)
            else:
                made = made[:-1]
            moves.supersede(tx, core, mark, found.newest, DatabaseRecovered())
            restored.recovered(tx, core)
        marks.remember_tags(repository, tags)
    commits_made = sum(isinstance(change, changes.Committed) for change in _changes(made))
    return Recovered(len(made), commits_made, len(found.runs), removed, len(found.partitions), dropped, since)


def _took_a_keeper(last: Record) -> bool:
    """Whether the last move may have been cut off, and what it took away be seen since: left out, it does no harm."""
    return bool({type(change) for change in _changes([last])} & RELEASES)


def _rows(records: Sequence[Record]) -> dict[str, RunRow]:
    """The runs that began in these moves."""
    return {change.run.id: change.run for change in _changes(records) if isinstance(change, RunBegan)}


def _changes(records: Sequence[Record]) -> list[Change]:
    return [read(said) for record in records for said in record.changes]


def _copied_at(repository: LakeRepository, last: LastMove) -> datetime:
    """When the last move was made that the database knows."""
    if last.generation >= last.journal_from:
        try:
            return journal.read(repository.core, last.generation).at
        except Unreadable:
            pass
    with repository.database.read() as tx:
        return max(commit.created_at for commit in commits.every(tx, repository.uid))
