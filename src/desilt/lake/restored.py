"""A database that was restored from a copy: how it shows, and what stays because of it.

Partitions are opened in the database before anything is put into them. Objects in
one that it never opened were put while another database was in use. What pointed
to them is lost, so whatever was uploaded since the copy, and is not committed,
stays until somebody says otherwise.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from desilt.domain import address
from desilt.domain.times import CLOCK_MARGIN, microseconds, moment
from desilt.errors import WentBack
from desilt.lake import refs, staging
from desilt.lake.core import Core
from desilt.lake.layout import PARTITION, folder_parts
from desilt.lake.partitions import new_uid
from desilt.records.database import Transaction, among


def unknown_partitions(core: Core, folders: Iterable[str]) -> list[str]:
    """Those of ``folders``, listed before this is asked, that are partitions which the database never opened."""
    found: dict[str, set[str]] = {}
    for folder in folders:
        match = PARTITION.fullmatch(folder.removeprefix(core.prefix))
        if match is not None:
            found.setdefault(match[1], set()).add(match[2])
    unknown = []
    with core.database.read() as tx:
        for branch, names in found.items():
            query = "SELECT name FROM partitions WHERE branch = ? AND name IN ({})"
            known = {str(name) for (name,) in among(tx, query, sorted(names), branch)}
            unknown += [f"{address.branch_prefix(branch)}{name}/" for name in names - known]
    return sorted(unknown)


def check_partitions(core: Core, folders: Iterable[str]) -> None:
    """Refuse to go on where objects lie in a partition that the database never opened."""
    if unknown := unknown_partitions(core, folders):
        more = f" and {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
        raise WentBack(f"objects lie in {unknown[0]}{more}, which the database never opened")


def adopt(tx: Transaction, partitions: Sequence[str]) -> None:
    """Know of these ``partitions`` from here on, as full."""
    for folder in partitions:
        branch, name = folder_parts(folder)
        opened = microseconds(address.partition_time(name))
        tx.execute(
            "INSERT INTO partitions (branch, name, opened_at, objects) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            *(branch, name, opened, address.PARTITION_OBJECTS),
        )


def set_aside(tx: Transaction, core: Core, *, first: datetime, last: datetime) -> None:
    """What was staged since the restore is not mistaken for what a lost commit took: it gets areas of its own.

    The copy has what was staged before the ``first`` move that it lacks, the restored database what was
    staged after the ``last``; where clocks differ, about then.
    """
    between = last - min(2 * CLOCK_MARGIN, (last - first) / 2)
    for branch in refs.branches(tx, core.uid):
        fresh = new_uid(core.clock())
        for token in branch.tokens:  # the newest first: what it has there stays on top
            staging.move_newer(tx, token, fresh, than=between)
        if not staging.is_empty(tx, [fresh]):
            refs.seal(tx, branch, token=fresh)


def keep_since(tx: Transaction, core: Core, copied_at: datetime) -> datetime:
    """What was uploaded since the copy stays, if no commit has it; from when on that is, at the earliest.

    An upload that was staged after the copy may have been given its address a ticket's life before.
    """
    since = copied_at - core.ticket_life - CLOCK_MARGIN
    tx.execute(
        "UPDATE repositories SET kept_since = ? WHERE uid = ? AND (kept_since IS NULL OR kept_since > ?)",
        *(microseconds(since), core.uid, microseconds(since)),
    )
    return since


def recovered(tx: Transaction, core: Core) -> None:
    """Plans and confirmations from before this move count no longer."""
    tx.execute("UPDATE repositories SET recovered = generation WHERE uid = ?", core.uid)
    ask_again(tx, core)


def ask_again(tx: Transaction, core: Core) -> None:
    """What somebody agreed to before is asked again."""
    tx.execute("UPDATE repositories SET ask_again_from = ? WHERE uid = ?", microseconds(core.clock()), core.uid)


def recovery(tx: Transaction, repository: str) -> tuple[int, datetime | None]:
    """The generation at which the database was last recovered, -1 if never; and from when on confirmations count."""
    row = tx.one("SELECT recovered, ask_again_from FROM repositories WHERE uid = ?", repository)
    assert row is not None
    return int(row[0]), None if row[1] is None else moment(row[1])


def kept_since(core: Core) -> datetime | None:
    """From when on uncommitted uploads stay; None if no database was restored, or that is over."""
    with core.database.read() as tx:
        row = tx.one("SELECT kept_since FROM repositories WHERE uid = ?", core.uid)
    return None if row is None or row[0] is None else moment(row[0])


def release(tx: Transaction, repository: str) -> None:
    """What was kept because of a restore is garbage like any other."""
    tx.execute("UPDATE repositories SET kept_since = NULL WHERE uid = ?", repository)
