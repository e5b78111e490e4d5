"""What was asked for wrongly, is not there, or cannot be read; and what every error has."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

ODD_BYTE = re.compile(r"[\udc80-\udcff]")
IN_REPR = re.compile(r"(?<!\\)\\udc(?=[89a-f][0-9a-f])")


def told(text: str, escape: str = "\\x") -> str:
    """``text`` with bytes of paths that are no UTF-8 as ``\\xff``."""
    return ODD_BYTE.sub(lambda found: f"{escape}{ord(found[0]) & 0xFF:x}", text)


def sentence(text: str) -> str:
    """The same, of a message: there they are in what ``repr`` made of paths, too."""
    return IN_REPR.sub(r"\\x", told(text))


class DesiltError(Exception):
    """Nothing was changed, unless the message says so."""

    exit_code = 1
    code = "error"

    def __init__(self, message: str = "") -> None:
        super().__init__(sentence(message))

    def __reduce__(self) -> tuple[Any, ...]:
        """Whatever arguments a class takes: an error that an executor raised arrives as it was."""
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[DesiltError], said: tuple[Any, ...], facts: Mapping[str, Any]) -> DesiltError:
    error = kind.__new__(kind, *said)
    error.__dict__.update(facts)
    return error


class BadRequest(DesiltError):
    exit_code = 2
    code = "bad-request"


class InvalidName(BadRequest):
    code = "invalid-name"

    def __init__(self, kind: str, name: str, rule: str) -> None:
        self.kind, self.name = kind, name
        super().__init__(f"{name!r} cannot be the name of a {kind}: {rule}")


class InvalidPath(BadRequest):
    code = "invalid-path"

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        shown = path if len(path) <= 80 else path[:77] + "…"
        super().__init__(f"path {shown!r} {reason}; a path is 1 to 1,024 bytes of UTF-8 without NUL")


class InvalidRef(BadRequest):
    code = "invalid-ref"

    def __init__(self, ref: str, reason: str) -> None:
        self.ref = ref
        super().__init__(f"{ref!r} is not a ref: {reason}; write a branch, a tag or a commit, then ~N, ^N or @")


class InvalidUri(BadRequest):
    code = "invalid-uri"


class NotFound(DesiltError):
    code = "not-found"

    def __init__(self, kind: str, name: str, way_out: str = "") -> None:
        self.kind, self.name = kind, name
        super().__init__(f"there is no {kind} {name!r}" + (f"; {way_out}" if way_out else ""))


class Gone(DesiltError):
    code = "gone"

    def __init__(self, path: str, run: str, rule: str, at: datetime, *, marked: bool = False) -> None:
        self.path, self.run, self.rule, self.at = path, run, rule, at
        did = "marked" if marked else "removed"
        way_out = "`desilt retention restore` brings it back" if marked else "upload it again if it is still wanted"
        super().__init__(
            f"object {path!r} is gone: run {run} {did} it by rule {rule!r} on {at:%Y-%m-%d %H:%M:%S} UTC; {way_out}"
        )


class CommitGone(Gone):
    code = "commit-gone"

    def __init__(self, commit: str, run: str, at: datetime) -> None:
        self.commit, self.run, self.at = commit, run, at
        DesiltError.__init__(
            self,
            f"commit {commit} is gone: no ref reached it any more, and run {run} collected it "
            f"on {at:%Y-%m-%d %H:%M:%S} UTC; choose another, see `desilt lake log`",
        )


class Unreadable(DesiltError):
    code = "unreadable"


class JournalBroken(Unreadable):
    code = "journal-broken"

    def __init__(self, generation: int, repository: str) -> None:
        self.generation, self.repository = generation, repository
        super().__init__(
            f"the journal of {repository!r} has no record of move {generation}: were files below _desilt/journal/ "
            "removed? restore them from a copy; if they are lost for good, see `desilt lake recover --give-up`"
        )


class NewerSchema(Unreadable):
    code = "newer-schema"

    def __init__(self, found: int, known: int) -> None:
        self.found, self.known = found, known
        super().__init__(f"the database has schema {found}, this desilt knows up to {known}; upgrade desilt")


class StorageFailed(DesiltError):
    code = "storage-failed"


class WorkFailed(DesiltError):
    """What a piece of work failed of elsewhere, in a line; its whole story is in the log."""

    code = "work-failed"

    def __init__(self, reason: str) -> None:
        self.reason = " ".join(reason.split())
        super().__init__(f"a piece of work failed: {self.reason}; the same command goes on, and with -v it tells more")


class WorkersDiffer(DesiltError):
    """Spark's workers lack what the driver has: then none of them is given anything to do."""

    code = "workers-differ"

    def __init__(self, fact: str, way_out: str) -> None:
        self.fact = fact
        super().__init__(f"Spark's workers are not as this desilt needs them: {fact}; {way_out}")
