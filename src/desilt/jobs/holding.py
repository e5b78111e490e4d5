"""Holds made and lifted: what people order to be kept, whatever a policy says."""

import secrets
from datetime import UTC, datetime, timedelta

from desilt.domain.address import is_object
from desilt.domain.names import check_text
from desilt.domain.times import check_date
from desilt.errors import BadRequest, NotFound
from desilt.jobs.explaining import address_in, stored
from desilt.lake import holds, refs, tombstones
from desilt.lake.changes import HoldLifted, hold_made
from desilt.lake.core import Core
from desilt.lake.database import Transaction
from desilt.lake.holds import Hold, Kind
from desilt.lake.moves import moving
from desilt.lake.repository import Repository

ID_BYTES = 4


def hold(
    repository: Repository, kind: Kind, named: str, *, reason: str, until: datetime | timedelta | None = None
) -> Hold:
    """Nothing that ``named`` names goes from here on: paths that begin so, what a ref has now, or one object."""
    core, now = repository.core, repository.clock()
    check_text("a reason", reason)
    if not reason.strip():
        raise BadRequest("a hold needs a reason; write it for whoever finds it in a year")
    end = ends(until, now)
    address = address_of(core, named) if kind is Kind.ADDRESS else ""
    is_there = bool(address) and stored(core, address) is not None
    with moving(core) as move:  # nothing is condemned between a look and the order
        tx = move.tx
        if kind is Kind.ADDRESS:
            tombstones.refuse_gone(tx, repository.uid, address, address)
            if not is_there:
                raise NotFound("object", address, "see `desilt lake stat` for the address of a path")
        value = {
            Kind.PREFIX: lambda: check_text("a prefix", named),
            Kind.REF: lambda: refs.resolve(tx, repository.uid, named).commit.id,
            Kind.ADDRESS: lambda: address,
        }[kind]()
        made = Hold(new_id(tx, repository.uid), kind, value, reason, now, end)
        move.do(hold_made(made))
    return made


def lift(repository: Repository, hold_id: str) -> None:
    """What the hold kept is again as old as it is."""
    with moving(repository.core) as move:
        move.do(HoldLifted(hold_id))


def every(repository: Repository) -> list[Hold]:
    """All holds, oldest first, those too whose day has passed."""
    with repository.database.read() as tx:
        return holds.every(tx, repository.uid)


def ends(until: datetime | timedelta | None, now: datetime) -> datetime | None:
    if until is None:
        return None
    try:
        end = check_date(now + until if isinstance(until, timedelta) else until).astimezone(UTC)
    except OverflowError:
        raise BadRequest("a hold cannot end so far ahead; leave --until out to hold for good") from None
    if end <= now:
        raise BadRequest(f"{end:%Y-%m-%d %H:%M:%S} UTC has passed, so this would hold nothing; name a later time")
    return end


def address_of(core: Core, named: str) -> str:
    """``named``, an address or a whole URI, as an address of the repository."""
    address = address_in(core, named)
    if address is None or not is_object(address):
        raise BadRequest(f"{named!r} is not the address of an object here; `desilt lake stat` shows that of a path")
    return address


def new_id(tx: Transaction, repository: str) -> str:
    taken = {one.id for one in holds.every(tx, repository)}
    while (made := secrets.token_hex(ID_BYTES)) in taken:
        pass
    return made
