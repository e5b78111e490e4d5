"""Every run that began to sweep, batch by batch: what it asked for, and what came of it."""

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from datetime import datetime
from enum import StrEnum

from desilt.domain.times import microseconds, moment
from desilt.records.database import Row, Transaction

RUN = (
    "id, job, policy, action, started_at, ended_at, state, objects, bytes, fence, ended_fence, refs, edits, "
    "measure, stored_objects, stored_bytes, period, agreed"
)
BATCH = "number, file, asked, removed, gone, failed, held_again, removed_bytes, tables"


class RunState(StrEnum):
    SWEEPING = "sweeping"  # at work, or cut off
    SWEPT = "swept"
    PARTLY = "swept in part"  # some objects could not be removed
    ABANDONED = "abandoned"  # cut off, and not taken up again in time


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as the ledger remembers it, whether its folder is still there or not."""

    id: str
    job: str
    policy: str  # what it was told to do: plans of another policy are refused
    action: str
    started_at: datetime
    ended_at: datetime | None
    state: RunState
    objects: int  # planned
    bytes: int
    fence: int = 0  # of the lock, when it began
    ended_fence: int | None = None  # another one: it was cut off, and taken over
    refs: int = 0  # planned to go
    edits: int = 0  # commits planned to be edited, or to go
    measure: str = ""  # of what there was so much when it was planned
    stored_objects: int = 0
    stored_bytes: int = 0
    period: int | None = None  # microseconds: how long what it released had been kept at least
    agreed: int = 0  # 1: somebody raised a limit for it, and it needed that


@dataclass(frozen=True, slots=True)
class BatchRow:
    """So many objects that a run condemned together; ``asked`` of them it tried to remove."""

    number: int
    file: str  # their results, in the run's folder; "" until all are known
    asked: int = 0
    removed: int = 0
    gone: int = 0
    failed: int = 0
    held_again: int = 0  # condemned they were not: something holds them by now
    removed_bytes: int = 0
    tables: int = 0  # 1: they are ranges and metaranges


def begin(tx: Transaction, repository: str, run: RunRow) -> None:
    """Before anything is removed: the run is on record. Begun twice, it is begun once."""
    ended = None if run.ended_at is None else microseconds(run.ended_at)
    tx.execute(
        f"INSERT INTO runs (repository, {RUN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        *(repository, run.id, run.job, run.policy, run.action, microseconds(run.started_at), ended),
        *(run.state, run.objects, run.bytes, run.fence, run.ended_fence, run.refs, run.edits),
        *(run.measure, run.stored_objects, run.stored_bytes, run.period, run.agreed),
    )


def end(tx: Transaction, repository: str, run: str, state: RunState, *, at: datetime, fence: int) -> None:
    tx.execute(
        "UPDATE runs SET state = ?, ended_at = ?, ended_fence = ? WHERE repository = ? AND id = ?",
        *(state, microseconds(at), fence, repository, run),
    )


def find(tx: Transaction, repository: str, run: str) -> RunRow | None:
    row = tx.one(f"SELECT {RUN} FROM runs WHERE repository = ? AND id = ?", repository, run)
    return _run(row) if row else None


def every(tx: Transaction, repository: str, *, job: str | None = None) -> list[RunRow]:
    """All runs that swept, newest first."""
    where, values = (" AND job = ?", (job,)) if job else ("", ())
    return [
        _run(row)
        for row in tx.rows(f"SELECT {RUN} FROM runs WHERE repository = ?{where} ORDER BY id", repository, *values)
    ]


def sweeping(tx: Transaction, repository: str, *, job: str | None = None) -> list[RunRow]:
    """Those of them that are at work, or were cut off, newest first."""
    where, values = (" AND job = ?", (job,)) if job else ("", ())
    query = f"SELECT {RUN} FROM runs WHERE repository = ? AND state = ?{where} ORDER BY id"
    return [_run(row) for row in tx.rows(query, repository, RunState.SWEEPING, *values)]


def over(tx: Transaction, repository: str) -> list[tuple[str, str, int]]:
    """Those that are over and were to remove objects: id, job, and how many; newest first."""
    query = "SELECT id, job, objects FROM runs WHERE repository = ? AND objects > 0 AND state <> ? ORDER BY id"
    rows = tx.rows(query, repository, RunState.SWEEPING)
    return [(str(run), str(job), int(objects)) for run, job, objects in rows]


def newest(tx: Transaction, repository: str) -> set[str]:
    """The last run of each job."""
    rows = tx.rows("SELECT MIN(id) FROM runs WHERE repository = ? GROUP BY job", repository)  # ids count downwards
    return {str(row[0]) for row in rows}


def alike(tx: Transaction, repository: str, *, job: str, policy: str, since: datetime) -> list[RunRow]:
    """Runs that were at work at ``since`` or later; of earlier ones by ``job`` for ``policy``, the newest of each kind.

    Newest first. Runs are of a kind that did something or did not, to the same measure, by the same action, with
    the same period: what one of them says to a later plan, so do the others. So there are few, after years too.
    """
    lately, at = "(started_at >= ? OR ended_at >= ?)", microseconds(since)
    earlier = (  # ids count downwards
        "SELECT MIN(id) FROM runs WHERE repository = ? AND job = ? AND policy = ? AND started_at < ? "
        "GROUP BY action, measure, period, CASE WHEN objects > 0 OR refs > 0 OR edits > 0 THEN 1 ELSE 0 END"
    )
    query = f"SELECT {RUN} FROM runs WHERE repository = ? AND ({lately} OR id IN ({earlier})) ORDER BY id"
    return [_run(row) for row in tx.rows(query, repository, at, at, repository, job, policy, at)]


def batches(tx: Transaction, repository: str, run: str) -> list[BatchRow]:
    rows = tx.rows(f"SELECT {BATCH} FROM batches WHERE repository = ? AND run = ? ORDER BY number", repository, run)
    return [BatchRow(*row) for row in rows]


def batch(tx: Transaction, repository: str, run: str, number: int) -> BatchRow | None:
    row = tx.one(
        f"SELECT {BATCH} FROM batches WHERE repository = ? AND run = ? AND number = ?", repository, run, number
    )
    return BatchRow(*row) if row else None


def write_ahead(tx: Transaction, repository: str, run: str, ahead: BatchRow) -> None:
    """With a batch's tombstones: what is about to be tried."""
    tx.execute(
        f"INSERT INTO batches (repository, run, {BATCH}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        *(repository, run, *astuple(ahead)),
    )


