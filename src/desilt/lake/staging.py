"""What was written to a branch and not committed yet.

A branch writes into one staging area, named by its *token*. A commit *seals*
it: the branch goes on with a new one, and the sealed one, still readable
underneath, becomes the commit. So nothing written meanwhile can slip into a
commit half-made, or be lost with it.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import pyarrow as pa

from desilt.domain.entry import after_prefix
from desilt.lake import fresh
from desilt.lake.dropping import By, Dropping
from desilt.records.database import Row, Transaction, among
from desilt.sstable.records import paired
from desilt.sstable.values import decode_entry

BATCH = 20_000
ADDRESSES_AT_ONCE = 50_000
CHANGES = pa.schema([pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary())])
"""One row per path that changes: its new value, or null where the path goes. In key order."""


def stage(tx: Transaction, token: str, path: bytes, value: bytes | None, dropping: Dropping) -> None:
    """``path`` now means ``value``; None hides what the commit below has there."""
    address, here = address_of(path, value), "token = ? AND path = ?"
    new = tx.execute(
        "INSERT INTO staging (token, path, value, address) VALUES (?, ?, ?, ?) ON CONFLICT (token, path) DO NOTHING",
        *(token, path, value, address),
    )
    if not new:
        tx.lock_rows(f"SELECT 1 FROM staging WHERE {here}", token, path)  # what it means by now is what is dropped
        dropping.note(tx, here, token, path)
        tx.execute(f"UPDATE staging SET value = ?, address = ? WHERE {here}", value, address, token, path)


def address_of(path: bytes, value: bytes | None) -> str | None:
    """Where the object of a staged value is, so that it can be found by that."""
    return None if value is None else decode_entry(path, bytes(value)).address


def holders(tx: Transaction, addresses: Sequence[str]) -> set[str]:
    """Those of ``addresses`` that some staging area of the lake holds, hidden by a newer entry or not."""
    return {str(row[0]) for row in among(tx, "SELECT address FROM staging WHERE address IN ({})", addresses)}


def pointing(tx: Transaction, addresses: Sequence[str]) -> Iterator[tuple[str, str, bytes, bytes]]:
    """Address, staging area, path and value of all entries of the lake that point to some of ``addresses``."""
    query = "SELECT address, token, path, value FROM staging WHERE address IN ({})"
    rows = among(tx, query, addresses)
    return ((str(address), str(token), bytes(path), bytes(value)) for address, token, path, value in rows)


def unstage(tx: Transaction, token: str, path: bytes, dropping: Dropping) -> int:
    """Forget ``path`` in this one staging area; 0 if it knew nothing of it."""
    dropping.note(tx, "token = ? AND path = ?", token, path)
    return tx.execute("DELETE FROM staging WHERE token = ? AND path = ?", token, path)


def drop(tx: Transaction, token: str, dropping: Dropping, prefix: bytes = b"") -> int:
    """Forget everything staged below ``prefix``; how much that was."""
    where, values = _between(prefix)
    dropping.note(tx, f"token = ?{where}", token, *values)
    return tx.execute(f"DELETE FROM staging WHERE token = ?{where}", token, *values)


def take(tx: Transaction, tokens: Sequence[str], dropping: Dropping) -> None:
    """Forget staging areas, newest first, that have become a commit: only what a newer one hid is dropped."""
    fresh.take(tx, dropping.repository, tokens)  # before anything is decided on: a path may hide what another has
    _note_hidden(tx, tokens, dropping)
    for token in tokens:
        tx.execute("DELETE FROM staging WHERE token = ?", token)


def drop_all(tx: Transaction, tokens: Sequence[str], dropping: Dropping) -> int:
    """Forget staging areas, newest first, and everything in them; how much that was."""
    _note_hidden(tx, tokens, dropping)
    return sum(drop(tx, token, dropping) for token in tokens)


def _note_hidden(tx: Transaction, tokens: Sequence[str], dropping: Dropping) -> None:
    """What newer ones of staging areas, newest first, hide is about to go."""
    for age, token in enumerate(tokens):
        if newer := tokens[:age]:
            marks = ", ".join("?" * len(newer))
            hidden = f"token = ? AND path IN (SELECT path FROM staging WHERE token IN ({marks}))"
            dropping.note(tx, hidden, token, *newer, by=By.HIDDEN)


def find(tx: Transaction, tokens: Sequence[str], path: bytes) -> tuple[bool, bytes | None]:
    """Whether ``path`` is staged in the newest of ``tokens`` (newest first) that knows it, and as what."""
    for token in tokens:
        row = tx.one("SELECT value FROM staging WHERE token = ? AND path = ?", token, path)
        if row is not None:
            return True, _value(row[0])
    return False, None


def find_many(tx: Transaction, tokens: Sequence[str], paths: Sequence[bytes]) -> dict[bytes, tuple[bool, bytes | None]]:
    """The same for those of ``paths`` that are staged at all."""
    marks, age = ", ".join("?" * len(tokens)), {token: place for place, token in enumerate(tokens)}
    query = f"SELECT path, token, value FROM staging WHERE token IN ({marks}) AND path IN ({{}})"
    found: dict[bytes, tuple[int, bytes | None]] = {}
    for path, token, value in among(tx, query, paths, *tokens):
        if age[token] < found.get(bytes(path), (len(tokens), None))[0]:
            found[bytes(path)] = age[token], _value(value)
    return {path: (True, value) for path, (_, value) in found.items()}


def put_back(tx: Transaction, entries: Iterable[tuple[str, bytes, bytes, str]]) -> None:
    """Stage entries (token, path, value, address) where nothing is, or a removal: nothing is dropped by that."""
    tx.execute_many(
        "INSERT INTO staging (token, path, value, address) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (token, path) DO UPDATE SET value = excluded.value, address = excluded.address "
        "WHERE staging.value IS NULL",
        entries,
    )


def is_empty(tx: Transaction, tokens: Sequence[str]) -> bool:
    return all(tx.one("SELECT 1 FROM staging WHERE token = ? LIMIT 1", token) is None for token in tokens)


def scan(
    tx: Transaction, tokens: Sequence[str], *, prefix: bytes = b"", start: bytes | None = None
) -> Iterator[tuple[bytes, bytes | None]]:
    """Staged paths in order, from the newest of ``tokens`` (newest first) that knows each."""
    if not tokens:
        return iter(())  # PostgreSQL knows no empty list
    where, values = _between(prefix, start)
    marks = ", ".join("?" * len(tokens))
    rows = tx.each(
        f"SELECT path, value, token FROM staging WHERE token IN ({marks}){where} ORDER BY path", *tokens, *values
    )
    if len(tokens) == 1:
        return ((bytes(path), _value(value)) for path, value, _ in rows)
    return _newest(rows, {token: age for age, token in enumerate(tokens)})


def entries(tx: Transaction, token: str) -> Iterator[tuple[bytes, bytes, str]]:
    """Path, value and address of every entry of one staging area, in order of paths."""
    rows = tx.each(
        "SELECT path, value, address FROM staging WHERE token = ? AND value IS NOT NULL ORDER BY path", token
    )
    return ((bytes(path), bytes(value), str(address)) for path, value, address in rows)


def addresses(tx: Transaction, token: str, *, at_once: int = ADDRESSES_AT_ONCE) -> Iterator[pa.Array]:
    """What every entry of one staging area points to, by the column, some at a time."""
    after = "SELECT path FROM staging WHERE token = ? AND path >= ? ORDER BY path LIMIT 1 OFFSET ?"
    start: bytes | None = b""
    while start is not None:
        row = tx.one(after, token, start, at_once)
        end = None if row is None else bytes(row[0])
        where, values = ("", []) if end is None else (" AND path < ?", [end])
        yield tx.texts(
            f"SELECT address AS text FROM staging WHERE token = ? AND path >= ?{where} AND value IS NOT NULL",
            *(token, start, *values),
        )
        start = end


def strays(tx: Transaction) -> list[str]:
    """Staging areas, anywhere in the lake, that belong to no branch: there are none, unless rows were lost."""
    # From one area to the next by the table's own order: no database goes through all that is staged for it.
    rows = tx.rows(
        "WITH RECURSIVE areas (token) AS (SELECT MIN(token) FROM staging UNION ALL "
        "SELECT (SELECT MIN(token) FROM staging WHERE token > areas.token) FROM areas WHERE areas.token IS NOT NULL) "
        "SELECT token FROM areas WHERE token IS NOT NULL AND token NOT IN "
        "(SELECT token FROM branches UNION SELECT token FROM sealed)"
    )
    return [str(row[0]) for row in rows]


def changes(tx: Transaction, tokens: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """All that is staged, as :data:`CHANGES`."""
    staged = scan(tx, tokens)
    while rows := list(itertools.islice(staged, BATCH)):
        yield paired(rows, CHANGES)


def move_newer(tx: Transaction, token: str, into: str, *, than: datetime) -> None:
    """Entries of one staging area that were written after a moment go on in another, which is new."""
    newer = [
        (path, value, address)
        for path, value, address in entries(tx, token)
        if decode_entry(path, value).modified_at > than
    ]
    tx.execute_many(
        "INSERT INTO staging (token, path, value, address) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        ((into, path, value, address) for path, value, address in newer),
    )
    tx.execute_many("DELETE FROM staging WHERE token = ? AND path = ?", ((token, path) for path, _, _ in newer))


def drop_gone(tx: Transaction, repository: str) -> int:
    """Forget entries whose objects a run has removed: only a database that was restored has any; how many."""
    return tx.execute(
        "DELETE FROM staging WHERE address IN "
        "(SELECT address FROM tombstones WHERE repository = ? AND state NOT IN "
        "('restored', 'restoring', 'marked', 'tagged', 'tagging failed', 'removing')) AND token IN "
        "(SELECT token FROM branches WHERE repository = ? UNION "
        "SELECT sealed.token FROM sealed JOIN branches ON branches.uid = sealed.branch WHERE branches.repository = ?)",
        *(repository, repository, repository),
    )


def gather(tx: Transaction, tokens: Sequence[str], into: str, dropping: Dropping) -> None:
    """Move everything from ``tokens`` (newest first) into one new staging area."""
    for token in reversed(tokens):
        hidden = "token = ? AND path IN (SELECT path FROM staging WHERE token = ?)"
        dropping.note(tx, hidden, into, token, by=By.HIDDEN)
        tx.execute(
            "INSERT INTO staging (token, path, value, address) "
            "SELECT ?, path, value, address FROM staging WHERE token = ? "
            "ON CONFLICT (token, path) DO UPDATE SET value = excluded.value, address = excluded.address",
            *(into, token),
        )
        tx.execute("DELETE FROM staging WHERE token = ?", token)


def _between(prefix: bytes, start: bytes | None = None) -> tuple[str, list[bytes]]:
    first, last = max(prefix, start or b""), after_prefix(prefix)
    conditions = [(" AND path >= ?", first)] if first else []
    conditions += [(" AND path < ?", last)] if last else []
    return "".join(text for text, _ in conditions), [value for _, value in conditions]


def _newest(rows: Iterator[Row], age: dict[str, int]) -> Iterator[tuple[bytes, bytes | None]]:
    for path, same in itertools.groupby(rows, key=lambda row: bytes(row[0])):
        yield path, _value(min(same, key=lambda row: age[row[2]])[1])


def _value(stored: bytes | None) -> bytes | None:
    return None if stored is None else bytes(stored)
