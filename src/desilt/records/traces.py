"""When anybody last did something in a repository: what a clock that has jumped ahead gives itself away by.

A machine and a directory share one clock. If it jumps, everything in the lake looks
old at once, and all that speaks against it is that nobody did anything in between.
Whoever finds such a gap remembers it: what is done afterwards, by the same clock,
covers it up.

What was seen and said of a clock is in the row that a repository has in its database's table ``repositories``.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from desilt.domain.times import CLOCK_MARGIN, microseconds, moment
from desilt.records.database import Transaction

GAP = timedelta(days=30)
LATELY = timedelta(
    days=7
)  # where there was no run: what was done since, by a clock that has jumped, says nothing for it
SOURCES = (
    "SELECT made_at AS at FROM holds WHERE repository = ?",
    "SELECT set_at AS at FROM policies WHERE repository = ?",
    "SELECT started_at AS at FROM runs WHERE repository = ?",
    "SELECT ended_at AS at FROM runs WHERE repository = ?",
)
"""Where every repository's records have the times of what was done; a kind of repository may know more."""
MENDED = "quiet_seen_at > ? AND quiet_since >= ?"  # the clock is back where it was


def quiet_since(
    tx: Transaction, repository: str, now: datetime, others: Iterable[datetime], *, sources: Sequence[str]
) -> datetime | None:
    """The last trace before a gap of more than thirty days that nobody has called right, if there is one.

    One that is remembered, or else the first since the last run. ``others`` are traces that the database does not know.
    """
    known = tx.one(
        f"SELECT quiet_since FROM repositories WHERE uid = ? AND quiet_since IS NOT NULL AND NOT ({MENDED})",
        *(repository, *_mended(now)),
    )
    if known is not None:
        return moment(known[0])
    times = [microseconds(one) for one in (*others, now)]
    traces = " UNION ALL ".join((*sources, *["SELECT CAST(? AS BIGINT)"] * len(times)))
    values = (*[repository] * len(sources), *times)
    begin = _last_run(tx, repository, now)
    if begin is None:
        begin = _only(tx, f"SELECT MAX(at) FROM ({traces}) AS traces WHERE at < ?", *values, microseconds(now - LATELY))
    if begin is None:
        return None
    gap = _only(
        tx,
        "SELECT MIN(since) FROM (SELECT at, LAG(at) OVER (ORDER BY at) AS since "
        f"FROM ({traces}) AS traces WHERE at >= ? AND at <= ?) AS gaps WHERE at - since > ? AND at > ?",
        *(*values, begin, microseconds(now), GAP // timedelta(microseconds=1), _called_right(tx, repository, now)),
    )
    return None if gap is None else moment(gap)


def last(tx: Transaction, repository: str, *, sources: Sequence[str]) -> datetime | None:
    """The latest trace of anybody: later than now, it is one of a clock that was ahead, or now is behind."""
    found = [_only(tx, f"SELECT MAX(at) FROM ({source}) AS traces", repository) for source in sources]
    known = [one for one in found if one is not None]
    return moment(max(known)) if known else None


def _last_run(tx: Transaction, repository: str, now: datetime) -> int | None:
    """When the run began that passed last; one that is on record as later was let pass by a clock that was wrong."""
    found = "SELECT started_at FROM runs WHERE repository = ? AND started_at <= ? ORDER BY fence DESC, id LIMIT 1"
    return _only(tx, found, repository, microseconds(now))


def _called_right(tx: Transaction, repository: str, now: datetime) -> int:
    """Until when gaps have ended that somebody has called right; 0 where that was said by another clock, or never."""
    at = _only(tx, "SELECT clock_right_at FROM repositories WHERE uid = ?", repository)
    return at if at is not None and at <= microseconds(now) else 0


def _only(tx: Transaction, sql: str, *values: object) -> int | None:
    row = tx.one(sql, *values)
    return None if row is None or row[0] is None else int(row[0])


def suspect(tx: Transaction, repository: str, since: datetime, now: datetime) -> None:
    """Remember that nothing was done for long before ``now``; the first time counts."""
    tx.execute(
        "UPDATE repositories SET quiet_since = ?, quiet_seen_at = ? WHERE uid = ? AND quiet_since IS NULL",
        *(microseconds(since), microseconds(now), repository),
    )


def agree(tx: Transaction, repository: str, now: datetime) -> None:
    """Somebody says that the clock is right."""
    tx.execute(
        "UPDATE repositories SET clock_right_at = ?, quiet_since = NULL, quiet_seen_at = NULL WHERE uid = ?",
        *(microseconds(now), repository),
    )


def passed(tx: Transaction, repository: str, now: datetime) -> None:
    """A run was let pass: what was seen, and said, by a clock that was mended since counts no longer."""
    tx.execute(
        f"UPDATE repositories SET quiet_since = NULL, quiet_seen_at = NULL WHERE uid = ? AND {MENDED}",
        *(repository, *_mended(now)),
    )
    ahead = microseconds(now + CLOCK_MARGIN)
    tx.execute("UPDATE repositories SET clock_right_at = NULL WHERE uid = ? AND clock_right_at > ?", repository, ahead)


def _mended(now: datetime) -> tuple[int, int]:
    return microseconds(now + CLOCK_MARGIN), microseconds(now - GAP)
