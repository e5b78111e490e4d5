"""Whose records count for a repository that is not ours: a chain of small objects beside its data, the newest first.

Orders to keep, the ledger and the trash are in a database of desilt's own. A desilt with another database would know
nothing of them; so the first that removes anything says here which database it has, and every other is refused until
somebody hands the repository over. A link is put only where there is none: of any number who try at once, one succeeds.
An old copy of the same database is told by its fence.
"""

import json
from dataclasses import asdict, dataclass
from datetime import datetime

from desilt.errors import OtherRecords, RecordsOutdated, Unreadable
from desilt.objects.store import ObjectStore

FOLDER = "_desilt/lease/"
LAST = 10**12  # names count downwards, so that the newest lists first


@dataclass(frozen=True, slots=True)
class Link:
    """One link of the chain."""

    number: int
    records: str  # what tells a database from any other
    place: str  # where it was, for people
    fence: int  # of its lock, then
    run: str
    at: str


def newest(store: ObjectStore, prefix: str) -> Link | None:
    """The link that counts; None where nobody has removed anything yet."""
    batch = next(store.list(prefix + FOLDER), None)
    if batch is None:
        return None
    key = batch["key"][0].as_py()
    try:
        found = Link(**json.loads(store.get(key)))
    except (ValueError, TypeError):
        raise Unreadable(f"{key} is not what desilt writes; see who did, and remove it") from None
    if key != _key(prefix, found.number):
        raise Unreadable(f"{key} says that it is link {found.number}; see who moved it, and remove it")
    return found


def check(link: Link | None, records: str, fence: int) -> None:
    """Refuse to go on with records that do not count, or no longer."""
    if link is None:
        return
    if link.records != records:
        raise OtherRecords(link.place, link.run, link.at)
    if link.fence > fence:
        raise RecordsOutdated(link.run, link.at)


def take(store: ObjectStore, prefix: str, records: str, place: str, fence: int, run: str, now: datetime) -> Link:
    """A new link, if these records count; at once with others, one gets it and the rest are refused."""
    last = newest(store, prefix)
    check(last, records, fence)
    return _add(store, prefix, last, Link(0, records, place, fence, run, now.isoformat()))


def hand_over(store: ObjectStore, prefix: str, records: str, place: str, fence: int, now: datetime) -> Link | None:
    """From now on these records count, whatever did before; that, or None if nothing did."""
    last = newest(store, prefix)
    _add(store, prefix, last, Link(0, records, place, fence, "handed over", now.isoformat()))
    return last


def _add(store: ObjectStore, prefix: str, last: Link | None, wanted: Link) -> Link:
    made = Link(last.number + 1 if last else 1, *list(asdict(wanted).values())[1:])
    if not store.put_new(_key(prefix, made.number), json.dumps(asdict(made)).encode()):
        there = newest(store, prefix)
        if there != made:
            assert there is not None
            raise OtherRecords(there.place, there.run, there.at)
    return made


def _key(prefix: str, number: int) -> str:
    return f"{prefix}{FOLDER}{LAST - number:012d}.json"
