"""How fast objects of a repository may be deleted, by everybody together: given out in leases, one after the other.

A row says how much time is given out, as of a moment of the database's clock. Whoever wants to
delete takes the next stretch of it, and is told how long to wait until that begins: executors whose clocks
are apart share it all the same, and a clock that is set back makes nobody wait for longer. Who dies wastes a lease.
"""

from desilt.domain.times import microseconds
from desilt.records.database import Transaction

SECOND = 1_000_000  # microseconds


def lease(tx: Transaction, repository: str, seconds: float) -> float:
    """Take the next ``seconds`` that nobody has; in how many seconds they begin."""
    ahead, now = _ahead(tx, repository)
    _write(tx, repository, ahead + round(seconds * SECOND), now)
    return ahead / SECOND


def hold_back(tx: Transaction, repository: str, seconds: float) -> None:
    """Let no lease from now on begin within ``seconds``; what others have asked for counts together, not twice."""
    ahead, now = _ahead(tx, repository)
    _write(tx, repository, max(ahead, round(seconds * SECOND)), now)


def _ahead(tx: Transaction, repository: str) -> tuple[int, int]:
    """How much of the time from now on is given out, and what now is; nobody else asks before this transaction ends."""
    tx.lock(f"{repository}/deletes")
    now = microseconds(tx.now())
    row = tx.one("SELECT given_out, as_of FROM delete_budgets WHERE repository = ?", repository)
    if row is None:
        return 0, now
    passed = max(0, now - int(row[1]))  # none, where the clock was set back
    return max(0, int(row[0]) - passed), now


def _write(tx: Transaction, repository: str, given_out: int, now: int) -> None:
    tx.execute(
        "INSERT INTO delete_budgets (repository, given_out, as_of) VALUES (?, ?, ?) "
        "ON CONFLICT (repository) DO UPDATE SET given_out = excluded.given_out, as_of = excluded.as_of",
        *(repository, given_out, now),
    )
