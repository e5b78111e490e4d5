"""Documents that people write, as JSON or YAML: read field by field, and never passed over.

Every refusal is one line: where, the fact, and the way out. ``where`` is how a
reader would call the place: ``rule 'old'``, ``keep 2``.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence

from desilt.domain.names import check_text
from desilt.errors import BadRequest

MAX_DAYS = 36_500


def fields(where: str, value: object, known: Sequence[str] | None = None) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise bad(where, f"it is {shown(value)}", "write an object, with names and values")
    for name in value:
        if not isinstance(name, str) or not name:
            raise bad(where, f"the name {shown(name)} is not a text", "write a name, in quotes")
        check_text(f"{where}: the name {shown(name)}", name)
        if known is not None and name not in known:
            near = nearest(name, known)
            fix = f"did you mean {near!r}?" if near else f"the fields are {', '.join(known)}"
            raise bad(where, f"it has an unknown field {shown(name)}", fix)
    return value


def items(where: str, value: object) -> Sequence[object]:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise bad(where, f"it is {shown(value)}", "write a list")
    return value


def text(where: str, said: Mapping[str, object], name: str) -> str | None:
    if name not in said:
        return None
    value = said[name]
    if not isinstance(value, str):
        raise bad(where, f"{name} is {shown(value)}", "write a text, in quotes")
    return check_text(f"{where}: {name}", value)


def days(where: str, said: Mapping[str, object], name: str) -> int | None:
    if name not in said:
        return None
    value = said[name]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_DAYS:
        raise bad(where, f"{name} is {shown(value)}", f"write a whole number of days, 0 to {MAX_DAYS:,}")
    return value


def flag(where: str, said: Mapping[str, object], name: str, *, default: bool) -> bool:
    value = said.get(name, default)
    if not isinstance(value, bool):
        raise bad(where, f"{name} is {shown(value)}", "write true or false")
    return value


def unique(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    """For ``json.loads(…, object_pairs_hook=unique)``: of two rules with one id, JSON would silently drop the first."""
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise bad("document", f"{shown(name)} is there twice", "give one of them another name, or take it out")
        found[name] = value
    return found


def nearest(name: str, known: Sequence[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name.lower(), known, n=1)), None)


def shown(value: object) -> str:
    said = repr(value) if not isinstance(value, bool) else str(value).lower()
    return said if len(said) <= 60 else said[:57] + "…"


def bad(where: str, fact: str, fix: str) -> BadRequest:
    return BadRequest(f"{where}: {fact}; {fix}")
