"""A repository of any kind, opened for use from Python."""

import os
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING

from desilt.api.calls import fitting
from desilt.api.face import AnyJob, CollectFace, ExpireFace, GcFace, LifecycleFace, RetentionFace
from desilt.api.hard_delete import HardDeleteFace
from desilt.api.holds import HoldList
from desilt.api.planned import PlannedRun
from desilt.api.report import RunReport, shown
from desilt.api.upkeep import UpkeepFace
from desilt.api.words import Moment, Span, flag_of, moment_of, number_of, span_of, text_of
from desilt.api.workplace import Workplace
from desilt.errors import BadRequest
from desilt.executors.by_size import BySize
from desilt.executors.executor import Executor
from desilt.executors.on_spark import OnSpark
from desilt.jobs import purge as purge_job
from desilt.jobs import registry, trash
from desilt.jobs.explain.explain import explain
from desilt.jobs.explain.explanation import Explanation
from desilt.jobs.lifecycle.policy_file import PolicyLike, policy_of
from desilt.jobs.lifecycle.simulate import Rehearsal, simulate
from desilt.jobs.pins.pins import LIMIT, pins
from desilt.jobs.stats.stats import DEPTH, FOLDERS, stats
from desilt.repository.opening import open_uri
from desilt.runs import known
from desilt.runs.known import KnownRun
from desilt.runs.pins import Pins
from desilt.runs.simulation import Simulation
from desilt.runs.stats import Stats
from desilt.sweep.purge import Purged
from desilt.sweep.restore import Restored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@fitting
def open_repository(
    uri: str | os.PathLike[str], *, spark: "SparkSession | None" = None, db: str | None = None
) -> "OpenRepository":
    """The repository at ``uri``: what the command line takes as REPO, ``./lake#mine`` or ``s3://bucket/prefix#mine``.

    Work is done in this process and, where it is large, in others beside it; or on the executors of ``spark``, which
    stays the caller's. ``db`` is where its records are, if not beside it; DESILT_DB says so, too.
    """
    if not isinstance(uri, str | os.PathLike):
        raise BadRequest(f"a repository is named by a text, such as './lake#mine', not by {type(uri).__name__}")
    executor: Executor = BySize() if spark is None else OnSpark(spark)
    return OpenRepository(Workplace(open_uri(os.fspath(uri), db=text_of("db", db)), executor))


