"""A plan: what a run would remove, how, and what it saw when it decided so.

Its rows are Parquet files; this says which they are, down to their hashes. A
sweep removes what a plan says and nothing else, in the way it says.
"""

import hashlib
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
VERSION = 1


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
    batch: int  # objects that are condemned together
    base: str  # the run whose watermark stood when this one began; "" if none
    files: tuple[PlanFile, ...]
    saves: Mapping[str, Any] | None = None  # what the job keeps for its next run, once swept
    refs: tuple[Mapping[str, str], ...] = ()  # branches that go too: name, uid, head, why
    history: Mapping[str, Any] | None = None  # what it does to commits
    tidies: tuple[Mapping[str, Any], ...] = ()  # files of desilt itself that are needed no longer
    watches: Mapping[str, Any] | None = None  # refs and rules it relies on: a sweep looks whether they still stand

    @property
    def removes(self) -> Amount:
        return sum((Amount(file.rows, file.bytes) for file in self.files), Amount())

    @property
    def removes_objects(self) -> Amount:
        """Without ranges and metaranges."""
        return sum((Amount(file.rows, file.bytes) for file in self.files if not file.tables), Amount())

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


def write(folder: Folder, plan: Plan) -> None:
    facts = {**asdict(plan), "now": plan.now.isoformat(), "version": VERSION}
    folder.put_json(FILE, {**facts, "sha256": _sum(facts)})


def read(folder: Folder) -> Plan:
    """The plan of a run, whole or not at all."""
    try:
        facts = json.loads(folder.get_text(FILE))
    except NotFound:
        raise NotFound("plan of run", folder.run.id, "it was not finished; plan again") from None
    except ValueError:
        raise Unreadable(f"{folder.root}{FILE} is not JSON; plan again") from None
    if not isinstance(facts, dict) or facts.get("version") != VERSION:
        raise Unreadable(f"{folder.root}{FILE} was written by another version of desilt; plan again")
    if facts.pop("sha256", None) != _sum(facts):
        raise Unreadable(f"{folder.root}{FILE} is not what was written; plan again")
    del facts["version"]
    facts["refs"], facts["tidies"] = tuple(facts["refs"]), tuple(facts.get("tidies", ()))
    facts["files"] = tuple(PlanFile(**one) for one in facts["files"])
    facts["stored"], facts["action"] = Amount(**facts["stored"]), Action(facts["action"])
    facts["now"] = datetime.fromisoformat(facts["now"])
    found = Plan(**facts)
    if (found.run, found.job) != (folder.run.id, folder.run.job):
        raise Unreadable(f"{folder.root}{FILE} is the plan of run {found.run}; plan again")
    return found


def _sum(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def run_of(plan: Plan) -> Run:
    return Run(plan.run, plan.job, plan.now)
