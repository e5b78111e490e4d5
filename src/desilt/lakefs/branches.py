"""What is asked of a server about one branch: what it serves, what is uncommitted on it, and that it be deleted."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from desilt.domain.entry import encode_path
from desilt.errors import NotFound
from desilt.lakefs.asker import Asker
from desilt.lakefs.calls import Absent, Call, segment

PAGE = 1000  # entries: the most that a server gives at once
UNSURE = "\N{REPLACEMENT CHARACTER}"  # what a server writes for bytes of a path that are no UTF-8

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
        for rows in self._pages(branch, after, page):
            yield from (self._served(LIST, row) for row in rows)

    def places(self, branch: str, *, page: int = PAGE) -> Iterator[list[tuple[str, str]]]:
        """The same, page by page: only the path and the address of each."""
        for rows in self._pages(branch, "", page):
            yield [(row["path"], row["physical_address"]) for row in rows]

    def _pages(self, branch: str, after: str, page: int) -> Iterator[list[dict[str, Any]]]:
        """Rows of which each has a path and an address."""
        path = f"{self._path}/refs/{segment(branch)}/objects/ls"
        while True:
            told = self._sure(LIST, "GET", path, {"amount": str(page), "after": after})
            pagination = self._field(LIST, told, "pagination", dict)
            rows = self._field(LIST, told, "results", list)
            if self._field(LIST, pagination, "results", int) != len(rows):
                raise self._calls.failed(LIST, f"gave {len(rows)} entries after {after!r} and counted another number")
            if not all(map(_is_whole, rows)):
                for row in rows:
                    self._served(LIST, row)  # which says what is wrong with it
            yield rows
            if not self._field(LIST, pagination, "has_more", bool):
                return
            # where bytes are no UTF-8, what comes after them cannot be asked for: what comes after an earlier path can
            known = next((row["path"] for row in reversed(rows) if UNSURE not in row["path"]), "")
            if not known or known.encode() <= after.encode():
                raise self._calls.failed(
                    LIST, f"has more on {branch!r} after {after!r}, and gave nothing to go on from"
                )
            if known == rows[-1]["path"] != self._field(LIST, pagination, "next_offset", str):
                raise self._calls.failed(LIST, f"goes on elsewhere than after {known!r}, the last it gave")
            after = known

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


def _is_whole(row: Any) -> bool:
    """Whether a row of a listing has all that :meth:`Branches._served` looks for."""
    return (
        isinstance(row, dict)
        and row.get("path_type", "object") == "object"
        and isinstance(row.get("path"), str)
        and isinstance(row.get("checksum"), str)
        and isinstance(address := row.get("physical_address"), str)
        and address != ""
    )
