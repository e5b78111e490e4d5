"""Every error desilt raises on purpose, cut by what the caller does next.

    DesiltError
    ├── BadRequest          mend the request and ask again                (exit 2)
    │   ├── InvalidName     a repository, branch or tag name
    │   ├── InvalidPath     a path that no entry may have
    │   ├── InvalidRef      a ref expression that cannot be parsed
    │   └── InvalidUri      where a lake, a database or objects are said to be
    ├── NotFound            what was named is not there                   (exit 1)
    ├── Gone                it was there, and a run removed it            (exit 1)
    ├── Conflict            the state forbids it: look, then decide       (exit 1)
    │   ├── AlreadyExists
    │   ├── Dirty           uncommitted changes are in the way
    │   ├── NothingToCommit
    │   ├── BranchMoved     somebody else was faster; try again
    │   ├── BadTicket       altered, foreign, used or expired: ask for a new one
    │   ├── WrongClock      this clock disagrees with the store's or with history
    │   └── MergeConflict   both sides changed the same paths
    ├── Unreadable          stored data is not what it must be            (exit 1)
    │   ├── CorruptTable    a range or metarange
    │   └── NewerSchema     a database of a later desilt
    └── StorageFailed       the disk, database or bucket said no          (exit 1)

A message is one line: the thing by name, the fact, and the way out.
"""

from collections.abc import Sequence
from datetime import datetime


class DesiltError(Exception):
    """Nothing was changed, unless the message says so."""

    exit_code = 1


class BadRequest(DesiltError):
    exit_code = 2


class InvalidName(BadRequest):
    def __init__(self, kind: str, name: str, rule: str) -> None:
        self.kind, self.name = kind, name
        super().__init__(f"{name!r} cannot be the name of a {kind}: {rule}")


class InvalidPath(BadRequest):
    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        shown = path if len(path) <= 80 else path[:77] + "…"
        super().__init__(f"path {shown!r} {reason}; a path is 1 to 1,024 bytes of UTF-8 without NUL")


class InvalidRef(BadRequest):
    def __init__(self, ref: str, reason: str) -> None:
        self.ref = ref
        super().__init__(f"{ref!r} is not a ref: {reason}; write a branch, a tag or a commit, then ~N, ^N or @")


class InvalidUri(BadRequest):
    pass


class NotFound(DesiltError):
    def __init__(self, kind: str, name: str, way_out: str = "") -> None:
        self.kind, self.name = kind, name
        super().__init__(f"there is no {kind} {name!r}" + (f"; {way_out}" if way_out else ""))


class Gone(DesiltError):
    def __init__(self, path: str, run: str, rule: str, at: datetime) -> None:
        self.path, self.run, self.rule, self.at = path, run, rule, at
        super().__init__(
            f"object {path!r} is gone: run {run} removed it by rule {rule!r} on {at:%Y-%m-%d %H:%M:%S} UTC; "
            "upload it again if it is still wanted"
        )


class Conflict(DesiltError):
    pass


class AlreadyExists(Conflict):
    def __init__(self, kind: str, name: str, way_out: str = "choose another name") -> None:
        self.kind, self.name = kind, name
        super().__init__(f"{kind} {name!r} exists already; {way_out}")


class Dirty(Conflict):
    def __init__(self, branch: str) -> None:
        self.branch = branch
        super().__init__(f"branch {branch!r} has uncommitted changes; commit or reset them first")


class NothingToCommit(Conflict):
    def __init__(self, branch: str) -> None:
        self.branch = branch
        super().__init__(f"branch {branch!r} has nothing to commit; stage a change, or pass --allow-empty")


class BranchMoved(Conflict):
    def __init__(self, branch: str, doing: str) -> None:
        self.branch = branch
        super().__init__(f"branch {branch!r} moved while {doing}; nothing was done, try again")


class BadTicket(Conflict):
    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"the ticket for {path!r} {reason}; ask for a new address and upload there")


class WrongClock(Conflict):
    def __init__(self, ours: datetime, theirs: datetime, whose: str) -> None:
        self.ours, self.theirs = ours, theirs
        there = f"{whose} {theirs:%Y-%m-%d %H:%M:%S} UTC"
        super().__init__(f"this clock says {ours:%Y-%m-%d %H:%M:%S} UTC, {there}; mend the one that is wrong")


class MergeConflict(Conflict):
    def __init__(self, source: str, destination: str, paths: Sequence[str], total: int) -> None:
        self.source, self.destination, self.paths, self.total = source, destination, list(paths), total
        some = ", ".join(repr(path) for path in paths[:3]) + (", …" if total > 3 else "")
        super().__init__(
            f"{source!r} and {destination!r} both changed {total} path{'s' * (total != 1)} ({some}); "
            "mend one side, or pass --strategy source-wins or dest-wins"
        )


class Unreadable(DesiltError):
    pass


class CorruptTable(Unreadable):
    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(f"table {name} is corrupt: {reason}; restore this file from a copy, nothing was read from it")


class NewerSchema(Unreadable):
    def __init__(self, found: int, known: int) -> None:
        self.found, self.known = found, known
        super().__init__(f"the database has schema {found}, this desilt knows up to {known}; upgrade desilt")


class StorageFailed(DesiltError):
    pass
