"""The jobs of a repository, one face each: what to plan or run, by keywords."""

from collections.abc import Mapping
from typing import Any, Unpack

from desilt.api.calls import fitting
from desilt.api.planned import PlannedRun
from desilt.api.report import RunReport, shown
from desilt.api.words import (
    CollectRunWords,
    CollectWords,
    ExpireRunWords,
    ExpireWords,
    GcRunWords,
    GcWords,
    LifecycleRunWords,
    LifecycleWords,
    flag_of,
)
from desilt.api.workplace import Workplace
from desilt.domain.policy import Policy
from desilt.jobs import registry, runner
from desilt.jobs.lifecycle import kept_policy, lint
from desilt.jobs.lifecycle.policy_file import PolicyLike, policy_of
from desilt.jobs.request import to_plan, to_run


class JobFace:
    """What the faces of all jobs share: a name, ``plan`` and ``run``."""

    def __init__(self, place: Workplace, name: str) -> None:
        self._place, self._job = place, registry.find(name)

    @property
    def name(self) -> str:
        return self._job.name

    def _plan(self, said: Mapping[str, Any]) -> PlannedRun:
        repository = self._place.repository
        asked = to_plan(self._job, repository, said)
        return PlannedRun(self._place, runner.plan(self._job, repository, self._place.executor, asked))

    def _run(self, said: Mapping[str, Any]) -> RunReport:
        repository = self._place.repository
        asked, limits = to_run(self._job, repository, said)
        return shown(runner.run(self._job, repository, self._place.executor, asked, limits)[-1])

    def __repr__(self) -> str:
        return f"<job {self.name} of {self._place.opened.repository.name!r}>"


class AnyJob(JobFace):
    """A job of any package, by its name.

    Keywords are the job's own options, and ``now``, ``action`` ("trash") and ``full``.
    """

    @fitting
    def plan(self, **options: Any) -> PlannedRun:
        """Mark what may go; remove nothing."""
        return self._plan(options)

    @fitting
    def run(self, **options_and_limits: Any) -> RunReport:
        """Finish what an earlier run left unfinished, then plan and sweep."""
        return self._run(options_and_limits)


class GcFace(JobFace):
    """Objects that were uploaded and never became, or are no longer, part of anything."""

    @fitting
    def plan(self, **options: Unpack[GcWords]) -> PlannedRun:
        """Mark what may go; remove nothing."""
        return self._plan(options)

    @fitting
    def run(self, **options_and_limits: Unpack[GcRunWords]) -> RunReport:
        """Finish what an earlier run left unfinished, then plan and sweep."""
        return self._run(options_and_limits)


class LifecycleFace(JobFace):
    """Committed objects that a policy calls old."""

    @fitting
    def plan(self, **options: Unpack[LifecycleWords]) -> PlannedRun:
        """Mark what may go by ``policy`` (a mapping, a path, a text), or by the one that is set; remove nothing."""
        return self._plan(options)

    @fitting
    def run(self, **options_and_limits: Unpack[LifecycleRunWords]) -> RunReport:
        """Finish what an earlier run left unfinished, then plan and sweep."""
        return self._run(options_and_limits)

    @fitting
    def set(self, policy: PolicyLike, *, confirm: bool = False) -> Policy:
        """Let later runs go by ``policy``; with ``confirm``, whatever lint wants said twice."""
        repository, wanted = self._place.repository, policy_of(policy)
        found = lint.given(repository, wanted, confirm=flag_of("confirm", confirm))
        return kept_policy.keep(repository, wanted, found).policy

    @fitting
    def get(self) -> Policy:
        """The policy that runs go by."""
        return kept_policy.kept(self._place.repository).policy


class ExpireFace(JobFace):
    """History made shorter: commits from before a moment are hidden from refs. No object is removed."""

    @fitting
    def plan(self, **options: Unpack[ExpireWords]) -> PlannedRun:
        """Decide what is hidden that is ``older_than`` (``"30d"``) or from ``before`` (``"2026-01-31"``)."""
        return self._plan(options)

    @fitting
    def run(self, **options_and_limits: Unpack[ExpireRunWords]) -> RunReport:
        """Finish what an earlier run left unfinished, then plan, and edit history."""
        return self._run(options_and_limits)


class CollectFace(JobFace):
    """Commits that no branch, tag or hold reaches, and all that only they had. There is no way back from it."""

    @fitting
    def plan(self, **options: Unpack[CollectWords]) -> PlannedRun:
        """Mark what may go; remove nothing."""
        return self._plan(options)

    @fitting
    def run(self, **options_and_limits: Unpack[CollectRunWords]) -> RunReport:
        """Finish what an earlier run left unfinished, then plan and sweep."""
        return self._run(options_and_limits)
