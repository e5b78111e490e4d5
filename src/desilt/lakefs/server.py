"""What reading a repository asks of its lakeFS server. An answer is whole, or it is an error; never empty for unread.

Dumps and lists of uncommitted objects are files that the server writes into the repository's own place; all else
only reads.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, NoReturn, TypeVar

from desilt.domain.entry import encode_path
from desilt.errors import MissingTable, NotFound, ServerTooOld
from desilt.lakefs.calls import Absent, Call, Calls, segment
from desilt.lakefs.settings import Settings

PAGE = 1000  # entries: the most that a server gives at once
LONGEST_DUMP = timedelta(hours=1)
POLL = 1.0  # seconds, at most
UNSURE = "\N{REPLACEMENT CHARACTER}"  # what a server writes for bytes of a path that are no UTF-8

CONFIG = Call("tell how it is set up", "fs:ReadConfig")
REPOSITORY = Call("describe the repository", "fs:ReadRepository")
DUMP = Call("dump refs", "fs:ListBranches, fs:ListTags and fs:ListCommits")
UNCOMMITTED = Call("list uncommitted objects", "retention:PrepareGarbageCollectionUncommitted")
RULES = Call("tell the rules of garbage collection", "retention:GetGarbageCollectionRules")
TABLE = Call("read a range or metarange", "fs:ListObjects and fs:ReadRepository")
LIST = Call("list objects of a branch", "fs:ListObjects")
STAT = Call("tell what a branch has at a path", "fs:ReadObject")
BRANCH = Call("describe a branch", "fs:ReadBranch")
DIFF = Call("tell what is uncommitted on a branch", "fs:ListObjects")
LOG = Call("tell which commit a ref means", "fs:ReadBranch and fs:ListCommits")
DELETE_BRANCH = Call("delete a branch", "fs:DeleteBranch")

TableKind = Literal["range", "meta_range"]
V = TypeVar("V")


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


@dataclass(frozen=True, slots=True)
class Served:
    """What a branch has at a path; of a path that is no UTF-8 the address is sure, and the path is not."""

    path: str
    address: str  # a whole URI
    size: int | None
    checksum: str
    seconds: int = 0  # when it was uploaded, by whoever did


class Server:
    """One repository of a server."""

    def __init__(
        self,
        settings: Settings,
        *,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._calls = Calls(settings, pause=pause)
        self._pause, self._clock = pause, clock
        self.name = settings.repository
        self._path = f"/repositories/{segment(settings.repository)}"

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

    def listing(self, branch: str, *, after: str = "", page: int = PAGE) -> Iterator[Served]:
        """Everything that ``branch`` has from ``after`` on, staged over committed; some of it twice, if need be."""
        path = f"{self._path}/refs/{segment(branch)}/objects/ls"
        while True:
            told = self._sure(LIST, "GET", path, {"amount": str(page), "after": after})
            pagination = self._field(LIST, told, "pagination", dict)
            rows = self._field(LIST, told, "results", list)
            if self._field(LIST, pagination, "results", int) != len(rows):
                raise self._calls.failed(LIST, f"gave {len(rows)} entries after {after!r} and counted another number")
            found = [self._served(LIST, row) for row in rows]
            yield from found
            if not self._field(LIST, pagination, "has_more", bool):
                return
            # where bytes are no UTF-8, what comes after them cannot be asked for: what comes after an earlier path can
            known = [one.path for one in found if UNSURE not in one.path]
            if not known or known[-1].encode() <= after.encode():
                raise self._calls.failed(
                    LIST, f"has more on {branch!r} after {after!r}, and gave nothing to go on from"
                )
            if known[-1] == found[-1].path != self._field(LIST, pagination, "next_offset", str):
                raise self._calls.failed(LIST, f"goes on elsewhere than after {found[-1].path!r}, the last it gave")
            after = known[-1]

    def served(self, branch: str, path: str) -> Served | None:
        """What ``branch`` has at ``path``, whatever bytes that is; None if it has nothing there."""
        where = f"{self._path}/refs/{segment(branch)}/objects/stat"
        try:
            return self._served(STAT, self._calls.json(STAT, "GET", where, query={"path": encode_path(path)}))
        except Absent as absent:
            if absent.status != 404:
                raise self._calls.failed(STAT, f"said {absent.message!r} of {path!r}: a table may be lost") from None
        self._sure(BRANCH, "GET", f"{self._path}/branches/{segment(branch)}")  # which may be what is not there
        return None

    def changes(self, branch: str, *, page: int = PAGE) -> Iterator[tuple[str, str, int | None]]:
        """What differs on ``branch`` from its commit: path, what was done to it, and the size that it has now.

        An upload of the same bytes is not among it.
        """
        path, after = f"{self._path}/branches/{segment(branch)}/diff", ""
        while True:
            told = self._sure(DIFF, "GET", path, {"amount": str(page), **({"after": after} if after else {})})
            pagination = self._field(DIFF, told, "pagination", dict)
            for row in self._field(DIFF, told, "results", list):
                size = row.get("size_bytes") if isinstance(row, dict) else None
                kind = self._field(DIFF, row, "type", str)
                yield self._field(DIFF, row, "path", str), kind, size if isinstance(size, int) else None
            if not self._field(DIFF, pagination, "has_more", bool):
                return
            following = self._field(DIFF, pagination, "next_offset", str)
            if following.encode() <= after.encode():
                raise self._calls.failed(DIFF, f"has more on {branch!r} after {after!r}, and goes on from before that")
            after = following

    def is_dirty(self, branch: str) -> bool:
        """Whether anything is uncommitted on ``branch``."""
        return next(iter(self.changes(branch, page=1)), None) is not None

    def commit_of(self, ref: str) -> str:
        """The commit that a ref expression means."""
        where = f"{self._path}/refs/{segment(ref)}/commits"
        try:
            rows = self._field(LOG, self._calls.json(LOG, "GET", where, query={"amount": "1"}), "results", list)
        except Absent:
            rows = []
        if not rows or not isinstance(rows[0], dict):
            raise NotFound("ref", ref, "see `lakectl branch list` and `lakectl tag list`")
        return self._field(LOG, rows[0], "id", str)

    def head_of(self, branch: str) -> str | None:
        """The commit that ``branch`` is at; None if there is no such branch."""
        try:
            told = self._calls.json(BRANCH, "GET", f"{self._path}/branches/{segment(branch)}")
        except Absent:
            self.repository()  # which may be what is not there
            return None
        return self._field(BRANCH, told, "commit_id", str)

    def delete_branch(self, branch: str) -> None:
        """Delete a branch; one that is gone is gone."""
        try:
            self._calls.raw(DELETE_BRANCH, "DELETE", f"{self._path}/branches/{segment(branch)}")
        except Absent:
            self.repository()

    def _served(self, call: Call, row: Any) -> Served:
        if not isinstance(row, dict) or row.get("path_type", "object") != "object":
            raise self._calls.failed(call, "told of an object in no way that is known")
        size, seconds = row.get("size_bytes"), row.get("mtime")
        return Served(
            self._field(call, row, "path", str),
            self._field(call, row, "physical_address", str) or self._lacking(call, "physical_address"),
            size if isinstance(size, int) else None,
            self._field(call, row, "checksum", str),
            seconds if isinstance(seconds, int) else 0,
        )

    def _refs(self, told: Mapping[str, Any]) -> DumpedRefs:
        kinds = ("commits", "branches", "tags")
        return DumpedRefs(*(self._field(DUMP, told, f"{kind}_meta_range_id", str) for kind in kinds))

    def _sure(
        self,
        call: Call,
        method: str,
        path: str,
        query: Mapping[str, str | bytes] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The answer about something that must be there."""
        try:
            return self._calls.json(call, method, path, query=query, body=body)
        except Absent as absent:
            if absent.message == "branch not found":
                raise NotFound("branch", path.split("/")[4], "it may have been deleted just now; run again") from None
            raise self._calls.failed(call, f"said {absent.status}: {absent.message!r}") from None

    def _field(self, call: Call, told: Mapping[str, Any], name: str, kind: type[V]) -> V:
        found = told.get(name)
        if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
            self._lacking(call, name)
        return found

    def _lacking(self, call: Call, name: str) -> NoReturn:
        raise self._calls.failed(call, f"left {name} out of its answer", "upgrade it, or see whether its URL is right")
