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
from desilt.jobs import outcomes
from desilt.lake import changes, commits, journal, locks, moves, repositories, restored, staging, watermarks
from desilt.lake.change import Change, read
from desilt.lake.changes import RunBegan
from desilt.lake.journal import Known
from desilt.lake.ledger import RunRow
from desilt.lake.repository import Repository
from desilt.runs.plan import Plan
from desilt.sources.inventory import branch_uids, partitions
from desilt.sources.spread import Nobody, Watch

NOBODY = Nobody()
RELEASES = {changes.HoldLifted, changes.BranchDeleted, changes.TagDeleted}


@dataclass(frozen=True, slots=True)
class Survey:
    """What the store knows and the database does not."""

    known: Known
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


def survey(repository: Repository) -> Survey:
    """How database and store differ; nothing is changed."""
    core = repository.core
    last, newer = journal.newer(core)
    newest, broken, line = max([last.generation, *newer]), "", list[Record]()
    try:
        journal.verify(core)
        line = journal.line(core, last, newest) if newer else []
    except (WentBack, Unreadable) as error:
        broken = str(error)
    folders = [
        folder for uid in branch_uids(core.store, core.prefix) for folder in partitions(core.store, core.prefix, uid)
    ]
    runs, unreadable = outcomes.forgotten(repository) if newer or broken else ([], [])
    return Survey(
        last,
        _copied_at(repository, last),
        tuple(line),
        newest,
        tuple(restored.unknown_partitions(core, folders)),
        tuple(runs),
        tuple(unreadable),
        broken,
    )


def recover(repository: Repository, *, give_up: bool = False, watch: Watch = NOBODY) -> Recovered:
    """Bring the database up to what the store knows; cut off and done again, it ends the same.

    With ``give_up``, what the journal has beyond the database counts no longer.
    """
    core = repository.core
    with repository.database.write() as tx:
        locks.leap(tx, repository.uid)  # whoever swept with the lost database has no fence here
    with locks.held(repository.database, repository.uid, run="recover") as lock:
        found = survey(repository)
        if not found:
            return Recovered(kept_since=restored.kept_since(core))
        if found.broken and not give_up:
            raise Unreadable(f"what is newer cannot be brought back: {found.broken}")
        with repository.database.write() as tx:
            locks.check(tx, lock)
            since = restored.keep_since(tx, core, found.copied_at)
            restored.recovered(tx, core)
            restored.adopt(tx, found.partitions)
            watermarks.forget_all(tx, repository.uid)
        watch.begins("removals")
        removed = outcomes.remember(repository, lock, found.runs, _rows(found.moves), watch)
        watch.begins("moves")
        mark = moves.new_intent(core)
        with repository.database.write() as tx:  # all or nothing: nobody takes a part of it for a move cut off
            tx.lock(core.uid)
            locks.check(tx, lock)
            dropped = staging.drop_gone(tx, repository.uid)
            made = () if give_up else _surely_made(found.moves)
            if made:
                restored.set_aside(tx, core, after=made[-1].at)
                repositories.set_clock(tx, repository.uid, made[-1].at)  # a manual one went back with the rest
            for record in made:
                moves.redo(tx, core, record, late=True)
                watch.advance(1)
            if found.broken or found.newest > repositories.generation(tx, repository.uid):
                moves.give_up(tx, core, mark, found.newest)
    commits_made = sum(isinstance(change, changes.Committed) for change in _changes(made))
    return Recovered(len(made), commits_made, len(found.runs), removed, len(found.partitions), dropped, since)


def _surely_made(records: Sequence[Record]) -> Sequence[Record]:
    """All of these moves but for the last, if it took something's keeper away.

    It may have been cut off, and its keeper seen since: nobody can tell. Left out, it keeps too much at worst.
    """
    doubtful = records and {type(change) for change in _changes(records[-1:])} & RELEASES
    return records[:-1] if doubtful else records


def _rows(records: Sequence[Record]) -> dict[str, RunRow]:
    """The runs that began in these moves."""
    return {change.run.id: change.run for change in _changes(records) if isinstance(change, RunBegan)}


def _changes(records: Sequence[Record]) -> list[Change]:
    return [read(said) for record in records for said in record.changes]


def _copied_at(repository: Repository, last: Known) -> datetime:
    """When the last move was made that the database knows."""
    if last.generation >= last.journal_from:
        try:
            return journal.read(repository.core, last.generation).at
        except Unreadable:
            pass
    with repository.database.read() as tx:
        return max(commit.created_at for commit in commits.every(tx, repository.uid))