class OpenRepository:
    """What a repository holds, what may go, and what became of it. Close it after use, or use it inside ``with``."""

    def __init__(self, place: Workplace) -> None:
        self._place = place

    # ---- jobs

    @property
    def gc(self) -> GcFace:
        """Objects that were uploaded and never became, or are no longer, part of anything."""
        return GcFace(self._place, "gc")

    @property
    def lifecycle(self) -> LifecycleFace:
        """Committed objects that a policy calls old."""
        return LifecycleFace(self._place, "lifecycle")

    @property
    def retention(self) -> RetentionFace:
        """Objects that rules call expired: marked, and removed by the object store."""
        return RetentionFace(self._place, "retention")

    @property
    def expire(self) -> ExpireFace:
        """History made shorter."""
        return ExpireFace(self._place, "expire")

    @property
    def collect(self) -> CollectFace:
        """Commits that nothing reaches, and all that only they had."""
        return CollectFace(self._place, "collect")

    @property
    def hard_delete(self) -> HardDeleteFace:
        """What was never committed, removed once nothing points to it any more."""
        return HardDeleteFace(self._place)

    @property
    def upkeep(self) -> UpkeepFace:
        """What is done about the past, in one document: all jobs, and what is due."""
        return UpkeepFace(self._place)

    @fitting
    def job(self, name: str) -> AnyJob:
        """A job by its name: one of the above, or of another package."""
        return AnyJob(self._place, text_of("name", name) or "")

    @staticmethod
    def jobs() -> list[str]:
        """The names of all jobs there are, those of other packages among them."""
        return registry.names()

    # ---- runs

    @fitting
    def runs(self, *, job: str | None = None) -> list[KnownRun]:
        """Every run there was, newest first."""
        return known.every(self._place.repository, job=text_of("job", job))

    @fitting
    def report(self, run: str = "last") -> RunReport:
        """The report of a run, by its id, the beginning of it, or ``"last"``."""
        return shown(known.report_of(self._place.repository, text_of("run", run) or ""))

    @fitting
    def planned(self, run: str = "last") -> PlannedRun:
        """A plan that was made before, maybe by another process: to be looked at, or swept."""
        return PlannedRun(self._place, self.report(run))

    @fitting
    def restore(self, run: str, *, prefix: str = "") -> Restored:
        """Bring back what ``run`` moved to the trash, below ``prefix`` (of addresses)."""
        place = self._place
        wanted, below = text_of("run", run) or "", text_of("prefix", prefix) or ""
        return trash.bring_back(place.repository, place.executor, wanted, prefix=below)

    @fitting
    def purge(
        self,
        *,
        older_than: Span = purge_job.DAYS,
        run: str | None = None,
        clock_is_right: bool = False,
        max_deletes_per_second: int | None = None,
    ) -> Purged:
        """Remove for good what has been in the trash for ``older_than``, of all runs or of one."""
        place, age = self._place, span_of("older_than", older_than)
        found = purge_job.empty(
            place.repository,
            place.executor,
            older_than=purge_job.DAYS if age is None else age,
            run_id=text_of("run", run),
            clock_is_right=flag_of("clock_is_right", clock_is_right),
            max_deletes_per_second=number_of("max_deletes_per_second", max_deletes_per_second),
        )
        return sum(found.values(), Purged())

    # ---- looking

    @fitting
    def explain(self, wanted: str, *, ref: str | None = None, now: Moment | None = None) -> list[Explanation]:
        """Why an object is kept, or what removed it: by its path, at ``ref`` or anywhere, or by its address."""
        at: datetime | None = moment_of("now", now)
        return explain(self._place.repository, text_of("wanted", wanted) or "", ref=text_of("ref", ref), now=at)

    @fitting
    def pins(self, *, limit: int = LIMIT) -> Pins:
        """Which branch, tag, hold or staging area keeps how many bytes, alone and together."""
        groups = number_of("limit", limit)
        if groups is not None and groups < 0:
            raise BadRequest(f"'limit' is {groups}; give how many groups to tell, 0 for none")
        return pins(self._place.repository, self._place.executor, limit=LIMIT if groups is None else groups)

    @fitting
    def stats(self, *, folders: int = FOLDERS, depth: int = DEPTH) -> Stats:
        """How much there is by branch, folder and age, what waits, and how it grew."""
        wanted = {"folders": number_of("folders", folders), "depth": number_of("depth", depth)}
        if (wanted["folders"] or 0) < 0 or not 1 <= (wanted["depth"] or 0) <= 20:
            raise BadRequest("'folders' is how many to tell, 'depth' how deep, from 1 to 20")
        return stats(self._place.repository, self._place.executor, folders=folders, depth=depth)

    @fitting
    def simulate(
        self,
        policy: PolicyLike,
        *,
        first: Moment,
        last: Moment | None = None,
        against: PolicyLike | None = None,
        every: Span = "1d",
    ) -> Simulation:
        """What a lifecycle policy would have removed on each day from ``first`` on; removes nothing."""
        since, step = moment_of("first", first), span_of("every", every)
        if since is None or step is None:
            raise BadRequest("a simulation must be told 'first' and 'every'")
        old = None if against is None else policy_of(against)
        asked = Rehearsal(policy_of(policy), old, since, moment_of("last", last), step)
        return simulate(self._place.repository, self._place.executor, asked)

    @property
    def holds(self) -> HoldList:
        """What people ordered to be kept."""
        return HoldList(self._place)

    @property
    def name(self) -> str:
        return self._place.repository.name

    @property
    def uri(self) -> str:
        """Where its objects are."""
        return self._place.repository.uri

    @property
    def safety(self) -> str:
        """What stands between a verdict and a race here: ``atomic``, ``conditional`` or ``grace``."""
        return self._place.repository.gate.safety.value

    # ---- opening and closing

    def close(self) -> None:
        """Close what was opened for it; not the Spark session. Twice is once."""
        self._place.close()

    def __enter__(self) -> "OpenRepository":
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed repository" if self._place.closed else "repository"
        return f"<{state} {self._place.opened.repository.name!r}>"
