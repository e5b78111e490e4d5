"""One run of a job: its name, its moment, and where it keeps what it writes."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from desilt.domain.address import YEAR_4000_MS
from desilt.domain.times import EPOCH, microseconds
from desilt.errors import BadRequest

SIMULATIONS, UPKEEP, RESTORES, VACUUMS = "simulate", "upkeep", "restores", "vacuums"
BESIDE = (
    SIMULATIONS,
    UPKEEP,
    RESTORES,
    VACUUMS,
)  # folders beside those of jobs: nobody sweeps these, so nobody lists them
FOLDER = "_desilt/runs/"
SAID_ONCE = (
    *("confirm", "clock_is_right", "after_restore"),
    *("unsafe", "accept_missing", "backups_older_than"),
)  # of what was looked at: no file and no variable says it
SAME_MOMENT_MS = 1_000  # a clock that stands still, or two runs in one millisecond
ID = re.compile(r"(\d{14})-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class Run:
    """A job at work on a repository; ``now`` was read once and is passed down."""

    id: str
    job: str
    now: datetime

    @property
    def folder(self) -> str:
        """Below the repository's prefix."""
        return f"{FOLDER}{self.job}/{self.id}/"


def new_run(job: str, *, now: datetime, started_at: datetime, entropy: bytes, last: str | None = None) -> Run:
    """A run whose id sorts before those of all earlier ones, the ``last`` of which may be of the same moment."""
    number = YEAR_4000_MS - microseconds(started_at) // 1000
    if last is not None and abs(started_at - started(last)) <= timedelta(milliseconds=SAME_MOMENT_MS):
        number = min(number, int(last.partition("-")[0]) - 1)
    return Run(f"{number:014d}-{entropy[:4].hex()}", job, now)


def is_run_id(text: str) -> bool:
    return ID.fullmatch(text) is not None


def started(run_id: str) -> datetime:
    """When the run with this id began."""
    match = ID.fullmatch(run_id)
    if match is None:
        raise BadRequest(f"{run_id!r} is not the id of a run; its folder below _desilt/runs/ is called by it")
    return EPOCH + timedelta(milliseconds=YEAR_4000_MS - int(match[1]))
