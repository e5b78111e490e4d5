"""Every error desilt raises on purpose, cut by what the caller does next.

    DesiltError
    ├── BadRequest          mend the request and ask again                (exit 2)
    │   ├── InvalidName     a repository, branch or tag name
    │   ├── InvalidPath     a path that no entry may have
    │   ├── InvalidRef      a ref expression that cannot be parsed
    │   └── InvalidUri      where a lake, a database or objects are said to be
    ├── NotFound            what was named is not there                   (exit 1)
    ├── Gone                it was there, and a run removed it            (exit 1)
    │   └── CommitGone      a commit that no ref reached any more
    ├── Conflict            the state forbids it: look, then decide       (exit 1)
    │   ├── AlreadyExists
    │   ├── Dirty           uncommitted changes are in the way
    │   ├── NothingToCommit
    │   ├── BranchMoved     somebody else was faster; try again
    │   ├── BadTicket       altered, foreign, used or expired: ask for a new one
    │   ├── BaseAbandoned   where two histories met is no longer part of them
    │   ├── WrongClock      this clock disagrees with the store's or with history
    │   └── MergeConflict   both sides changed the same paths
    ├── Unreadable          stored data is not what it must be            (exit 1)
    │   ├── CorruptTable    a range or metarange
    │   └── NewerSchema     a database of a later desilt
    ├── StorageFailed       the disk, database or bucket said no          (exit 1)
    ├── Refused             a guard said no, and nothing was removed      (exit 10)
    │   ├── StalePlan       plan again
    │   ├── StaleInventory  take a newer one
    │   ├── OtherPolicy     the plan was made for something else
    │   ├── TooMuch         a larger share than --max-share
    │   ├── TooMany         more objects than --max-objects
    │   ├── NothingHeld     no address is held by anything
    │   ├── FirstRun        look at the plan, then --confirm
    │   ├── WentBack        the database is older than the last plan
    │   ├── WrongTime       clocks disagree, or ran backwards
    │   └── OutsidePrefix   an address that is not an object of this repository
    └── Locked              another run is at work                        (exit 11)
        └── FencedOff       another run took over from this one

A message is one line: the thing by name, the fact, and the way out.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta


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


class CommitGone(Gone):
    def __init__(self, commit: str, run: str, at: datetime) -> None:
        self.commit, self.run, self.at = commit, run, at
        DesiltError.__init__(
            self,
            f"commit {commit} is gone: no ref reached it any more, and run {run} collected it "
            f"on {at:%Y-%m-%d %H:%M:%S} UTC; choose another, see `desilt lake log`",
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


class BaseAbandoned(Conflict):
    def __init__(self, doing: str, base: str, way_out: str) -> None:
        self.base = base
        super().__init__(
            f"{doing} begins at commit {base[:12]}, which was abandoned when history was shortened; "
            f"to begin at an older one would bring deleted files back: {way_out}"
        )


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


class Refused(DesiltError):
    """A guard said no; nothing was removed."""

    exit_code = 10
    code = "refused"


class StalePlan(Refused):
    code = "stale-plan"

    def __init__(self, run: str, age: timedelta, limit: timedelta) -> None:
        self.run, self.age, self.limit = run, age, limit
        super().__init__(
            f"plan {run} is {span(age)} old, the limit is {span(limit)}; plan again, or raise --max-plan-age"
        )


class StaleInventory(Refused):
    code = "stale-inventory"

    def __init__(self, uri: str, age: timedelta, limit: timedelta) -> None:
        self.uri, self.age, self.limit = uri, age, limit
        super().__init__(
            f"inventory {uri} is {span(age)} old, the limit is {span(limit)}; "
            "take a newer one, or raise --max-inventory-age"
        )


class OtherPolicy(Refused):
    code = "other-policy"

    def __init__(self, run: str, fact: str) -> None:
        self.run = run
        super().__init__(f"plan {run} {fact}; plan again")


class TooMuch(Refused):
    code = "too-much"

    def __init__(self, what: str, going: int, total: int, limit: float, recent: int = 0) -> None:
        self.what, self.going, self.total, self.limit = what, going, total, limit
        before = f" and {recent:,} went in the last day" if recent else ""
        share = (going + recent) / (total + recent) if total + recent else 1.0
        super().__init__(
            f"{going:,} of {total:,} {what} would go{before}: {share:.0%}, the limit is {limit:.0%}; "
            "look at the plan, then raise --max-share if it is right"
        )


class TooMany(Refused):
    code = "too-many"

    def __init__(self, objects: int, limit: int) -> None:
        self.objects, self.limit = objects, limit
        super().__init__(
            f"{objects:,} objects would go, the limit is {limit:,}; look at the plan, or raise --max-objects"
        )


class NothingHeld(Refused):
    code = "nothing-held"

    def __init__(self, repository: str) -> None:
        self.repository = repository
        super().__init__(
            f"nothing in {repository!r} is held by any commit, staging area or ticket, so everything would go; "
            "if that is so, pass --allow-empty"
        )


class FirstRun(Refused):
    code = "first-run"

    def __init__(self, job: str, run: str) -> None:
        self.job, self.run = job, run
        super().__init__(
            f"this policy of {job!r} never removed anything here before; look at plan {run}, then pass --confirm"
        )


class WentBack(Refused):
    code = "went-back"

    def __init__(self, fact: str) -> None:
        super().__init__(
            f"{fact}: was the database restored from a copy? What later commits held would count as garbage; "
            "if that is right, pass --after-restore"
        )


class WrongTime(Refused):
    code = "wrong-time"

    def __init__(
        self, ours: datetime, theirs: datetime, whose: str, way_out: str = "mend the one that is wrong"
    ) -> None:
        self.ours, self.theirs = ours, theirs
        there = f"{whose} {theirs:%Y-%m-%d %H:%M:%S} UTC"
        super().__init__(f"this clock says {ours:%Y-%m-%d %H:%M:%S} UTC, {there}; {way_out}")


class OutsidePrefix(Refused):
    code = "outside-prefix"

    def __init__(self, run: str, address: str) -> None:
        self.run, self.address = run, address
        super().__init__(f"plan {run} names {address!r}, which is not an object of this repository; plan again")


class Locked(DesiltError):
    exit_code = 11

    def __init__(self, run: str, owner: str, silent: timedelta) -> None:
        self.run, self.owner = run, owner
        super().__init__(
            f"run {run} is at work ({owner}, last heard of {span(silent)} ago); wait for it, or try again in a minute"
        )


class FencedOff(Locked):
    def __init__(self, run: str, by: str) -> None:
        self.run, self.by = run, by
        taker = f"run {by}" if by else "another"
        DesiltError.__init__(self, f"run {run} was silent for too long, and {taker} took over; nothing more was done")


def span(length: timedelta) -> str:
    """A length of time, roughly."""
    seconds = int(length.total_seconds())
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{seconds // size} {unit}{'s' * (seconds // size != 1)}"
    return f"{seconds} second{'s' * (seconds != 1)}"
