"""A scenario as text: read, and checked as a whole before any of it is done.

What is refused here is refused with its line: JSON that is none, operations and
fields that do not exist, time that goes back, names used before they are given.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from desilt import errors
from desilt.domain.times import EPOCH
from desilt.errors import BadRequest, DesiltError
from desilt.testing.operation import ADDRESS, FIELDS, REF, REMEMBERED, Operation, brief
from desilt.testing.vocabulary import VOCABULARY

START = datetime(2026, 1, 1, tzinfo=UTC)
END = EPOCH + timedelta(seconds=2**32)  # names of objects count seconds in four bytes
SPAN = re.compile(r"\+(?=\d)(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
UNITS = ("weeks", "days", "hours", "minutes", "seconds")


def parse(text: str, *, source: str = "scenario") -> list[Operation]:
    """The operations of a scenario file: one JSON object a line, beside blank lines and # comments."""
    operations = []
    for number, line in enumerate(text.split("\n"), start=1):  # other line ends may be part of a JSON text
        if line.strip() and not line.lstrip().startswith("#"):
            where = f"{source}:{number}"
            try:
                operations.append(_read(line, where))
            except BadRequest as error:
                raise BadRequest(f"{where}: {error}") from None
    check(operations, now=first_moment(operations))
    return operations


def first_moment(operations: Sequence[Operation]) -> datetime:
    """When a scenario's repository is made: where its first operation says, if it names a date."""
    first = operations[0].at if operations else None
    return first if isinstance(first, datetime) else START


def check(operations: Iterable[Operation], *, now: datetime, known: Mapping[str, str] | None = None) -> None:
    """Refuse a scenario whose time goes back, or that uses a name before it has it."""
    names = dict(known or {})
    for number, operation in enumerate(operations, start=1):
        where = operation.where or f"operation {number}"
        if operation.at is not None:
            try:
                then = now + operation.at if isinstance(operation.at, timedelta) else operation.at
            except OverflowError:
                then = END
            if not EPOCH <= then < END:
                raise BadRequest(f"{where}: at must be from {EPOCH:%Y-%m-%d} to {END:%Y-%m-%d}")
            if then < now:
                raise BadRequest(f"{where}: time does not go back: it is {now:%Y-%m-%d %H:%M:%S} by then")
            now = then
        for field, value in operation.fields.items():
            found = REMEMBERED.fullmatch(value) if FIELDS[field] in (REF, ADDRESS) else None
            wanted = "address" if FIELDS[field] is ADDRESS else "commit"
            if found and names.get(found["name"]) != wanted:
                there = ", ".join(f"${name}" for name, kind in names.items() if kind == wanted) or "none"
                raise BadRequest(f"{where}: {field} names no {wanted} made before: {value}; there are: {there}")
        if operation.name in names:
            raise BadRequest(f"{where}: ${operation.name} has a meaning already; choose another name")
        if operation.name:
            names[operation.name] = VOCABULARY[operation.do].names


def _read(line: str, where: str) -> Operation:
    """One line as an operation."""
    try:
        said = json.loads(line, object_pairs_hook=_once_each)
    except json.JSONDecodeError as error:
        raise BadRequest(f"this is not JSON: {error.msg}, at column {error.colno}") from None
    except (ValueError, RecursionError):
        raise BadRequest("this is JSON beyond measure: numbers too long or lists too deep") from None
    if not isinstance(said, dict):
        raise BadRequest(f"a line is one JSON object, not {brief(said)}")
    if not said.keys() & {"do", "at", "say"} or ("do" not in said and said.keys() - {"at", "say"}):
        raise BadRequest(f"a line needs do, one of: {', '.join(VOCABULARY)}; without it, at and say are all it has")
    do = said.pop("do", "wait")
    if not isinstance(do, str) or do not in VOCABULARY:
        raise BadRequest(f"there is no operation {brief(do)}; there are: {', '.join(VOCABULARY)}")
    if "at" in said:
        said["at"] = _moment_or_span(said["at"])
    if "fails" in said:
        said["fails"] = _error_class(said["fails"])
    return VOCABULARY[do].operation(said, where=where)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise BadRequest(f"{brief(next(name for name in names if names.count(name) > 1))} is said twice")
    return found


def _moment_or_span(said: Any) -> datetime | timedelta:
    """``2026-01-05``, ``2026-01-05T09:00:00Z`` (UTC where no zone is given), or ``+3d``, ``+2h30m``."""
    try:
        if match := SPAN.fullmatch(said):
            return timedelta(**{unit: int(count or 0) for unit, count in zip(UNITS, match.groups(), strict=True)})
        moment = datetime.fromisoformat(said)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise BadRequest(
            f"at must be a date or time such as 2026-01-05T09:00:00Z, or a duration such as +3d or +2h30m, "
            f"not {brief(said)}"
        ) from None


def _error_class(said: Any) -> type[DesiltError]:
    known = {name: one for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, DesiltError)}
    if not isinstance(said, str) or said not in known:
        raise BadRequest(f"fails must be an error of desilt.errors, not {brief(said)}; there are: {', '.join(known)}")
    return known[said]
