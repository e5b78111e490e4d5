"""Uncommitted garbage: objects that were uploaded and never became, or are no longer, part of anything.

An object goes when no commit of the repository holds it, reachable or not; no
staging area of any branch, and no open ticket; and when every clock says that it
is older than a ticket lives.
"""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from desilt.domain.reason import Reason
from desilt.domain.run import Run
from desilt.errors import CorruptTable
from desilt.jobs.judging import Answer, judge, questions
from desilt.sources.inventory import total
from desilt.sources.lake import LakeSource
from desilt.sources.spread import Spread

JOB = "gc"
CLOCK_MARGIN = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Marked:
    """What a mark found, and from what."""

    answer: Answer
    before: datetime
    branches: dict[str, str]  # names by uid
    inputs: dict[str, int]
    seconds: dict[str, float]  # by stage


class Stopwatch:
    """How long each stage took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = time.monotonic()

    def ends(self, stage: str) -> None:
        now = time.monotonic()
        self.seconds[stage], self._since = round(now - self._since, 3), now


def mark(run: Run, source: LakeSource, spread: Spread) -> Marked:
    """The plan, written into the run's folder."""
    core = source.repository.core
    before = run.now - core.ticket_life - CLOCK_MARGIN  # fixed before anything is read
    stage, width = Stopwatch(), spread.width
    # In this order, since an address only ever moves from a ticket to a staging area to a commit.
    tickets = source.open_tickets(run, min(run.now, core.clock()))
    staged = source.staged(run)
    stage.ends("tickets and staged")
    committed = source.committed()
    stage.ends("commits and ranges")
    stored = source.inventory(run)
    stage.ends("inventory")

    def judged() -> Answer:
        held = {Reason.STAGED: staged.files, Reason.TICKET: [tickets], Reason.COMMITTED: committed.files}
        files, folder = [listed.file for listed in stored], f"{core.prefix}{run.folder}plan/"
        asked = questions(core.store.uri, files, held, before=before, folder=folder, width=width)
        return sum(spread(judge, asked), Answer())

    answer = judged()
    if answer.damaged and answer.damaged <= {file.key for file in committed.files}:  # a cache can be made again
        source.distrust(answer.damaged)
        committed = source.committed()
        answer = judged()
    if answer.damaged:
        raise CorruptTable(min(answer.damaged), "it could not be read back")
    stage.ends("verdicts")
    objects, size = total(stored)
    if (answer.objects.total(), answer.bytes.total()) != (objects, size):
        raise AssertionError(f"{objects} objects were listed, {answer.objects.total()} got a verdict")
    inputs = {
        "objects": objects,
        "bytes": size,
        "commits": committed.commits,
        "ranges": committed.ranges,
        "committed entries": committed.entries,
        "staged entries": staged.entries,
        "open tickets": tickets.rows,
        "generation": staged.generation,
    }
    return Marked(answer, before, staged.branches, inputs, stage.seconds)
