"""What a job can be told, by the fields of a dataclass: names, kinds and defaults; and values checked against them.

A value may be given as people write it: ``"7d"`` for a length of time, ``"2026-01-31"`` for a moment, ``"30%"`` for a
share. A field's ``metadata`` may have words for ``help``, and a function to ``read`` other forms with. Whatever is
of another kind is refused before anything is done.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from datetime import datetime, timedelta
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from desilt.domain.spelling import read_day_or_span, read_moment, read_share, read_span
from desilt.errors import BadRequest

NAMES = {
    str: "a text",
    int: "a whole number",
    float: "a share, such as 0.3 or '30%'",
    bool: "True or False",
    timedelta: "a length of time, such as '7d'",
    datetime: "a moment with a time zone",
}
SPELLED: Mapping[type, Callable[[str], object]] = {timedelta: read_span, datetime: read_moment, float: read_share}


@dataclass(frozen=True, slots=True)
class Option:
    """One thing that can be told."""

    name: str
    kinds: tuple[type, ...]  # any of them; none: whatever it is
    optional: bool  # None is a value, too
    default: Any  # MISSING: it must be told
    help: str = ""
    spelled: Callable[[Any], Any] | None = None  # makes one of the kinds of what people give
    said: bool = True  # by people; else by programs alone

    @property
    def required(self) -> bool:
        return self.default is MISSING

    def read(self, value: Any) -> Any:
        """``value`` as one of the kinds."""
        if value is None and self.optional:
            return value
        if self.spelled is not None:
            value = self.spelled(value)
        if not self.kinds:
            return value
        if isinstance(value, str) and {datetime, timedelta}.issubset(self.kinds):
            return read_day_or_span(value)
        if isinstance(value, str) and str not in self.kinds:
            for kind in self.kinds:
                if kind in SPELLED:
                    return SPELLED[kind](value)
        if isinstance(value, timedelta) and value < timedelta(0):
            raise BadRequest(f"{self.name!r} is {value}, less than no time; give a length of time, such as '7d'")
        if self._fits(value):
            return value
        wanted = " or ".join(NAMES.get(kind, f"a {kind.__name__}") for kind in self.kinds)
        raise BadRequest(f"{self.name!r} is {value!r}, of type {type(value).__name__}; give {wanted}")

    def _fits(self, value: Any) -> bool:
        if isinstance(value, bool):
            return bool in self.kinds  # and no number, though Python takes it for one
        if isinstance(value, int) and float in self.kinds:
            return True
        return isinstance(value, self.kinds) and not (isinstance(value, datetime) and value.tzinfo is None)


def options_of(described: type) -> dict[str, Option]:
    """The fields of a dataclass, by name."""
    hints = get_type_hints(described)
    found = {}
    for one in fields(described):
        kinds, optional = _kinds(hints[one.name])
        default = one.default if one.default_factory is MISSING else one.default_factory()
        more = one.metadata
        found[one.name] = Option(
            one.name, kinds, optional, default, more.get("help", ""), more.get("read"), more.get("said", True)
        )
    return found


def told(described: type, words: Mapping[str, Any], *, of: str, besides: tuple[str, ...] = ()) -> dict[str, Any]:
    """``words`` checked, each an option of ``described``; ``besides`` is what else ``of`` could have been told."""
    known = options_of(described)
    if unknown := sorted(words.keys() - known.keys()):
        raise BadRequest(f"{of} has no option {unknown[0]!r}; it has {', '.join([*besides, *known])}")
    if missing := [one.name for one in known.values() if one.required and one.name not in words]:
        raise BadRequest(f"{of} must be told {missing[0]!r}")
    return {name: known[name].read(value) for name, value in words.items()}


def _kinds(hint: Any) -> tuple[tuple[type, ...], bool]:
    """The classes that a type hint allows, and whether None is allowed; no classes where it says more than that."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    optional, kinds = NoneType in parts, tuple(part for part in parts if part is not NoneType)
    return (kinds if all(isinstance(kind, type) for kind in kinds) else ()), optional
