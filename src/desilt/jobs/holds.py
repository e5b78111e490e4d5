"""Holds made and lifted: what people order to be kept, whatever a policy says."""

from datetime import UTC, datetime, timedelta

from desilt.domain.names import check_text
from desilt.domain.times import check_date
from desilt.errors import BadRequest
from desilt.records.holds import Hold, HoldKind
from desilt.repository.protocol import Repository


def one_of(prefix: str | None = None, ref: str | None = None, address: str | None = None) -> tuple[HoldKind, str]:
    """The one thing that a hold names."""
    given = {HoldKind.PREFIX: prefix, HoldKind.REF: ref, HoldKind.ADDRESS: address}
    named = [(kind, value) for kind, value in given.items() if value is not None]
    if len(named) != 1:
        raise BadRequest("a hold names one thing; write one of --prefix, --ref and --address")
    return named[0]


def hold(
    repository: Repository, kind: HoldKind, named: str, *, reason: str, until: datetime | timedelta | None = None
) -> Hold:
    """Nothing that ``named`` names goes from here on: paths that begin so, what a ref has now, or one object."""
    check_text("a reason", reason)
    if not reason.strip():
        raise BadRequest("a hold needs a reason; write it for whoever finds it in a year")
    end = ends(until, repository.clock())
    value = address_of(repository, named) if kind is HoldKind.ADDRESS else named
    return repository.orders.add(kind, value, reason=reason, until=end)


def lift(repository: Repository, hold_id: str) -> None:
    """What the hold kept is again as old as it is."""
    repository.orders.lift(hold_id)


def every(repository: Repository) -> list[Hold]:
    """All holds, oldest first, those too whose day has passed."""
    return repository.orders.every()


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


def address_of(repository: Repository, named: str) -> str:
    """``named``, an address or a whole URI, as an address of the repository."""
    address = repository.witness.address_in(named)
    if address is None or not repository.layout.is_object(address):
        where = "`desilt explain`" if "lake" in repository.refuses else "`desilt lake stat`"
        raise BadRequest(f"{named!r} is not the address of an object here; {where} shows that of a path")
    return address
