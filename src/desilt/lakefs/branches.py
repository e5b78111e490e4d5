"""What is asked of a server about one branch: what it serves, what is uncommitted on it, and that it be deleted."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from desilt.domain.entry import encode_path
from desilt.errors import NotFound
from desilt.lakefs.asker import Asker
from desilt.lakefs.calls import Absent, Call, segment
from desilt.lakefs.pages import UNSURE, PageEnd, ServedPage, by_column

PAGE = 1000  # entries: the most that a server gives at once

LIST = Call("list objects of a branch", "fs:ListObjects")
STAT = Call("tell what a branch has at a path", "fs:ReadObject")
BRANCH = Call("describe a branch", "fs:ReadBranch")
DIFF = Call("tell what is uncommitted on a branch", "fs:ListObjects")
LOG = Call("tell which commit a ref means", "fs:ReadBranch and fs:ListCommits")
DELETE_BRANCH = Call("delete a branch", "fs:DeleteBranch")
REPOSITORY = Call("describe the repository", "fs:ReadRepository")


@dataclass(frozen=True, slots=True)
class Served:
    """What a branch has at a path; of a path that is no UTF-8 the address is sure, and the path is not."""

    path: str
    address: str  # a whole URI
    size: int | None
    checksum: str
    seconds: int = 0  # when it was uploaded, by whoever did


class Branches(Asker):
    """Branches of one repository."""

    def listing(self, branch: str, *, after: str = "", page: int = PAGE) -> Iterator[Served]:
        """Everything that ``branch`` has from ``after`` on, staged over committed; some of it twice, if need be."""
        while True:
            rows, end = self._rows(self._page(branch, after, page))
            self._check_count(end, after)
            yield from rows
            if not end.more:
                return
            after = self._next(branch, after, end)

    def places(self, branch: str, *, page: int = PAGE) -> Iterator[ServedPage]:
        """The same, page by page: only the path and the address of each."""
        after = ""
        while True:
            raw = self._page(branch, after, page)
            places, end = by_column(raw) or self._by_row(raw)
            self._check_count(end, after)
            yield places
            if not end.more:
                return
            after = self._next(branch, after, end)

    def _page(self, branch: str, after: str, page: int) -> bytes:
        path = f"{self._path}/refs/{segment(branch)}/objects/ls"
        return self._sure_raw(LIST, "GET", path, {"amount": str(page), "after": after})

    def _by_row(self, raw: bytes) -> tuple[ServedPage, PageEnd]:
        rows, end = self._rows(raw)
        found = ([one.path for one in rows], [one.address for one in rows])
        return ServedPage(*(pa.array(some, pa.string()) for some in found)), end

    def _rows(self, raw: bytes) -> tuple[list[Served], PageEnd]:
        told = self._calls.told(LIST, raw)
        pagination = self._field(LIST, told, "pagination", dict)
        rows = [self._served(LIST, row) for row in self._field(LIST, told, "results", list)]
        more = self._field(LIST, pagination, "has_more", bool)
        return rows, PageEnd(
            len(rows),
            self._field(LIST, pagination, "results", int),
            rows[-1].path if rows else "",
            next((row.path for row in reversed(rows) if UNSURE not in row.path), ""),
            more,
            self._field(LIST, pagination, "next_offset", str) if more else "",
        )

    def _check_count(self, end: PageEnd, after: str) -> None:
        if end.counted != end.given:
            raise self._calls.failed(LIST, f"gave {end.given} entries after {after!r} and counted another number")

    def _next(self, branch: str, after: str, end: PageEnd) -> str:
        """Where to go on: after a path that is no UTF-8 nothing can be asked for; after an earlier one it can."""
        if not end.known or end.known.encode() <= after.encode():
            raise self._calls.failed(LIST, f"has more on {branch!r} after {after!r}, and gave nothing to go on from")
        if end.known == end.last != end.following:
            raise self._calls.failed(LIST, f"goes on elsewhere than after {end.known!r}, the last it gave")
        return end.known

    def served(self, ref: str, path: str) -> Served | None:
        """What a branch, tag or commit has at ``path``, whatever bytes that is; None if it has nothing there."""
        where = f"{self._path}/refs/{segment(ref)}/objects/stat"
        try:
            return self._served(STAT, self._calls.json(STAT, "GET", where, query={"path": encode_path(path)}))
        except Absent as absent:
            if absent.status != 404:
                raise self._calls.failed(STAT, f"said {absent.message!r} of {path!r}: a table may be lost") from None
        if self.head_of(ref) is None:
            self.commit_of(ref)  # which may be what is not there
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
            self._sure(REPOSITORY, "GET", self._path)  # which may be what is not there
            return None
        return self._field(BRANCH, told, "commit_id", str)

    def delete_branch(self, branch: str) -> None:
        """Delete a branch; one that is gone is gone."""
        try:
            self._calls.raw(DELETE_BRANCH, "DELETE", f"{self._path}/branches/{segment(branch)}")
        except Absent:
            self._sure(REPOSITORY, "GET", self._path)

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
