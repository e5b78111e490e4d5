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
from desilt.jobs.guarded import refusal
from desilt.jobs.job import Job, Request
from desilt.jobs.lifecycle import kept_policy
from desilt.jobs.pins.pins import pins
from desilt.jobs.purge import DAYS, due_to_go, empty
from desilt.jobs.retention import document as documented
from desilt.jobs.unfinished import unfinished
from desilt.logs import logger, under_way
from desilt.records import removals as tombstones
from desilt.records.removals import State
from desilt.render.upkeep import render
from desilt.repository.protocol import Repository
from desilt.runs import folder as folders
from desilt.runs.folder import Folder
from desilt.runs.known import report_of
from desilt.runs.report import Amount, Objection, Report
from desilt.runs.upkeep import FILE, PAGE, STOPPED, StepReport, StepState, UpkeepReport
from desilt.sweep.limits import Limits
from desilt.sweep.purge import Purged
from desilt.upkeep.document import DOCUMENT, PACE, POLICY, TRASH, StepWish, Upkeep
from desilt.upkeep.due import due_at
from desilt.upkeep.outcomes import cut_off, finished, ordered_to_stay, told
from desilt.upkeep.overlap import freed_besides

ALL = "all"
DEFAULT = Limits()
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
    file: str = ""  # in which, where that has a name
    confirm: Collection[str] = ()
    clock_is_right: bool = False
    reports: dict[str, Report] = field(default_factory=dict)  # of jobs that did what they were asked
    refused: dict[str, Report] = field(default_factory=dict)  # of others, if they had a plan
    finished: list[Report] = field(default_factory=list)  # of runs that were cut off before: their figures are old
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
            self._finish()
            for step in self.upkeep.steps:
                began = time.monotonic()
                found = self._carried_out(step)
                self.done.append(replace(found, seconds=round(time.monotonic() - began, 3)))
                log.info("%s: %s%s", step.name, found.state, f", {found.why}" if found.why else "")
            return self._told(opened, now, trash)

    # ---- what was cut off before

    def _finish(self) -> None:
        """Runs that were cut off come first; each is told like a step."""
        left = unfinished(self.repository)
        if not self.sweeps:
            self.done.extend(cut_off(self.repository, row) for row in left)
            return
        try:
            paces = [step.limits[PACE] for step in self.upkeep.steps if step.limits.get(PACE)]
            limits = Limits(clock_is_right=self.clock_is_right, max_deletes_per_second=min(paces, default=None))
            reports = runner.finish_all(self.repository, self.executor, limits)
        except DesiltError as reason:
            self.done.append(self._stopped_by(left[0].job if left else UPKEEP, reason))
            return
        for report in reports:
            self.finished.append(report)
            self.done.append(finished(report))
            if self.done[-1].state is StepState.PARTLY:
                self._note(PARTLY)

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
        except DesiltError as reason:
            return self._stopped_by(step.name, reason, Limits(**step.limits))

    def _stopped_by(self, name: str, reason: DesiltError, limits: Limits = DEFAULT) -> StepReport:
        """What kept a step from being done: a refusal of its own, or one that is about the lake, or a failure."""
        if isinstance(reason, Refused):
            self._note(REFUSED)
            stops = any(one.of_lake for one in reason.all)
            facts = "; ".join(one.fact for one in reason.all) or str(reason)
            found = StepReport(name, StepState.FAILED if stops else StepState.REFUSED, facts, reason.code, reason.run)
            return replace(
                found,
                passes=self._passes(name, reason, limits),
                planned=self._planned(name, reason.run),
                objections=tuple(Objection(one.code, one.fact, one.way_out) for one in reason.all),
                section=limits.words(),
            )
        own = isinstance(reason, BadRequest | NotFound)
        self._note(REFUSED if own else reason.exit_code)
        state = StepState.REFUSED if own else StepState.FAILED
        return StepReport(name, state, str(reason), reason.code, passes=None)

    def _passes(self, name: str, reason: Refused, limits: Limits) -> str | None:
        """What would let its plan pass, once those have that were refused before it."""
        if not reason.run or not self.refused:
            return reason.passes
        before = sum((report.data for report in self.refused.values()), Amount())
        with suppress(DesiltError):
            enough = refusal(registry.find(name), self.repository, reason.run, limits, before)[1]
            return None if enough is None else enough.words()
        return reason.passes

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
        if words.get(DOCUMENT) is not None and not self.given:
            made = documented.kept(self.repository)
            if made.retention.fingerprint() != words.pop(DOCUMENT).fingerprint():
                fact = f"the {job.name} document was set otherwise on {made.created_at:%Y-%m-%d}"
                raise Refused(fact, "set the upkeep again, or take the document out of it")
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
            right = self.clock_is_right
            would, held = due_to_go(self.repository, self.executor, age, clock_is_right=right)
            state = StepState.PLANNED if would.objects else StepState.NOTHING
            return StepReport(step.name, state, ordered_to_stay(held), planned=would)
        found = empty(
            self.repository,
            self.executor,
            older_than=age,
            clock_is_right=self.clock_is_right,
            max_deletes_per_second=step.limits.get(PACE),
        )
        gone = sum(found.values(), Purged())
        if gone.failed:
            self._note(PARTLY)
        why = ordered_to_stay(gone.held)
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
        if report.frees is None or not report.loses_commits:
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
            self.file,
        )
        folder = Folder(self.repository.store, self.repository.prefix, opened)
        folder.put_text(PAGE, render(found))
        folder.put_text(FILE, found.to_json())
        return found

    def _stored(self) -> Amount:
        """What there was before: what garbage collection has listed, or else what anything keeps."""
        gc = [step for step in self.upkeep.steps if step.name == "gc" and not step.words.get("branch")]
        listed = (self.reports.get("gc") or self.refused.get("gc")) if gc else None
        taken = sum((one.removed - one.tables for one in self.done if one.step not in ("gc", TRASH)), Amount())
        if listed is not None:
            return listed.stored + taken
        try:
            return pins(self.repository, self.executor, limit=0).total + taken
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


def _opened(repository: Repository, now: datetime) -> Run:
    last = folders.newest(repository.store, repository.prefix)
    return new_run(UPKEEP, now=now, started_at=now, entropy=os.urandom(4), last=last)
