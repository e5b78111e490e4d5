"""Whose records count for a repository that is not ours: a chain of small objects beside its data, the newest first.

Orders to keep, the ledger and the trash are in a database of desilt's own. A desilt with another database would know
nothing of them; so the first that removes or holds anything says here which database it has, and every other is refused
until somebody hands the repository over. A link is put only where there is none: of any number who try at once, one
succeeds. An old copy of the same database is told by its fence, and by the last link, which it does not know.
"""

import json
import secrets
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from datetime import datetime

from desilt.errors import OtherRecords, RecordsOutdated, Unreadable
from desilt.objects.promises import check_put_new
from desilt.objects.store import ObjectStore

FOLDER = "_desilt/lease/"
PROBE = "_desilt/probe"  # what conditions are tried out on
UNFINISHED = ".partial"  # what a disk is being written to, or was when somebody was killed
TRIES = 10  # where the same records are at it more than once
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
    token: str = ""  # which its records know, and a copy of them from before does not


def newest(store: ObjectStore, prefix: str) -> Link | None:
    """The link that counts; None where nobody has removed anything yet."""
    keys = (key for batch in store.list(prefix + FOLDER) for key in batch["key"].to_pylist())
    key = next((key for key in keys if not key.endswith(UNFINISHED)), None)
    if key is None:
        return None
    try:
        found = Link(**json.loads(store.get(key)))
    except (ValueError, TypeError):
        raise Unreadable(f"{key} is not what desilt writes; see who did, and remove it") from None
    if key != _key(prefix, found.number):
        raise Unreadable(f"{key} says that it is link {found.number}; see who moved it, and remove it")
    return found


@dataclass(frozen=True, slots=True)
class Keeper:
    """Records that want to count."""

    records: str
    place: str
    fence: int  # the last that was given out
    run: str  # and to whom
    tokens: Callable[[], Collection[str]]  # of the links that were made by them
    intend: Callable[[str], None]  # to make one with this token


def check(link: Link | None, keeper: Keeper) -> None:
    """Refuse to go on with records that do not count, or no longer."""
    if link is None:
        return
    if link.records != keeper.records:
        raise OtherRecords(link.place, link.run, link.at)
    if link.fence > keeper.fence or (link.token and link.token not in keeper.tokens()):
        raise RecordsOutdated(link.run, link.at)


def take(store: ObjectStore, prefix: str, keeper: Keeper, now: datetime) -> Link:
    """A new link, if these records count; at once with others, one gets it and the rest are refused."""
    check_put_new(store, prefix + PROBE)
    for _ in range(TRIES):
        last = newest(store, prefix)
        check(last, keeper)
        if (made := _add(store, prefix, last, keeper, keeper.run, now)) is not None:
            return made
    there = newest(store, prefix)
    assert there is not None
    raise OtherRecords(there.place, there.run, there.at)


def hand_over(store: ObjectStore, prefix: str, keeper: Keeper, now: datetime) -> Link | None:
    """From now on these records count, whatever did before; that, or None if nothing did."""
    last = newest(store, prefix)
    if _add(store, prefix, last, keeper, "handed over", now) is None:
        there = newest(store, prefix)
        assert there is not None
        raise OtherRecords(there.place, there.run, there.at)
    return last


def _add(store: ObjectStore, prefix: str, last: Link | None, keeper: Keeper, run: str, now: datetime) -> Link | None:
    """The next link, known to its records before it is there; None where somebody else was first."""
    token, number = secrets.token_hex(8), last.number + 1 if last else 1
    made = Link(number, keeper.records, keeper.place, keeper.fence, run, now.isoformat(), token)
    keeper.intend(token)
    if store.put_new(_key(prefix, number), json.dumps(asdict(made)).encode()):
        return made
    return made if newest(store, prefix) == made else None


def _key(prefix: str, number: int) -> str:
    return f"{prefix}{FOLDER}{LAST - number:012d}.json"
