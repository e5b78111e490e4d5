"""A plan: what a run would do, step by step, and what it saw when it decided so.

Rows of objects are in Parquet files (:mod:`desilt.runs.plan_files`); this says which
they are, down to the hashes of their parts, and is signed with the repository's secret.
A sweep does what a plan says and nothing else, in the way it says.
"""

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from desilt.domain.run import Run, started
from desilt.errors import DamagedRun, NotFound
from desilt.repository.editor import GoingRef
from desilt.repository.gate import Reliance, Rules, Safety
from desilt.repository.sealed import Sealed
from desilt.repository.snapshot import Revision
from desilt.runs import facts
from desilt.runs.folder import Folder
from desilt.runs.report import Amount
from desilt.runs.steps import Action, DeleteRefs, EditHistory, PlanFile, RemoveObjects, Step, TakeCommits

FILE = "plan.json"
SWEPT = "swept.json"  # beside it, once a sweep of it has begun
VERSION = 5
ONE_BRANCH = "objects of branch "  # with its uid: the measure of a plan that did not look at the whole repository
S = TypeVar("S", bound=Step)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a plan was made from: a guard and a sweep look whether it still stands."""

    policy: str  # what the job was told to do
    revision: Revision  # of refs, when commits were read
    commits: int
    held: int  # addresses that commits, staging areas and uploads hold
    stored: Amount  # all there is where the plan looked
    measure: str  # of what: amounts of the same can be compared from run to run
    period: timedelta | None = None  # how long what goes was kept at least; None: the policy says so
    dropped_for: timedelta = timedelta(0)  # for which an object is left alone once nothing points to it
    rules: Rules | None = None  # refs and rules it relies on
    judged: Sealed | None = None  # the names of the tables that were taken into account
    after_restore: bool = False  # somebody said that what restored records lost may go
    least_age: timedelta | None = None  # how old a file must be, where that was told; None: as the repository has it


@dataclass(frozen=True, slots=True)
class Next:
    """What a job leaves to its next run, once every planned object has an outcome."""

    base: str  # the run whose watermark stood when this one began; "" if none
    value: Mapping[str, Any] | None = None  # None: the next one looks at everything
    again: str = ""  # where in it the files go of what was to be removed and is there; "" nowhere
    settled: Mapping[str, str] | None = None  # of that, only what lies past these boundaries; None: all


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a sweep needs to know besides the rows."""

    run: str
    job: str
    now: datetime
    repository: str  # its uid
    safety: Safety
    action: Action
    batch: int  # objects that are condemned together
    evidence: Evidence
    steps: tuple[Step, ...]
    next: Next | None = None
    probed: datetime | None = None  # when somebody last asked the store for the time, before the plan was made

    def steps_of(self, kind: type[S]) -> Iterator[S]:
        return (step for step in self.steps if isinstance(step, kind))

    @property
    def files(self) -> tuple[PlanFile, ...]:
        return tuple(file for step in self.steps_of(RemoveObjects) for file in step.files)

    @property
    def removes(self) -> Amount:
        return sum((step.amount for step in self.steps_of(RemoveObjects)), Amount())

    @property
    def removes_objects(self) -> Amount:
        """Without ranges and metaranges."""
        return sum((step.amount for step in self.steps_of(RemoveObjects) if not step.tables), Amount())

    @property
    def refs(self) -> tuple[GoingRef, ...]:
        """Branches and tags that go."""
        deleted = [ref for step in self.steps_of(DeleteRefs) for ref in step.refs]
        return (*deleted, *(ref for step in self.steps_of(EditHistory) for ref in step.refs))

    @property
    def abandons(self) -> int:
        """Commits that no ref reaches any more."""
        return sum(step.abandons for step in self.steps_of(EditHistory))

    @property
    def edits(self) -> int:
        """Commits that get other parents, or go."""
        edited = sum(len(step.edits) + len(step.released) for step in self.steps_of(EditHistory))
        return edited + sum(step.count for step in self.steps_of(TakeCommits))

    @property
    def does_something(self) -> bool:
        return bool(self.removes.objects or self.refs or self.edits)

    @property
    def relies_on_history(self) -> bool:
        """Whether a later edit of history speaks against it."""
        changes = any(isinstance(step, (EditHistory, TakeCommits)) for step in self.steps)
        return changes or self.evidence.rules is not None

    @property
    def size(self) -> Amount:
        """How much there is of what the plan measures."""
        return next((Amount(step.reached) for step in self.steps_of(EditHistory)), self.evidence.stored)

    @property
    def started_at(self) -> datetime:
        return started(self.run)

    @property
    def batches(self) -> int:
        return sum(-(-file.rows // self.batch) for file in self.files)

    @property
    def relies_on(self) -> Reliance:
        """What a sweep of it looks at again."""
        taken = next((step.commits for step in self.steps_of(TakeCommits)), None)
        seen = self.evidence
        return Reliance(self.now, self.started_at, seen.dropped_for, seen.rules, seen.judged, taken, seen.least_age)


def write(folder: Folder, plan: Plan, secret: str) -> None:
    said = {**facts.written(plan), "version": VERSION}
    folder.put_json(FILE, {**said, "signed": _sign(said, secret)})


def read(folder: Folder, secret: str) -> Plan:
    """The plan of a run as desilt wrote it here, whole or not at all."""
    try:
        said = json.loads(folder.get_text(FILE))
    except NotFound:
        raise NotFound("plan of run", folder.run.id, "it was not finished; plan again") from None
    except ValueError:
        raise DamagedRun(folder.root + FILE, "is not JSON") from None
    if not isinstance(said, dict) or said.get("version") != VERSION:
        raise DamagedRun(folder.root + FILE, "was written by another version of desilt")
    if not hmac.compare_digest(str(said.pop("signed", "")), _sign(said, secret)):
        raise DamagedRun(folder.root + FILE, "is not what was written")
    del said["version"]
    try:
        found = facts.read(Plan, said)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise DamagedRun(folder.root + FILE, "does not say all that a plan says") from None
    if (found.run, found.job) != (folder.run.id, folder.run.job):
        raise DamagedRun(folder.root + FILE, f"is the plan of run {found.run}")
    return found


def _sign(said: Mapping[str, Any], secret: str) -> str:
    text = json.dumps(said, sort_keys=True).encode()
    return hmac.digest(secret.encode(), b"plan\n" + text, hashlib.sha256).hex()


def run_of(plan: Plan) -> Run:
    return Run(plan.run, plan.job, plan.now)
