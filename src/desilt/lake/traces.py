"""When anybody last did something in a repository: what a clock that has jumped ahead gives itself away by.

A machine and a directory share one clock. If it jumps, everything in the lake looks
old at once, and all that speaks against it is that nobody did anything in between.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from desilt.domain.times import microseconds, moment
from desilt.lake.core import Core
from desilt.lake.database import Transaction

GAP = timedelta(days=30)
LATELY = timedelta(days=7)  # what was done by a clock that has jumped since says nothing for it
SOURCES = (
    "SELECT created_at AS at FROM commits WHERE repository = ?",
    "SELECT created_at FROM branches WHERE repository = ?",
    "SELECT created_at FROM tags WHERE repository = ?",
    "SELECT made_at FROM holds WHERE repository = ?",
    "SELECT set_at FROM policies WHERE repository = ?",
    "SELECT started_at FROM runs WHERE repository = ?",
    "SELECT ended_at FROM runs WHERE repository = ?",
    "SELECT dropped_at FROM dropped WHERE repository = ?",
    "SELECT opened_at FROM partitions WHERE branch IN (SELECT uid FROM branches WHERE repository = ?)",
)


def quiet_since(tx: Transaction, core: Core, now: datetime, others: Iterable[datetime]) -> datetime | None:
    """The last trace before a gap of more than thirty days that ended lately, and that nobody has called right.

    ``others`` are traces that the database does not know.
    """
    lately = microseconds(now - LATELY)
    every = " UNION ALL ".join(SOURCES)
    row = tx.one(
        f"SELECT MAX(CASE WHEN at < ? THEN at END), MIN(CASE WHEN at >= ? THEN at END) FROM ({every}) AS traces",
        *(lately, lately, *[core.uid] * len(SOURCES)),
    )
    assert row is not None
    tickets = tx.rows("SELECT expires_at FROM tickets WHERE repository = ?", core.uid)
    times = [moment(at) for at in row if at is not None]
    times += [moment(at) - core.ticket_life for (at,) in tickets]
    times += [one for one in others if one <= now]
    before = max((one for one in times if one < now - LATELY), default=None)
    after = min((one for one in times if one >= now - LATELY), default=now)
    if before is None or after - before <= GAP:
        return None
    agreed = tx.one("SELECT clock_right_at FROM repositories WHERE uid = ?", core.uid)
    if agreed and agreed[0] is not None and moment(agreed[0]) >= after:
        return None
    return before


def agree(tx: Transaction, repository: str, now: datetime) -> None:
    """Somebody says that the clock is right."""
    tx.execute("UPDATE repositories SET clock_right_at = ? WHERE uid = ?", microseconds(now), repository)
