"""Uploads under way: each holds a ticket until it is staged.

An upload through us is covered by the time in its name, and only writes a row
when it takes long enough to need more time. An address handed to a direct
uploader has its row from the start; linking uses the row up.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from desilt.domain import address as addresses
from desilt.domain.ticket import Ticket
from desilt.domain.times import microseconds, moment
from desilt.errors import BadTicket
from desilt.records.database import Transaction, among


def hold(tx: Transaction, ticket: Ticket) -> None:
    """Write ``ticket``, or its new expiry."""
    tx.execute(
        "INSERT INTO tickets (repository, address, branch, path, expires_at) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (repository, address) DO UPDATE SET expires_at = excluded.expires_at",
        *(ticket.repository, ticket.address, ticket.branch, ticket.path.encode(), ticket.expires_at),
    )


def use(tx: Transaction, ticket: Ticket, *, now: datetime) -> None:
    """Take a handed-out ticket's row away: it works once, and not after its time."""
    if ticket.expires_at <= microseconds(now):
        raise BadTicket(ticket.path, f"expired on {moment(ticket.expires_at):%Y-%m-%d %H:%M:%S} UTC")
    if not _drop(tx, ticket.repository, ticket.address):
        raise BadTicket(ticket.path, "was used already")


def settle(tx: Transaction, repository: str, address: str, path: str, *, now: datetime, life: timedelta) -> None:
    """End the ticket of an upload through us; refused if it took longer than its ticket lived."""
    check(tx, repository, address, path, now=now, life=life)
    _drop(tx, repository, address)


def check(tx: Transaction, repository: str, address: str, path: str, *, now: datetime, life: timedelta) -> None:
    """Refuse an upload through us whose ticket has expired: nobody holds its object any more."""
    row = tx.one("SELECT expires_at FROM tickets WHERE repository = ? AND address = ?", repository, address)
    expires = moment(row[0]) if row else addresses.uid_time(address.rsplit("/", 1)[-1]) + life
    if expires <= now:
        raise BadTicket(path, f"expired on {expires:%Y-%m-%d %H:%M:%S} UTC, while the upload went on")


def open_at(tx: Transaction, repository: str, now: datetime) -> Iterator[Ticket]:
    """The tickets that still hold their address."""
    rows = tx.each(
        "SELECT branch, path, address, expires_at FROM tickets WHERE repository = ? AND expires_at > ?",
        *(repository, microseconds(now)),
    )
    return (Ticket(repository, branch, bytes(path).decode(), address, at) for branch, path, address, at in rows)


def holders(tx: Transaction, repository: str, addresses: Sequence[str], *, since: datetime) -> set[str]:
    """Those of ``addresses`` that a ticket holds which expires after ``since``."""
    if tx.one("SELECT 1 FROM tickets WHERE repository = ? LIMIT 1", repository) is None:
        return set()
    query = "SELECT address FROM tickets WHERE repository = ? AND expires_at > ? AND address IN ({})"
    return {str(row[0]) for row in among(tx, query, addresses, repository, microseconds(since))}


def open_on(tx: Transaction, repository: str, branch: str, now: datetime) -> bool:
    """Whether an upload to the branch with uid ``branch`` may still be linked."""
    found = "SELECT 1 FROM tickets WHERE repository = ? AND branch = ? AND expires_at > ? LIMIT 1"
    return tx.one(found, repository, branch, microseconds(now)) is not None


def forget(tx: Transaction, repository: str, *, before: datetime) -> int:
    """Drop tickets that expired before ``before``: they hold nothing, and work no more; how many there were."""
    return tx.execute("DELETE FROM tickets WHERE repository = ? AND expires_at < ?", repository, microseconds(before))


def _drop(tx: Transaction, repository: str, address: str) -> int:
    return tx.execute("DELETE FROM tickets WHERE repository = ? AND address = ?", repository, address)
