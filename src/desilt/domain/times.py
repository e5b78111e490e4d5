"""Moments and how they are kept: whole numbers since 1970, UTC. Nothing here reads a clock."""

from datetime import UTC, datetime, timedelta

from desilt.errors import BadRequest

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
NANOSECONDS = 1_000_000_000  # in a second
LAST = datetime(2106, 1, 1, tzinfo=UTC)  # names hold seconds in four bytes
CLOCK_MARGIN = timedelta(minutes=10)  # two clocks may be so far apart, and neither is called wrong
DROPPED_KNOWN_FOR = timedelta(days=30)  # for which it is known what lost a reference
IN_FLIGHT = timedelta(minutes=10)  # by then, a request that somebody sent has arrived, or never will


def microseconds(moment: datetime) -> int:
    """``moment`` as databases and listings keep it."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def nanoseconds(moment: datetime) -> int:
    """``moment`` as an entry keeps it."""
    return microseconds(moment) * 1000


def seconds(moment: datetime) -> int:
    """``moment`` as a commit is named by it; what is not a whole second is cut off."""
    return (moment - EPOCH) // SECOND


def check_date(moment: datetime) -> datetime:
    """``moment`` if names and databases can keep it."""
    if moment.tzinfo is None or not EPOCH <= moment < LAST:
        raise BadRequest(f"{moment} cannot be kept; write a moment with a time zone, from 1970 to 2105")
    return moment


def moment(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)
