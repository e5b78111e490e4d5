"""A worker of hard delete: removes what has waited for its grace, once or for as long as it is let.

Any number may be at work at once, on one machine or many: none takes a lock. One that is
killed leaves what it had claimed, and another takes that up once its lease has ended.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from desilt.domain.run import Run, new_run
from desilt.errors import BadRequest, BatchOver, Conflict, StorageFailed
from desilt.executors.executor import Nobody, Watch
from desilt.jobs.harddelete import pace
from desilt.jobs.harddelete.report import RemovedSoFar, publish
from desilt.jobs.situation import check_clock
from desilt.logs import logger, under_way
from desilt.records.ledger import RunRow, RunState
from desilt.repository.hard_delete import JOB, MAX_SHARE, HardDelete
from desilt.repository.protocol import Repository
from desilt.runs import folder as folders
from desilt.runs.folder import Folder
from desilt.runs.report import Report
from desilt.runs.steps import Action
from desilt.sweep import discards
from desilt.sweep.limits import Limits

LASTS = timedelta(hours=1)  # a run of a worker that goes on; the next one begins then
POLL_SECONDS = (1.0, 30.0)
log = logger(__name__)
NOBODY = Nobody()


def hard_delete_of(repository: Repository) -> HardDelete:
    found = repository.hard_delete
    if found is None:
        raise BadRequest(
            repository.refuses.get(JOB)
            or f"{repository.name!r} is of a kind that has no hard delete; `desilt gc` collects what it leaves"
        )
    return found


@dataclass(slots=True)
class HardDeleteWorker:
    """One worker at work on a repository; it has a run on record once it has removed something."""

    repository: Repository
    max_share: float | None = None  # None: as it was set
    watch: Watch = NOBODY
    per_second: int | None = None  # how many objects may go, by all workers and sweeps together
    _run: Run | None = None
    _number: int = 0
    _tally: RemovedSoFar = field(default_factory=RemovedSoFar)

    def work(self) -> Report | None:
        """Remove all that is due; None if there is nothing. Refused where that is too much of the lake."""
        repository, hard_delete = self.repository, hard_delete_of(self.repository)
        if not hard_delete.is_due():
            return None
        check_clock(repository)
        repository.gate.settle_moves()
        run = self._current()
        self.watch.begins("remove")
        self.watch.expects(hard_delete.discards().due)
        began, found = time.monotonic(), 0
        with under_way(run.id):
            while hard_delete.is_due():
                repository.gate.check()
                self._check_pace(hard_delete)
                done = self._batch(hard_delete, run)
                if done is None:
                    break  # the rest is held
                found += done
        return publish(repository, run, self._tally, time.monotonic() - began) if found else None

    def _batch(self, hard_delete: HardDelete, run: Run) -> int | None:
        """How many objects were asked for; None if there was nothing to claim."""
        # over at any moment: what it has not settled is whoever's that claims it next, and nobody takes it up
        row = RunRow(run.id, JOB, "", Action.DELETE, run.now, None, RunState.SWEPT, 0, 0)
        folder = Folder(self.repository.store, self.repository.prefix, run)
        number, self._number = self._number, self._number + 1  # whatever becomes of it, no other claim has its number
        try:
            done = discards.remove(self.repository, hard_delete, row, number, folder, self.per_second)
        except BatchOver as reason:
            log.warning("%s; what is left of it is another worker's", reason)
            return 0
        if done is None:
            return None
        self._tally.add(self.repository, folder, done)
        self.watch.advance(done.asked)
        return done.asked

    def _check_pace(self, hard_delete: HardDelete) -> None:
        setting, share = hard_delete.setting(), self.max_share
        pace.check(hard_delete.discards(), share if share is not None else setting.max_share if setting else MAX_SHARE)

    def _current(self) -> Run:
        """The run that this worker is at; after an hour, whenever there is something to do, another one."""
        now = self.repository.clock()
        if self._run is None or (self._number and now - self._run.now >= LASTS):
            last = folders.newest(self.repository.store, self.repository.prefix)
            self._run = new_run(JOB, now=now, started_at=now, entropy=os.urandom(4), last=last)
            self._number, self._tally = 0, RemovedSoFar()
        return self._run


def remove(
    repository: Repository,
    *,
    max_share: float | None = None,
    max_deletes_per_second: int | None = None,
    watch: Watch = NOBODY,
) -> Report | None:
    """Remove all that is due by now; None if there is nothing."""
    limits = Limits(max_deletes_per_second=max_deletes_per_second)
    return HardDeleteWorker(repository, max_share, watch, limits.max_deletes_per_second).work()


def keep_removing(
    repository: Repository,
    *,
    max_share: float | None = None,
    max_deletes_per_second: int | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Report]:
    """Remove what is due, again and again; each time that something went, the report of the run so far."""
    limits = Limits(max_deletes_per_second=max_deletes_per_second)
    worker = HardDeleteWorker(repository, max_share, per_second=limits.max_deletes_per_second)
    while True:
        try:
            report = worker.work()
        except (Conflict, StorageFailed) as reason:  # which passes
            log.warning("tried again later: %s", reason)
            report = None
        if report is not None:
            yield report
        sleep(poll(hard_delete_of(repository)))


def poll(hard_delete: HardDelete) -> float:
    """How long to wait for what is dropped next: a tenth of its grace, within reason."""
    setting, (least, most) = hard_delete.setting(), POLL_SECONDS
    return most if setting is None else min(max(setting.grace.total_seconds() / 10, least), most)