def spare(tx: Transaction, repository: str, run: str, number: int, count: int) -> None:
    """Of a batch that was cut off, so many are not tried after all: they are held again."""
    tx.execute(
        "UPDATE batches SET asked = asked - ?, held_again = held_again + ? "
        "WHERE repository = ? AND run = ? AND number = ? AND file = ''",
        *(count, count, repository, run, number),
    )


def write_result(tx: Transaction, repository: str, run: str, done: BatchRow, *, at: datetime) -> bool:
    """What came of a batch; False if somebody wrote that already."""
    return bool(
        tx.execute(
            "UPDATE batches SET file = ?, removed = ?, gone = ?, failed = ?, removed_bytes = ?, recorded_at = ? "
            "WHERE repository = ? AND run = ? AND number = ? AND file = ''",
            *(done.file, done.removed, done.gone, done.failed, done.removed_bytes, microseconds(at)),
            *(repository, run, done.number),
        )
    )


def record(tx: Transaction, repository: str, run: str, number: int, *, at: datetime) -> None:
    """A batch that was written with its results: when that was."""
    tx.execute(
        "UPDATE batches SET recorded_at = ? WHERE repository = ? AND run = ? AND number = ?",
        *(microseconds(at), repository, run, number),
    )


def over_since(tx: Transaction, repository: str, run: str, number: int) -> datetime | None:
    """When a batch's results were written down, or its run was given up; None: it may still be at work."""
    row = tx.one(
        "SELECT recorded_at FROM batches WHERE repository = ? AND run = ? AND number = ?", repository, run, number
    )
    if row is not None and row[0] is not None:
        return moment(row[0])
    ended = find(tx, repository, run)
    return ended.ended_at if ended else None


def total(rows: Iterable[BatchRow]) -> BatchRow:
    """Several batches as one."""
    columns = list(
        zip(*((r.asked, r.removed, r.gone, r.failed, r.held_again, r.removed_bytes) for r in rows), strict=True)
    )
    return BatchRow(-1, "", *(sum(column) for column in columns))


def removed_since(
    tx: Transaction, repository: str, since: datetime, *, only: str | None = None, but: str | None = None
) -> tuple[int, int]:
    """Objects and bytes that runs removed at ``since`` or later, without ranges and metaranges.

    Of all jobs, ``only`` of one, or of all ``but`` one.
    """
    of_job = "run {} (SELECT id FROM runs WHERE runs.repository = batches.repository AND job = ?)"
    which = "" if only is None and but is None else f" AND {of_job.format('IN' if only else 'NOT IN')}"
    row = tx.one(
        "SELECT COALESCE(SUM(removed), 0), COALESCE(SUM(removed_bytes), 0) FROM batches "
        f"WHERE repository = ? AND recorded_at >= ? AND tables = 0{which}",
        *(repository, microseconds(since), *(one for one in (only, but) if one is not None)),
    )
    assert row is not None
    return int(row[0]), int(row[1])


def removed_by_month(tx: Transaction, repository: str) -> dict[str, tuple[int, int]]:
    """The same for each month that there is anything to tell of: ``2026-01``."""
    found: dict[str, tuple[int, int]] = {}
    rows = tx.each(
        "SELECT recorded_at, removed, removed_bytes FROM batches "
        "WHERE repository = ? AND recorded_at IS NOT NULL AND removed > 0 AND tables = 0",
        repository,
    )
    for at, objects, size in rows:
        month = f"{moment(at):%Y-%m}"
        before = found.get(month, (0, 0))
        found[month] = before[0] + int(objects), before[1] + int(size)
    return found


def _run(row: Row) -> RunRow:
    run, job, policy, action, started_at, ended_at, state, *rest = row
    ended = None if ended_at is None else moment(ended_at)
    return RunRow(run, job, policy, action, moment(started_at), ended, RunState(state), *rest)
