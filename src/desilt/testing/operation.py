"""One step of a scenario, and the words such steps are written with.

A :class:`Word` is made from a function: its parameters are the operation's fields
(a trailing ``_`` is dropped), those without a default are needed. Calling a word
gives an :class:`Operation`, checked; nothing is done until a scenario is replayed.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from desilt.errors import BadRequest, DesiltError
from desilt.lake.merge import STRATEGIES
from desilt.lake.repository import LakeRepository

NAME = re.compile(r"[A-Za-z0-9_-]+")
REMEMBERED = re.compile(r"\$(?P<name>[A-Za-z0-9_-]+)(?P<steps>[~^@0-9]*)")
COMMON = ("at", "say", "fails")


@dataclass(frozen=True, slots=True)
class Operation:
    """What to do, when, and how it must end."""

    do: str
    fields: Mapping[str, Any]
    at: datetime | timedelta | None = None  # the clock moves there, or on by that much, before anything is done
    say: str = ""
    fails: type[DesiltError] | None = None
    name: str = ""  # what `as` says
    where: str = field(default="", compare=False)  # the file and line it was read from


@dataclass(frozen=True, slots=True)
class Turn:
    """What an operation works on when it comes to it."""

    repository: LakeRepository
    number: int  # of the operation in its scenario, from 1


@dataclass(frozen=True, slots=True)
class FieldKind:
    """What the value of a field may be."""

    says: str
    accepts: Callable[[Any], bool]


def is_text(value: Any) -> bool:
    return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)


def is_pairs(value: Any) -> bool:
    return isinstance(value, Mapping) and all(is_text(one) for pair in value.items() for one in pair)


def is_ref(value: Any) -> bool:
    return is_text(value) and (not value.startswith("$") or REMEMBERED.fullmatch(value) is not None)


def is_address(value: Any) -> bool:
    return is_text(value) and value.startswith("$") and NAME.fullmatch(value[1:]) is not None


TEXT = FieldKind("a text of valid Unicode", is_text)
COUNT = FieldKind("a whole number from 0 to 2^63-1", lambda value: type(value) is int and 0 <= value < 2**63)
FLAG = FieldKind("true or false", lambda value: type(value) is bool)
PAIRS = FieldKind("an object of texts", is_pairs)
REF = FieldKind("a ref, or $NAME of a commit (and ~N or ^N)", is_ref)
ADDRESS = FieldKind("$NAME of an address", is_address)
STRATEGY = FieldKind(" or ".join(STRATEGIES), lambda value: value in STRATEGIES)

FIELDS = {
    "address": ADDRESS,
    "all": FieldKind("true", lambda value: value is True),
    "allow_empty": FLAG,
    "branch": TEXT,
    "bytes": COUNT,
    "checksum": TEXT,
    "commit": REF,
    "committer": TEXT,
    "content_type": TEXT,
    "force": FLAG,
    "from": REF,
    "message": TEXT,
    "metadata": PAIRS,
    "parent": COUNT,
    "path": TEXT,
    "prefix": TEXT,
    "seed": COUNT,
    "size": COUNT,
    "source": TEXT,
    "strategy": STRATEGY,
    "tag": TEXT,
    "text": TEXT,
    "uri": TEXT,
}
"""A field means the same in every operation that has it."""


class Word:
    """One operation of the vocabulary: its fields, and what it does."""

    def __init__(
        self, act: Callable[..., Any], names: str, one_of: tuple[str, ...], never_both: tuple[tuple[str, str], ...]
    ) -> None:
        self.do = act.__name__.replace("_", "-")
        self.names, self.one_of, self.never_both = names, one_of, never_both
        self.__doc__ = act.__doc__
        self._act = act
        parameters = list(inspect.signature(act).parameters.values())[1:]
        self._parameters = {parameter.name.rstrip("_"): parameter.name for parameter in parameters}
        self.fields = tuple(self._parameters)
        self.needs = tuple(one.name.rstrip("_") for one in parameters if one.default is inspect.Parameter.empty)

    def __call__(self, *values: Any, **given: Any) -> Operation:
        """The operation with ``values`` for its first fields and ``given`` for others, and `at`, `say`, `fails`."""
        if len(values) > len(self.fields):
            raise BadRequest(f"{self.do} takes {len(self.fields)} values at most; it has {self.known}")
        ahead = dict(zip(self.fields, values, strict=False))
        named = {name.rstrip("_"): value for name, value in given.items()}
        if twice := sorted(ahead.keys() & named.keys()):
            raise BadRequest(f"{self.do} is told {', '.join(twice)} twice")
        return self.operation({**ahead, **named})

    def operation(self, said: Mapping[str, Any], *, where: str = "") -> Operation:
        """The operation with these fields, if they are its fields and all is there."""
        fields = {name: value for name, value in said.items() if name not in (*COMMON, "as")}
        at, say, fails, name = said.get("at"), said.get("say", ""), said.get("fails"), said.get("as", "")
        self._check(fields)
        if not is_text(say):
            raise BadRequest(f"say must be a text, not {brief(say)}")
        if at is not None and not isinstance(at, timedelta) and not (isinstance(at, datetime) and at.tzinfo):
            raise BadRequest(f"at must be a moment with its time zone or a duration, not {brief(at)}")
        if "as" in said and not (self.names and isinstance(name, str) and NAME.fullmatch(name)):
            why = (
                "must be letters, digits, _ and -" if self.names else f"is not for {self.do}: it makes nothing to name"
            )
            raise BadRequest(f"as {why}")
        if fails is not None and not (isinstance(fails, type) and issubclass(fails, DesiltError)):
            raise BadRequest(f"fails must be an error of desilt.errors, not {brief(fails)}")
        if fails is not None and ("as" in said or not self.fields):
            raise BadRequest(f"a {self.do} that fails has no name" if "as" in said else "waiting cannot fail")
        return Operation(self.do, fields, at, say, fails, name, where)

    def act(self, turn: Turn, fields: Mapping[str, Any]) -> Any:
        """Do it; what was made, where there is something to remember."""
        return self._act(turn, **{self._parameters[name]: value for name, value in fields.items()})

    @property
    def known(self) -> str:
        """Every field it may have, for a message."""
        common = [name for name in COMMON if self.fields or name != "fails"]
        return ", ".join([*self.fields, *(["as"] if self.names else []), *common])

    def _check(self, fields: Mapping[str, Any]) -> None:
        for name, value in fields.items():
            if name not in self.fields:
                raise BadRequest(f"{self.do} has no field {brief(name)}; it has {self.known}")
            if not FIELDS[name].accepts(value):
                raise BadRequest(f"{name} must be {FIELDS[name].says}, not {brief(value)}")
        if missing := [name for name in self.needs if name not in fields]:
            raise BadRequest(f"{self.do} needs {' and '.join(missing)}; it has {self.known}")
        if self.one_of and len(fields.keys() & set(self.one_of)) != 1:
            raise BadRequest(f"{self.do} needs one of {', '.join(self.one_of)}")
        for one, other in self.never_both:
            if one in fields and other in fields:
                raise BadRequest(f"{self.do} has {one} or {other}, not both")


def brief(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"
