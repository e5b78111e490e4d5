"""The jobs of a repository, one face each: what to plan or run, by keywords."""

from collections.abc import Mapping, Sequence
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
    RetentionRunWords,
    RetentionWords,
    Span,
    flag_of,
    span_of,
    text_of,
)
from desilt.api.workplace import Workplace
from desilt.domain.policy import Policy
from desilt.domain.retention import Retention
from desilt.jobs import registry, runner
from desilt.jobs.lifecycle import kept_policy, lint
from desilt.jobs.lifecycle.policy_file import PolicyLike, policy_of
from desilt.jobs.request import to_plan, to_run
from desilt.jobs.retention import document as documented
from desilt.jobs.retention import lint as retention_lint
from desilt.jobs.retention import restore as restoring
from desilt.jobs.retention import vacuum as vacuuming
from desilt.jobs.retention.document import RetentionLike, retention_of
from desilt.jobs.retention.vacuum import Vacuumed
from desilt.sweep.unmark import Unmarked


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


class RetentionFace(JobFace):
    """Objects that rules call expired: marked, tagged, and removed by the object store."""

    @fitting
    def plan(self, **options: Unpack[RetentionWords]) -> PlannedRun:
        """Say what would be marked by ``document`` (a mapping, a path, a text), or by the one that is set."""
        return self._plan(options)

    @fitting
    def run(self, **options_and_limits: Unpack[RetentionRunWords]) -> RunReport:
        """Finish what an earlier run left unfinished, then mark what expired, and follow up what is marked."""
        return self._run(options_and_limits)

    @fitting
    def set(self, document: RetentionLike, *, confirm: bool = False) -> Retention:
        """Let later runs go by ``document``; with ``confirm``, whatever lint wants said twice."""
        repository, wanted = self._place.repository, retention_of(document)
        found = retention_lint.given(repository, wanted, confirm=flag_of("confirm", confirm))
        return documented.keep(repository, wanted, found).retention

    @fitting
    def get(self) -> Retention:
        """The document that runs go by."""
        return documented.kept(self._place.repository).retention

    @fitting
    def restore(self, *, run: str | None = None, prefix: str | None = None, addresses: Sequence[str] = ()) -> Unmarked:
        """Take marks back: of a run, below ``prefix`` (``"main/logs/"``, as in a rule), or of some addresses."""
        place, names = self._place, tuple(text_of("addresses", one) or "" for one in addresses)
        wanted, below = text_of("run", run), text_of("prefix", prefix)
        return restoring.restore(place.repository, place.executor, run=wanted, prefix=below, addresses=names)

    @fitting
    def vacuum(self, *, older_than: Span = vacuuming.OLDER_THAN) -> Vacuumed:
        """Move what the ledger says of objects that are gone, and that nothing points to any more, to an archive."""
        age = span_of("older_than", older_than)
        wanted = vacuuming.OLDER_THAN if age is None else age
        return vacuuming.vacuum(self._place.repository, self._place.executor, older_than=wanted)


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
