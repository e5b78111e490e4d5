"""Life that goes on while a job is at work: before any of its transactions and store calls, somebody does something.

A job is given a repository whose every step calls :meth:`Life.goes_on`. What others
do then is an :class:`Event`; what the job did in the step before is judged: whatever
it condemned was free, by the naive oracle, at the moment just before. So no
interval between two steps is left out, whatever a job reads when.

    life = Life(repository, judge, {17: hold_something})
    job_repository = Lake(*life.around(database, store)).repository("many")
    run(job, job_repository, …)
    life.end()
"""

import itertools
import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from desilt.errors import DesiltError
from desilt.lake.repository import LakeRepository
from desilt.objects.store import ObjectStore
from desilt.records.database import Database
from desilt.testing.faults import SteppedDatabase, Steps, stepped

Event = Callable[[LakeRepository], object]
"""What somebody does, by a way of their own into the repository; it may be refused."""


class StepJudge(Protocol):
    """Says after every step of a job whether that was right."""

    def before(self) -> None:
        """A step is about to be taken."""

    def after(self) -> None:
        """It was taken, and nobody else has done anything meanwhile."""


class Life:
    """What others do before the steps of a job, by the number of the step; and the judge of each step."""

    def __init__(self, repository: LakeRepository, judge: StepJudge, events: Mapping[int, Event] | None = None) -> None:
        self.steps = 0
        self.refused: list[DesiltError] = []
        self._repository, self._judge, self._events = repository, judge, dict(events or {})
        self._numbers = itertools.count()
        self._job = threading.current_thread()
        self._begun = False

    def around(self, database: Database, store: ObjectStore) -> tuple[Database, ObjectStore]:
        """The same, for the job: its every transaction and call is a step."""
        steps = Steps(pause=self.goes_on)
        return SteppedDatabase(database, steps), stepped(store, steps)

    def goes_on(self) -> None:
        """Before the next step of the job."""
        if threading.current_thread() is not self._job:
            return  # what Arrow reads in threads of its own is part of the step that asked for it
        if self._begun:
            self._judge.after()
        number, self._begun = next(self._numbers), True
        self.steps = number + 1
        if number in self._events:
            try:
                self._events[number](self._repository)
            except DesiltError as error:
                self.refused.append(error)
        self._judge.before()

    def end(self) -> None:
        """After the last step."""
        if self._begun:
            self._judge.after()
            self._begun = False
