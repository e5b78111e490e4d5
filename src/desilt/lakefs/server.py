"""What reading a repository asks of its lakeFS server. An answer is whole, or it is an error; never empty for unread.

Dumps and lists of uncommitted objects are files that the server writes into the repository's own place; all else
only reads.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from desilt.errors import MissingTable, ServerTooOld
from desilt.lakefs.branches import REPOSITORY, Branches
from desilt.lakefs.calls import Absent, Call, Calls, segment
from desilt.lakefs.settings import Settings

LONGEST_DUMP = timedelta(hours=1)
POLL = 1.0  # seconds, at most

CONFIG = Call("tell how it is set up", "fs:ReadConfig")
DUMP = Call("dump refs", "fs:ListBranches, fs:ListTags and fs:ListCommits")
UNCOMMITTED = Call("list uncommitted objects", "retention:PrepareGarbageCollectionUncommitted")
RULES = Call("tell the rules of garbage collection", "retention:GetGarbageCollectionRules")
TABLE = Call("read a range or metarange", "fs:ListObjects and fs:ReadRepository")

TableKind = Literal["range", "meta_range"]


@dataclass(frozen=True, slots=True)
class Described:
    """A repository, as the server has it."""

    name: str
    namespace: str
    default_branch: str
    read_only: bool
    storage_id: str


@dataclass(frozen=True, slots=True)
class DumpedRefs:
    """The metaranges of a dump: equal ones list equal refs, for a table is named by what it holds."""

    commits: str
    branches: str
    tags: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """Where the server has listed what is staged."""

    run_id: str
    pages: int
    files: int  # that it said it wrote: some pages have none


@dataclass(frozen=True, slots=True)
class GcRules:
    """Days for which commits stay, by branch; what the server takes it may be, which is any number."""

    default_days: int
    branch_days: Mapping[str, int]


class Server(Branches):
    """One repository of a server."""

    def __init__(
        self,
        settings: Settings,
        *,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(settings, Calls(settings, pause=pause))
        self._pause, self._clock = pause, clock

    def grace_period(self) -> timedelta:
        """For how long after it was handed out an address may still be linked."""
        seconds = self._field(CONFIG, self._sure(CONFIG, "GET", "/config/garbage-collection"), "grace_period", int)
        if seconds < 0:
            raise self._calls.failed(CONFIG, f"told a grace period of {seconds} seconds")
        return timedelta(seconds=seconds)

    def blockstore(self, storage_id: str = "") -> str:
        """The kind of store that objects are in: s3, gs, azure, local, mem; by its id where there are several."""
        told = self._sure(CONFIG, "GET", "/config")
        several = told.get("storage_config_list") or []
        if storage_id or several:
            matching = [
                one for one in several if isinstance(one, dict) and (one.get("blockstore_id") or "") == storage_id
            ]
            if len(matching) != 1:
                raise self._calls.failed(CONFIG, f"did not tell of the storage {storage_id!r}")
            return self._field(CONFIG, matching[0], "blockstore_type", str)
        return self._field(CONFIG, self._field(CONFIG, told, "storage_config", dict), "blockstore_type", str)

    def repository(self) -> Described:
        told = self._sure(REPOSITORY, "GET", self._path)
        return Described(
            self._field(REPOSITORY, told, "id", str),
            self._field(REPOSITORY, told, "storage_namespace", str),
            self._field(REPOSITORY, told, "default_branch", str),
            bool(told.get("read_only", False)),
            str(told.get("storage_id") or ""),
        )

    def dump(self) -> DumpedRefs:
        """All refs and all commits of one moment, written by the server as tables; by the old call if need be."""
        try:
            task = self._field(DUMP, self._sure(DUMP, "POST", f"{self._path}/dump"), "id", str)
        except ServerTooOld:
            return self._refs(self._sure(DUMP, "PUT", f"{self._path}/refs/dump"))
        end, wait = self._clock() + LONGEST_DUMP.total_seconds(), 0.05
        while True:
            told = self._sure(DUMP, "GET", f"{self._path}/dump", {"task_id": task})
            if error := told.get("error"):
                raise self._calls.failed(DUMP, f"failed ({str(error)[:200]})", "see its log, and run again")
            if self._field(DUMP, told, "done", bool):
                return self._refs(self._field(DUMP, told, "refs", dict))
            if self._clock() > end:
                raise self._calls.failed(DUMP, f"has not done it within {LONGEST_DUMP}", "see its log, and run again")
            self._pause(wait)
            wait = min(2 * wait, POLL)

    def uncommitted(self) -> Prepared:
        """Every page of what is staged: read where the server put it, all of the run's folder."""
        token, seen, run_id, pages, files = "", set[str](), "", 0, 0
        while True:
            body = {"continuation_token": token} if token else {}
            told = self._sure(UNCOMMITTED, "POST", f"{self._path}/gc/prepare_uncommited", body=body)
            found = self._field(UNCOMMITTED, told, "run_id", str)
            if not found or found != (run_id or found):
                raise self._calls.failed(UNCOMMITTED, f"went on with run {found!r} in the middle of {run_id!r}")
            run_id, pages = found, pages + 1
            files += bool(self._field(UNCOMMITTED, told, "gc_uncommitted_location", str))
            token = told.get("continuation_token") or ""
            if not isinstance(token, str) or token in seen:
                raise self._calls.failed(UNCOMMITTED, f"gave page {pages} twice")
            if not token:
                return Prepared(run_id, pages, files)
            seen.add(token)

    def rules(self) -> GcRules | None:
        """None where nobody has set any."""
        try:
            told = self._calls.json(RULES, "GET", f"{self._path}/settings/gc_rules")
        except Absent:
            self.repository()  # which may be what is not there
            return None
        branches: dict[str, int] = {}
        for one in self._field(RULES, told, "branches", list):
            if not isinstance(one, dict):
                raise self._calls.failed(RULES, "told of a branch in no way that is known")
            name = self._field(RULES, one, "branch_id", str)
            branches[name] = self._field(RULES, one, "retention_days", int)
        return GcRules(self._field(RULES, told, "default_retention_days", int), branches)

    def table(self, kind: TableKind, name: str) -> bytes:
        """The bytes of a range or metarange."""
        try:
            return self._calls.raw(TABLE, "GET", f"{self._path}/metadata/object/{kind}/{segment(name)}")
        except Absent:
            raise MissingTable(name) from None

    def _refs(self, told: Mapping[str, Any]) -> DumpedRefs:
        kinds = ("commits", "branches", "tags")
        return DumpedRefs(*(self._field(DUMP, told, f"{kind}_meta_range_id", str) for kind in kinds))
