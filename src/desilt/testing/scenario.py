"""A repository's past, written down: one operation a line, replayed on a clock that goes where it is told.

A file is read by :func:`parse` and built by :func:`replay`; tests say the same in
Python, on a repository they have: ``scenario(repo)(put("main", "a"), commit("main"),
days(30), …)``. All of it is checked before any of it is done.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from desilt.errors import DesiltError
from desilt.lake.lake import Lake
from desilt.lake.repository import LakeRepository
from desilt.testing.operation import ADDRESS, FIELDS, REF, REMEMBERED, Operation, Turn
from desilt.testing.script import check, first_moment, parse
from desilt.testing.vocabulary import (
    VOCABULARY,
    address,
    branch,
    commit,
    copy,
    days,
    delete,
    delete_branch,
    delete_tag,
    hours,
    link,
    merge,
    move,
    put,
    reset,
    revert,
    stage,
    tag,
    upload,
    wait,
)

__all__ = [
    "Operation",
    "ReplayFailed",
    "Story",
    "address",
    "branch",
    "commit",
    "copy",
    "days",
    "delete",
    "delete_branch",
    "delete_tag",
    "hours",
    "link",
    "merge",
    "move",
    "parse",
    "put",
    "replay",
    "reset",
    "revert",
    "scenario",
    "stage",
    "tag",
    "upload",
    "wait",
]

Say = Callable[[datetime, str], None]
Track = Callable[[Sequence[Operation]], Iterable[Operation]]


class ReplayFailed(DesiltError):
    """One operation of a scenario did not end as it must; what came before it is done, and stays."""

    code = "replay-failed"

    def __init__(self, operation: Operation, number: int, reason: str, *, exit_code: int, done: bool) -> None:
        self.operation, self.exit_code = operation, exit_code
        where = operation.where or f"operation {number}"
        so_far = "this and all that" if done else "what"
        super().__init__(f"{where}: {operation.do}: {reason} (the repository holds {so_far} came before it)")


def replay(
    lake: Lake, name: str, operations: Sequence[Operation], *, say: Say | None = None, track: Track = iter
) -> LakeRepository:
    """A new repository with this past; its clock stands where the scenario ends."""
    start = first_moment(operations)
    check(operations, now=start)
    repository = lake.create_repository(name, clock_at=start)
    story = Story(repository, say=say)
    for operation in track(operations):
        story(operation)
    return repository


def scenario(repository: LakeRepository, *, say: Say | None = None) -> "Story":
    """``scenario(repository)(…operations…)`` does them, one after the other."""
    return Story(repository, say=say)


class Story:
    """Operations on one repository, and the names they gave; it may be called again to go on."""

    def __init__(self, repository: LakeRepository, *, say: Say | None = None) -> None:
        self.repository, self._say = repository, say
        self.named: dict[str, Any] = {}  # a Commit or a Handed address each
        self._kinds: dict[str, str] = {}
        self._count = 0

    def __call__(self, *operations: Operation) -> Mapping[str, Any]:
        """Do them all; what has a name by then."""
        check(operations, now=self.repository.clock(), known=self._kinds)
        for operation in operations:
            self._count += 1
            self._perform(operation)
        return self.named

    def _perform(self, operation: Operation) -> None:
        self._move_clock(operation)
        if operation.say and self._say:
            self._say(self.repository.clock(), operation.say)
        made, failed = None, None
        try:
            turn = Turn(self.repository, self._count)
            made = VOCABULARY[operation.do].act(turn, self._resolved(operation.fields))
        except DesiltError as error:
            failed = error
        if operation.fails is None and failed is not None:
            raise self._failure(operation, str(failed), failed.exit_code) from failed
        if operation.fails is not None and not isinstance(failed, operation.fails):
            instead = f"failed with {type(failed).__name__}: {failed}" if failed else "did not"
            wanted = f"must fail with {operation.fails.__name__}, and {instead}"
            raise self._failure(operation, wanted, done=failed is None) from failed
        if operation.name:
            if made is None:
                raise self._failure(
                    operation, f"there was nothing to do, so there is nothing to call ${operation.name}"
                )
            self.named[operation.name], self._kinds[operation.name] = made, VOCABULARY[operation.do].names

    def _move_clock(self, operation: Operation) -> None:
        try:
            if isinstance(operation.at, timedelta):
                self.repository.set_clock(self.repository.clock() + operation.at)
            elif operation.at is not None:
                self.repository.set_clock(operation.at)
        except DesiltError as error:  # not what `fails` is about
            raise self._failure(operation, str(error), error.exit_code) from error

    def _resolved(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """``fields`` with what their $names stand for."""
        resolved = dict(fields)
        for field, value in fields.items():
            if FIELDS[field] is ADDRESS:
                resolved[field] = self.named[value[1:]]
            elif FIELDS[field] is REF and (found := REMEMBERED.fullmatch(value)):
                resolved[field] = self.named[found["name"]].id + found["steps"]
        return resolved

    def _failure(self, operation: Operation, reason: str, exit_code: int = 1, *, done: bool = False) -> ReplayFailed:
        return ReplayFailed(operation, self._count, reason, exit_code=exit_code, done=done)
