"""A plan in hand: looked at, and carried out."""

from functools import cached_property
from typing import TYPE_CHECKING, Unpack

import pyarrow as pa

from desilt.api.calls import fitting
from desilt.api.report import RunReport, shown
from desilt.api.words import LimitWords
from desilt.api.workplace import Workplace
from desilt.domain.run import Run, started
from desilt.errors import Refused
from desilt.jobs import registry, runner
from desilt.jobs.guarded import refusal
from desilt.jobs.plan_rows import removals
from desilt.jobs.request import limits_of
from desilt.render.card import card
from desilt.runs import plan as plans
from desilt.runs.folder import Folder
from desilt.runs.known import outcome
from desilt.runs.plan import Plan
from desilt.runs.report import Report
from desilt.sweep.limits import Limits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class PlannedRun:
    """What a run would do. It is written down in the repository: any process can carry it out, by its id."""

    def __init__(self, place: Workplace, report: Report) -> None:
        self._place, self.report = place, shown(report)

    @property
    def run(self) -> str:
        """The id of the run."""
        return self.report.run

    @property
    def job(self) -> str:
        return self.report.job

    @property
    def safety(self) -> str:
        """What stands between a verdict and a race: ``atomic``, ``conditional`` or ``grace``."""
        return self.report.safety

    @cached_property
    def _plan(self) -> Plan:
        repository = self._place.repository
        folder = Folder(repository.store, repository.prefix, Run(self.run, self.job, started(self.run)))
        return plans.read(folder, repository.secret)

    def removals(self) -> "pa.Table | DataFrame":
        """Every object that would go: address, path where it is known, branch, size, reason and rule.

        A frame of Spark's where the repository was opened with a session, else a table of pyarrow's.
        """
        return removals(self._place.repository, self._plan, self._place.executor)

    @fitting
    def refusal(self, **limits: Unpack[LimitWords]) -> Refused | None:
        """What a guard would say to a sweep now; None if nothing, or if it was swept."""
        return self._guarded(limits_of(limits))[0]

    @fitting
    def sweep(self, **limits: Unpack[LimitWords]) -> RunReport:
        """Carry it out: remove what it says and nothing else. One that was swept before is only told of, again."""
        place, allowed = self._place, limits_of(limits)
        self.report = shown(runner.sweep(place.repository, place.executor, self.run, allowed))
        return self.report

    def _guarded(self, limits: Limits) -> tuple[Refused | None, Limits | None]:
        """What a guard would say, and the limits that it would let pass, if there are any."""
        repository = self._place.repository
        if self.report.swept is not None or outcome(repository, self.run) is not None:
            return None, limits
        return refusal(registry.find(self.job), repository, self.run, limits)

    def __repr__(self) -> str:
        goes = self.report.removed
        would = "would go" if self.report.swept is None else "were to go"
        return f"<plan {self.run} of {self.job}: {goes.objects:,} objects of {goes.bytes:,} bytes {would}>"

    def _repr_html_(self) -> str:
        if self._place.closed:
            return card(self.report)
        reason, passes = self._guarded(Limits())
        facts = [one.fact for one in reason.all] if reason else []
        return card(self.report, refusals=facts, passes=passes.keywords() if passes else None)
