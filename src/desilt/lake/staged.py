"""What staging areas hold at the moment of removal: all of it, but for entries that rules say have expired."""

from datetime import datetime

import pyarrow as pa

from desilt.columns.schemas import DIVIDER
from desilt.domain.address import uid_time
from desilt.domain.entry import Entry, shown_path
from desilt.lake import refs, staging
from desilt.lake.layout import LAYOUT
from desilt.records.database import Transaction
from desilt.repository.gate import Reliance
from desilt.repository.policy import expiring_staged
from desilt.sstable.values import decode_entry


def holders(tx: Transaction, repository: str, rows: pa.Table, relies_on: Reliance) -> set[str]:
    """Those of a plan's ``rows``, by address, that some staging area of the lake holds, hidden by a newer entry or not.

    Where staged entries may expire, each is looked at again: one that the plan did not see, by its path, holds.
    """
    addresses = rows["address"].to_pylist()
    document = expiring_staged(relies_on.rules)
    if document is None or relies_on.judged is None:
        return staging.holders(tx, addresses)
    names = {token: one.name for one in refs.branches(tx, repository) for token in one.tokens}
    paths = {
        address: set(detail.split(DIVIDER)[1:])
        for address, detail in zip(addresses, rows["detail"].to_pylist(), strict=True)
    }
    held = set()
    for address, token, path, value in staging.pointing(tx, addresses):
        entry = decode_entry(path, value)
        branch = names.get(token)  # of another repository: whatever it is, it is held
        judged = branch is not None and shown_path(entry.path) in paths[address] and entry.modified_ns > 0
        if not judged or not document.staged_expires(branch or "", entry.path, youngest(entry), relies_on.at):
            held.add(address)
    return held


def youngest(entry: Entry) -> datetime:
    """When an entry was made, by whichever says it is younger: itself, or the name of its object."""
    named = [uid_time(entry.address.rpartition("/")[2])] if LAYOUT.is_object(entry.address) else []
    return max([entry.modified_at, *named])
