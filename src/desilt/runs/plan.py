"""A plan: what a run would remove, how, and what it saw when it decided so.

Its rows are Parquet files; this says which they are, down to their hashes, and is
signed with the repository's secret. A sweep removes what a plan says and nothing
else, in the way it says.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from desilt.domain.run import Run, started
from desilt.errors import NotFound, Unreadable
from desilt.runs.folder import Folder
from desilt.runs.report import Amount

FILE = "plan.json"
SWEPT = "swept.json"  # beside it, once a sweep of it has begun
VERSION = 2
ONE_BRANCH = "objects of branch "  # with its uid: the measure of a plan that did not look at the whole repository


class Action(StrEnum):
    """What becomes of the objects that go."""

    DELETE = "delete"
    TRASH = "trash"


@dataclass(frozen=True, slots=True)
class PlanFile:
    """Some rows of a plan."""

    key: str
    rows: int
    bytes: int  # of the objects
    sha256: str  # of the file
    tables: bool = False  # ranges and metaranges, not objects


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a sweep needs to know besides the rows."""

    run: str
    job: str
    now: datetime
    repository: str  # its uid
    policy: str  # what the job was told to do
    action: Action
    generation: int  # of refs, when commits were read
    mark: str  # and what tells that move of refs from another with the same number
    commits: int
    held: int  # addresses that commits, staging areas and tickets hold
    stored: Amount  # all there is where the plan looked
    measure: str  # of what: amounts of the same can be compared from run to run
    batch: int  # objects that are condemned together
    base: str  # the run whose watermark stood when this one began; "" if none
    files: tuple[PlanFile, ...]
    saves: Mapping[str, Any] | None = None  # what the job keeps for its next run, once swept
    refs: tuple[Mapping[str, str], ...] = ()  # branches that go too: name, uid, head, why
    history: Mapping[str, Any] | None = None  # what it does to commits
    tidies: tuple[Mapping[str, Any], ...] = ()  # files of desilt itself that are needed no longer
    watches: Mapping[str, Any] | None = None  # refs and rules it relies on: a sweep looks whether they still stand
    period: int | None = None  # microseconds: how long what goes was kept at least; None: its policy says so
    probed: datetime | None = None  # when somebody last asked the store for the time, before the plan was made
    after_restore: bool = False  # somebody said that what a restored database lost may go
    ranges: str = ""  # the SHA-256 of the list of ranges that were judged; "" if there is none
    dropped_for: int = 0  # microseconds for which an object is left alone once nothing points to it

    @property
    def removes(self) -> Amount:
        return sum((Amount(file.rows, file.bytes) for file in self.files), Amount())

    @property
    def removes_objects(self) -> Amount:
        """Without ranges and metaranges."""
        return sum((Amount(file.rows, file.bytes) for file in self.files if not file.tables), Amount())

    @property
    def abandons(self) -> int:
        """Commits that no ref reaches any more."""
        return int(self.history.get("abandoned", 0)) if self.history else 0

    @property
    def size(self) -> Amount:
        """How much there is of what the plan measures."""
        return Amount(int(self.history["reached"])) if self.history and "reached" in self.history else self.stored

    @property
    def edits(self) -> int:
        """Commits that get other parents, or go."""
        return int(self.history["count"]) if self.history else 0

    @property
    def started_at(self) -> datetime:
        return started(self.run)

    @property
    def batches(self) -> int:
        return sum(-(-file.rows // self.batch) for file in self.files)


def write(folder: Folder, plan: Plan, secret: str) -> None:
    probed = None if plan.probed is None else plan.probed.isoformat()
    facts = {**asdict(plan), "now": plan.now.isoformat(), "probed": probed, "version": VERSION}
    folder.put_json(FILE, {**facts, "signed": _sign(facts, secret)})


def read(folder: Folder, secret: str) -> Plan:
    """The plan of a run as desilt wrote it here, whole or not at all."""
    try:
        facts = json.loads(folder.get_text(FILE))
    except NotFound:
        raise NotFound("plan of run", folder.run.id, "it was not finished; plan again") from None
    except ValueError:
        raise Unreadable(f"{folder.root}{FILE} is not JSON; plan again") from None
    if not isinstance(facts, dict) or facts.get("version") != VERSION:
        raise Unreadable(f"{folder.root}{FILE} was written by another version of desilt; plan again")
    if not hmac.compare_digest(str(facts.pop("signed", "")), _sign(facts, secret)):
        raise Unreadable(f"{folder.root}{FILE} is not what was written; plan again")
    del facts["version"]
    facts["refs"], facts["tidies"] = tuple(facts["refs"]), tuple(facts.get("tidies", ()))
    facts["files"] = tuple(PlanFile(**one) for one in facts["files"])
    facts["stored"], facts["action"] = Amount(**facts["stored"]), Action(facts["action"])
    facts["now"] = datetime.fromisoformat(facts["now"])
    facts["probed"] = None if facts["probed"] is None else datetime.fromisoformat(facts["probed"])
    found = Plan(**facts)
    if (found.run, found.job) != (folder.run.id, folder.run.job):
        raise Unreadable(f"{folder.root}{FILE} is the plan of run {found.run}; plan again")
    return found


def _sign(facts: Mapping[str, Any], secret: str) -> str:
    said = json.dumps(facts, sort_keys=True).encode()
    return hmac.digest(secret.encode(), b"plan\n" + said, hashlib.sha256).hex()


def run_of(plan: Plan) -> Run:
    return Run(plan.run, plan.job, plan.now)
