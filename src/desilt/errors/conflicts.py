"""What the state of a repository forbids."""

from collections.abc import Sequence
from datetime import datetime

from desilt.errors.base import DesiltError


class Conflict(DesiltError):
    code = "conflict"


class AlreadyExists(Conflict):
    code = "already-exists"

    def __init__(self, kind: str, name: str, way_out: str = "choose another name") -> None:
        self.kind, self.name = kind, name
        super().__init__(f"{kind} {name!r} exists already; {way_out}")


class Dirty(Conflict):
    code = "dirty"

    def __init__(self, branch: str) -> None:
        self.branch = branch
        super().__init__(f"branch {branch!r} has uncommitted changes; commit or reset them first")


class NothingToCommit(Conflict):
    code = "nothing-to-commit"

    def __init__(self, branch: str) -> None:
        self.branch = branch
        super().__init__(f"branch {branch!r} has nothing to commit; stage a change, or pass --allow-empty")


class RefsMoved(Conflict):
    code = "refs-moved"

    def __init__(self, doing: str) -> None:
        super().__init__(f"refs moved again and again while {doing}; give the same command again")


class BranchMoved(Conflict):
    code = "branch-moved"

    def __init__(self, branch: str, doing: str) -> None:
        self.branch = branch
        super().__init__(f"branch {branch!r} moved while {doing}; nothing was done, try again")


class BadTicket(Conflict):
    code = "bad-ticket"

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"the ticket for {path!r} {reason}; ask for a new address and upload there")


class BaseAbandoned(Conflict):
    code = "base-abandoned"

    def __init__(self, doing: str, base: str, harm: str, way_out: str) -> None:
        self.base = base
        super().__init__(
            f"{doing} commit {base[:12]}, which was abandoned when history was shortened; "
            f"an older one in its place would {harm}: {way_out}"
        )


class BeingCollected(Conflict):
    code = "being-collected"

    def __init__(self, table: str, run: str, way_out: str) -> None:
        self.table, self.run = table, run
        super().__init__(f"run {run} is removing table {table}, which this commit needs; nothing was done, {way_out}")


class WrongClock(Conflict):
    code = "wrong-clock"

    def __init__(
        self, ours: datetime, theirs: datetime, whose: str, way_out: str = "mend the one that is wrong"
    ) -> None:
        self.ours, self.theirs = ours, theirs
        there = f"{whose} {theirs:%Y-%m-%d %H:%M:%S} UTC"
        here = f"nothing is committed or uploaded by this clock: it says {ours:%Y-%m-%d %H:%M:%S} UTC"
        super().__init__(f"{here}, {there}; {way_out}")


class MergeConflict(Conflict):
    code = "merge-conflict"

    def __init__(self, source: str, destination: str, paths: Sequence[str], total: int) -> None:
        self.source, self.destination, self.paths, self.total = source, destination, list(paths), total
        some = ", ".join(repr(path) for path in paths[:3]) + (", …" if total > 3 else "")
        super().__init__(
            f"{source!r} and {destination!r} both changed {total} path{'s' * (total != 1)} ({some}); "
            "mend one side, or pass --strategy source-wins or dest-wins"
        )
