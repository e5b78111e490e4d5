"""The steps of an upkeep, one after the other, each with its own plan, guards and record.

A refusal that is about the lake as a whole (a clock, a restored database, damage) stops
everything. One about a limit or a policy stops its own step, and those that need it.
"""

import os
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from desilt.domain.run import UPKEEP, Run, new_run
from desilt.errors import BadRequest, DesiltError, NotFound, Refused
from desilt.executors.executor import Executor
from desilt.jobs import registry, runner
from desilt.jobs.job import Job, Request
from desilt.jobs.lifecycle import kept_policy
from desilt.jobs.pins.pins import pins
from desilt.jobs.purge import DAYS, due_to_go, empty
from desilt.logs import logger, under_way
from desilt.records import removals as tombstones
from desilt.records.removals import State
from desilt.render.upkeep import render
from desilt.repository.protocol import Repository
from desilt.runs import folder as folders
from desilt.runs.folder import Folder
from desilt.runs.known import report_of
from desilt.runs.report import Amount, Report
from desilt.runs.upkeep import FILE, PAGE, STOPPED, StepReport, StepState, UpkeepReport
from desilt.sweep.limits import Limits
from desilt.sweep.purge import Purged
from desilt.upkeep.document import POLICY, TRASH, StepWish, Upkeep
from desilt.upkeep.due import due_at
from desilt.upkeep.overlap import freed_besides

ALL = "all"
REFUSED, PARTLY = 10, 3  # exit codes
log = logger(__name__)


