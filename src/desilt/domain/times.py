"""Moments and how they are kept: whole numbers since 1970, UTC. Nothing here reads a clock."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds(moment: datetime) -> int:
    """``moment`` as databases and listings keep it."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def nanoseconds(moment: datetime) -> int:
    """``moment`` as an entry keeps it."""
    return microseconds(moment) * 1000


def moment(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)
