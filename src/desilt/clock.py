"""What time it is, as somebody outside of the decision says it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
AWAKE_OR_NOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def elapsed() -> float:
    """Seconds since some moment, which pass even while the machine sleeps."""
    return time.clock_gettime(AWAKE_OR_NOT)


def system_clock() -> datetime:
    return datetime.now(UTC)


class ManualClock:
    """Stands where it was set: "30 days ago" is a real date then."""

    def __init__(self, now: datetime, look: Callable[[], datetime | None] = lambda: None) -> None:
        self.now, self._look = now, look  # others may have moved it on: look first

    def __call__(self) -> datetime:
        self.now = max(self.now, self._look() or self.now)
        return self.now
