"""What is garbage, the slow and obvious way: sets of addresses in memory, nothing clever.

Every job is judged by this. It must stay short enough to be believed at a glance.
"""

from datetime import datetime, timedelta

from desilt.domain.address import uid_time
from desilt.lake import commits, refs, staging, tickets
from desilt.lake.repository import Repository
from desilt.sstable.values import decode_entry

SPECIAL = ("_lakefs/", "_desilt/")


def stored(repository: Repository) -> dict[str, int]:
    """Every object below the repository's prefix that is not metadata: its address and size."""
    found = {}
    for batch in repository.store.list(repository.prefix):
        for key, size in zip(batch["key"].to_pylist(), batch["size_bytes"].to_pylist(), strict=True):
            address = key.removeprefix(repository.prefix)
            if not address.startswith(SPECIAL):
                found[address] = size
    return found


def committed(repository: Repository) -> set[str]:
    """The addresses in all commits, whether a ref reaches them or not."""
    with repository.database.read() as tx:
        metaranges = {commit.metarange for commit in commits.every(tx, repository.uid)}
    listed = {one.id: one for metarange in metaranges for one in repository.ranges.metarange(metarange)}
    held = set()
    for one in listed.values():
        records = repository.ranges.read(one)
        for key, value in zip(records["key"].to_pylist(), records["value"].to_pylist(), strict=True):
            held.add(decode_entry(key, value).address)
    return held


def staged(repository: Repository) -> set[str]:
    """The addresses in all staging areas of all branches, sealed ones too, even where a newer one hides them."""
    with repository.database.read() as tx:
        tokens = [token for branch in refs.branches(tx, repository.uid) for token in branch.tokens]
        pairs = [pair for token in tokens for pair in staging.scan(tx, [token])]
    return {decode_entry(key, value).address for key, value in pairs if value is not None}


def ticketed(repository: Repository, now: datetime) -> set[str]:
    """The addresses of uploads that may still be linked."""
    with repository.database.read() as tx:
        return {ticket.address for ticket in tickets.open_at(tx, repository.uid, now)}


def collectable(repository: Repository, now: datetime) -> set[str]:
    """Garbage that no ticket holds, and that both the store and its own name call older than a ticket lives."""
    before = now - repository.core.ticket_life - timedelta(minutes=10)
    return {
        address
        for address in set(garbage(repository)) - ticketed(repository, now)
        if repository.store.head(repository.prefix + address).modified_at < before
        and uid_time(address.rsplit("/", 1)[-1]) < before
    }


def garbage(repository: Repository) -> dict[str, int]:
    """Objects that nothing points to, by address, with their sizes."""
    held = staged(repository) | committed(repository)
    return {address: size for address, size in stored(repository).items() if address not in held}