@dataclass(slots=True)
class Chain:
    """An upkeep under way."""

    repository: Repository
    executor: Executor
    upkeep: Upkeep
    sweeps: bool  # else it is a dry run
    given: bool = False  # its document was given, not set
    confirm: Collection[str] = ()
    clock_is_right: bool = False
    reports: dict[str, Report] = field(default_factory=dict)  # of jobs that did what they were asked
    refused: dict[str, Report] = field(default_factory=dict)  # of others, if they had a plan
    done: list[StepReport] = field(default_factory=list)
    exit_code: int = 0

    def __call__(self) -> UpkeepReport:
        """All steps that are due."""
        self._check_names()
        now = self.repository.clock()
        opened = _opened(self.repository, now)
        with under_way(opened.id):
            self.repository.gate.settle_moves()
            trash = self._trash()
            for step in self.upkeep.steps:
                began = time.monotonic()
                found = self._carried_out(step)
                self.done.append(replace(found, seconds=round(time.monotonic() - began, 3)))
                log.info("%s: %s%s", step.name, found.state, f", {found.why}" if found.why else "")
            return self._told(opened, now, trash)

    # ---- one step

    def _carried_out(self, step: StepWish) -> StepReport:
        if self._stopped:
            return StepReport(step.name, StepState.NOT_TRIED, why=f"{self._stopped} stopped everything")
        if waits_for := self._missing(step):
            return StepReport(step.name, StepState.WAITS, why=f"{waits_for} was refused, and goes before it")
        due = due_at(self.repository, step)
        if due is not None and self.repository.clock() < due:
            return StepReport(step.name, StepState.NOT_DUE, due=due.isoformat())
        self.executor.watch.begins(step.name)
        act = self._empty if step.name == TRASH else self._job
        try:
            return act(step)
        except Refused as reason:
            self._note(REFUSED)
            stops = any(one.of_lake for one in reason.all)
            state = StepState.FAILED if stops else StepState.REFUSED
            facts = "; ".join(one.fact for one in reason.all) or str(reason)
            refused = StepReport(step.name, state, facts, reason.code, reason.run, passes=reason.passes)
            return replace(refused, planned=self._planned(step.name, reason.run))
        except (BadRequest, NotFound) as reason:
            self._note(REFUSED)
            return StepReport(step.name, StepState.REFUSED, str(reason), reason.code, passes=None)
        except DesiltError as error:
            self._note(error.exit_code)
            return StepReport(step.name, StepState.FAILED, str(error), error.code, passes=None)

    def _job(self, step: StepWish) -> StepReport:
        job = registry.find(step.name)
        request = self._request(job, step)
        limits = Limits(**step.limits, confirm=self._confirms(step.name), clock_is_right=self.clock_is_right)
        if self.sweeps:
            report = runner.run(job, self.repository, self.executor, request, limits)[-1]
        else:
            report = runner.plan(job, self.repository, self.executor, request, limits, before=self._goes_before)
        self.reports[step.name] = report
        section = Limits(**step.limits).words()
        found = replace(told(step.name, report), frees=self._frees(report), section=section)
        if found.state is StepState.PARTLY:
            self._note(PARTLY)
        return found

    def _planned(self, name: str, run: str) -> Amount:
        """What a run that was refused would have removed; its plan has it."""
        if run:
            with suppress(DesiltError):  # it was refused for a reason of its own, which is told
                self.refused[name] = report_of(self.repository, run)
                return self.refused[name].removed
        return Amount()

    def _request(self, job: Job[Any], step: StepWish) -> Request[Any]:
        """What the job is asked; a policy of an upkeep that is set must be what the lake goes by."""
        words, policy = dict(step.words), step.words.get(POLICY)
        if policy is not None and not self.given:
            kept = kept_policy.kept(self.repository)
            if kept.policy.fingerprint != policy.fingerprint:
                fact = f"the {job.name} policy was set otherwise on {kept.at:%Y-%m-%d}"
                raise Refused(fact, "set the upkeep again, or take the policy out of it")
            del words[POLICY]
        return job.request(self.repository, confirm=self._confirms(job.name) or not self.sweeps, **words)

    def _empty(self, step: StepWish) -> StepReport:
        """The trash."""
        age = step.words.get("older_than", DAYS)
        if not self.sweeps:
            would = due_to_go(self.repository, age)
            return StepReport(step.name, StepState.PLANNED if would.objects else StepState.NOTHING, planned=would)
        found = empty(self.repository, self.executor, older_than=age, clock_is_right=self.clock_is_right)
        gone = sum(found.values(), Purged())
        if gone.failed:
            self._note(PARTLY)
        why = f"{gone.held:,} are held by people's orders" if gone.held else ""
        state = StepState.PARTLY if gone.failed else StepState.DONE if gone.objects else StepState.NOTHING
        amount = Amount(gone.objects, gone.bytes)
        return StepReport(step.name, state, why, planned=amount, removed=amount)

    # ---- what all of them come to

    @property
    def _goes_before(self) -> Amount:
        """What the steps before would take in a dry run, as far as guards count it."""
        return sum((report.data for report in self.reports.values()), Amount())

    def _frees(self, report: Report) -> Amount:
        """What a collection frees because of an expiration, without what lifecycle takes before."""
        if report.frees is None or not report.history.get("abandoned"):
            return Amount()
        earlier = self.reports.get("lifecycle")
        if earlier is None or not earlier.removed.objects or earlier.swept is not None:
            return report.frees.total
        return freed_besides(self.repository, self.executor, report, earlier)

    def _told(self, opened: Run, now: datetime, trash: Amount) -> UpkeepReport:
        found = UpkeepReport(
            opened.id,
            self.repository.name,
            self.repository.argument,
            now.isoformat(),
            self.sweeps,
            tuple(self.done),
            self._stored(),
            trash,
            self.exit_code,
        )
        folder = Folder(self.repository.store, self.repository.prefix, opened)
        folder.put_text(PAGE, render(found))
        folder.put_text(FILE, found.to_json())
        return found

    def _stored(self) -> Amount:
        """What there was before: what garbage collection has listed, or else what anything keeps."""
        listed = self.reports.get("gc") or self.refused.get("gc")
        if listed is not None:
            taken = sum((one.removed - one.tables for one in self.done if one.step not in ("gc", TRASH)), Amount())
            return listed.stored + taken
        try:
            return pins(self.repository, self.executor, limit=0).total
        except DesiltError:
            return Amount()

    def _trash(self) -> Amount:
        with self.repository.records.read() as tx:
            return Amount(*tombstones.total_in(tx, self.repository.uid, State.TRASHED))

    @property
    def _stopped(self) -> str:
        """The step that stopped everything."""
        return next((one.step for one in self.done if one.state is StepState.FAILED), "")

    def _missing(self, step: StepWish) -> str:
        """A step that this one needs, and that was refused."""
        needs = () if step.name == TRASH else registry.find(step.name).traits.needs
        return next((one.step for one in self.done if one.step in needs and one.state in STOPPED), "")

    def _confirms(self, name: str) -> bool:
        return name in self.confirm or ALL in self.confirm

    def _note(self, code: int) -> None:
        """Of several exit codes the one that says most: what failed, then what was refused, then what is not done."""
        order = (0, PARTLY, REFUSED)
        known = self.exit_code not in order
        if not known and (code not in order or order.index(code) > order.index(self.exit_code)):
            self.exit_code = code

    def _check_names(self) -> None:
        steps = [step.name for step in self.upkeep.steps]
        for name in self.confirm:
            if name not in steps and name != ALL:
                raise BadRequest(f"{name!r} is no step of this upkeep; there are {', '.join([*steps, ALL])}")


def told(step: str, report: Report) -> StepReport:
    """What a run of a job came to, as a step."""
    found = StepReport(
        step,
        StepState.NOTHING,
        run=report.run,
        action=report.action,
        planned=report.removed,
        tables=report.tables,
        history=report.history,
    )
    if report.swept is None:
        state = StepState.PLANNED if report.does else StepState.NOTHING
        return replace(found, state=state, objections=report.objections, passes=report.passes)
    removed = Amount(report.swept.removed, report.swept.bytes)
    state = StepState.PARTLY if report.swept.failed else StepState.DONE if report.does else StepState.NOTHING
    return replace(found, state=state, removed=removed)


def _opened(repository: Repository, now: datetime) -> Run:
    known = folders.runs_of(repository.store, repository.prefix, job=UPKEEP)
    last = next((run_id for _, run_id in known), None)
    return new_run(UPKEEP, now=now, started_at=now, entropy=os.urandom(4), last=last)
