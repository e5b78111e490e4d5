"""Commit times that history and the object store agree with.

Expiry by age is only as good as the times it reads. A commit is a second later
than any of its parents, or more, and its time is within ten minutes of the
store's own clock.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from time import sleep

from desilt.clock import Clock, ManualClock
from desilt.domain.history import Commit
from desilt.domain.times import CLOCK_MARGIN, EPOCH, SECOND
from desilt.errors import WrongClock

PATIENCE = timedelta(seconds=5)  # how long a commit waits for the clock


def check(now: datetime, store_now: datetime) -> None:
    """Refuse to go on with a clock that is more than ten minutes off the store's."""
    if abs(now - store_now) > CLOCK_MARGIN:
        raise WrongClock(now, store_now, "the object store's")


def wait_for(clock: Clock, parents: Iterable[Commit]) -> None:
    """Give the clock time to come near the ``parents``, if seconds are all it takes.

    Commits are a second apart, so that hundreds of quick ones get ahead of it. A manual clock is not waited for: it
    does not move by itself.
    """
    missing = _latest(parents) - CLOCK_MARGIN - clock()
    if timedelta() < missing <= PATIENCE and not isinstance(clock, ManualClock):
        sleep(missing.total_seconds() + 0.01)


def later_than(parents: Iterable[Commit], clock: Clock) -> datetime:
    """What ``clock`` says, or the first whole second that is one past the latest parent; refused where that is much."""
    now, latest = clock(), _latest(parents)
    if latest - now > CLOCK_MARGIN:
        manual = "commits are a second apart; move the clock of this repository on"
        way_out = manual if isinstance(clock, ManualClock) else "mend the one that is wrong"
        raise WrongClock(now, latest, "the commit before was made at", way_out)
    return max(now, EPOCH - (EPOCH - latest - SECOND) // SECOND * SECOND)


def _latest(parents: Iterable[Commit]) -> datetime:
    return max((parent.created_at for parent in parents), default=EPOCH)
