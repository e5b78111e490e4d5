"""Repositories as rows, and the two locks that keep writers and collectors apart.

A writer that is about to hold an address takes :func:`writing`; a sweep that is
about to condemn addresses takes :func:`condemning`, and waits until those who are
writing are done. Every move counts up the *generation*, so that a plan can tell
whether refs are still what it saw; :mod:`desilt.lake.moves` makes moves.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, get_args

from desilt.domain.times import microseconds, moment
from desilt.errors import AlreadyExists, NotFound
from desilt.records.database import Database, Transaction

Rows = Literal["commit", "branch", "tag", "hold"]
ROWS: tuple[Rows, ...] = get_args(Rows)
COLUMNS = "name, uid, default_branch, created_at, secret, ticket_life, manual_now"


@dataclass(frozen=True, slots=True)
class RepositoryRow:
    """What a lake remembers of a repository."""

    name: str
    uid: str
    default_branch: str
    created_at: datetime
    secret: str
    ticket_life: timedelta
    manual_now: datetime | None  # None: time is the system's


def insert(tx: Transaction, new: RepositoryRow) -> None:
    stands_at = None if new.manual_now is None else microseconds(new.manual_now)
    made = tx.execute(
        f"INSERT INTO repositories ({COLUMNS}, generation) VALUES (?, ?, ?, ?, ?, ?, ?, -1) ON CONFLICT DO NOTHING",
        *(new.name, new.uid, new.default_branch, microseconds(new.created_at), new.secret),
        *(new.ticket_life // timedelta(microseconds=1), stands_at),
    )
    if not made:
        raise AlreadyExists("repository", new.name)


def find(tx: Transaction, name: str) -> RepositoryRow:
    row = tx.one(f"SELECT {COLUMNS} FROM repositories WHERE name = ?", name)
    if row is None:
        raise NotFound("repository", name, "see `desilt lake repositories`")
    name, uid, default_branch, created_at, secret, life, stands_at = row
    manual = None if stands_at is None else moment(stands_at)
    return RepositoryRow(name, uid, default_branch, moment(created_at), secret, timedelta(microseconds=life), manual)


def names(tx: Transaction) -> list[str]:
    return [str(row[0]) for row in tx.rows("SELECT name FROM repositories ORDER BY name")]


def set_clock(tx: Transaction, uid: str, now: datetime) -> bool:
    """Move a manual clock on; False, and nothing done, if it stands later."""
    at = microseconds(now)
    return bool(tx.execute("UPDATE repositories SET manual_now = ? WHERE uid = ? AND manual_now <= ?", at, uid, at))


def manual_now(database: Database, uid: str) -> datetime | None:
    """Where a manual clock stands by now."""
    with database.read() as tx:
        row = tx.one("SELECT manual_now FROM repositories WHERE uid = ?", uid)
    return None if row is None or row[0] is None else moment(row[0])


def generation(tx: Transaction, uid: str) -> int:
    """How often refs of this repository have moved, and what else its journal has."""
    row = tx.one("SELECT generation FROM repositories WHERE uid = ?", uid)
    if row is None:
        raise NotFound("repository", uid)
    return int(row[0])


def mark_at(tx: Transaction, uid: str, generation: int) -> str:
    """What tells this move of refs from another with the same number; "" for one that was never made here."""
    row = tx.one("SELECT mark FROM move_marks WHERE repository = ? AND generation = ?", uid, generation)
    return str(row[0]) if row else ""


def marks(tx: Transaction, uid: str) -> dict[int, str]:
    """The mark of every move."""
    rows = tx.each("SELECT generation, mark FROM move_marks WHERE repository = ?", uid)
    return {int(generation): str(mark) for generation, mark in rows}


def begin_move(tx: Transaction, uid: str, *, number: int | None = None) -> tuple[int, int]:
    """In this transaction the next move is made, or one of another number; its generation, and the one before it.

    Until the transaction ends, nothing is condemned, and nobody else moves anything.
    """
    tx.lock(uid, shared=True)
    tx.execute("UPDATE repositories SET generation = generation + 1 WHERE uid = ?", uid)  # whoever comes next waits
    before = generation(tx, uid) - 1
    made = before + 1 if number is None else number
    _set_generation(tx, uid, made)
    return made, before


def end_move(tx: Transaction, uid: str, generation: int, mark: str) -> None:
    """The move is made."""
    tx.execute("INSERT INTO move_marks (repository, generation, mark) VALUES (?, ?, ?)", uid, generation, mark)


def undo_move(tx: Transaction, uid: str, before: int) -> None:
    """Nothing was moved after all."""
    _set_generation(tx, uid, before)


def _set_generation(tx: Transaction, uid: str, generation: int) -> None:
    tx.execute("UPDATE repositories SET generation = ? WHERE uid = ?", generation, uid)


def journal_from(tx: Transaction, uid: str) -> int:
    """The first generation that has a record beside the objects."""
    row = tx.one("SELECT journal_from FROM repositories WHERE uid = ?", uid)
    return int(row[0]) if row else 0


def edited_now(tx: Transaction, uid: str) -> None:
    """History is edited in this move, or commits go: plans made before are refused."""
    tx.execute("UPDATE repositories SET edited = generation WHERE uid = ?", uid)


def edited(tx: Transaction, uid: str) -> int:
    """The generation of refs at which history was last edited; 0 if never."""
    row = tx.one("SELECT edited FROM repositories WHERE uid = ?", uid)
    return int(row[0]) if row else 0


def count(tx: Transaction, uid: str, rows: Rows, change: int) -> None:
    """So many rows more, or less, belong to the repository: in the transaction that makes or removes them."""
    if change:
        tx.execute(f"UPDATE repositories SET {rows}_rows = {rows}_rows + ? WHERE uid = ?", change, uid)


def counted(tx: Transaction, uid: str) -> dict[str, int]:
    """How many rows of each kind there must be."""
    row = tx.one(f"SELECT {', '.join(f'{what}_rows' for what in ROWS)} FROM repositories WHERE uid = ?", uid)
    if row is None:
        raise NotFound("repository", uid)
    return dict(zip(ROWS, map(int, row), strict=True))


def set_hard_delete(tx: Transaction, uid: str, wait: int | None, share: str) -> None:
    """How long hard delete waits, in microseconds, and what share of the lake it may remove; None: it is off."""
    tx.execute("UPDATE repositories SET discard_after = ?, discard_share = ? WHERE uid = ?", wait, share, uid)


def head_metaranges(tx: Transaction, uid: str) -> set[str]:
    """The metaranges of all branches' heads."""
    rows = tx.rows(
        "SELECT DISTINCT metarange FROM commits JOIN branches ON branches.repository = commits.repository "
        "AND branches.head = commits.id WHERE commits.repository = ?",
        uid,
    )
    return {str(row[0]) for row in rows}


def count_staged(tx: Transaction, uid: str) -> int:
    """How many entries all staging areas have, of all branches."""
    row = tx.one(
        "SELECT COUNT(*) FROM staging WHERE address IS NOT NULL AND token IN "
        "(SELECT token FROM branches WHERE repository = ? UNION SELECT sealed.token FROM sealed "
        "JOIN branches ON branches.uid = sealed.branch WHERE branches.repository = ?)",
        *(uid, uid),
    )
    assert row is not None
    return int(row[0])


def writing(tx: Transaction, uid: str) -> None:
    """Until this transaction ends, nothing is condemned."""
    tx.lock(uid, shared=True)


def condemning(tx: Transaction, uid: str) -> int:
    """Until this transaction ends, nobody stages and no ref moves; the generation they are at."""
    tx.lock(uid)
    return generation(tx, uid)
