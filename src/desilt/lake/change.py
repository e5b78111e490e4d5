"""One thing that a move does: done the same way when it is made, and when a journal is carried out again.

Whoever moves something makes a :class:`Change` and lets
:meth:`~desilt.lake.moves.Move.do` carry it out, so that nothing is changed which
the journal does not have.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any, ClassVar

from desilt.errors import Unreadable
from desilt.records.database import Transaction


@dataclass(frozen=True, slots=True)
class Moment:
    """The move that a change is part of."""

    repository: str  # its uid
    generation: int
    mark: str
    at: datetime
    again_at: datetime | None = None  # made again, in a database that had lost it


@dataclass(frozen=True, slots=True)
class Change(ABC):
    """As a text, what it is for people. Its fields are what JSON can hold."""

    kinds: ClassVar[dict[str, type["Change"]]] = {}
    releases: ClassVar[bool] = False  # whether something is kept no longer: never done late, when nobody expects it

    def __init_subclass__(cls) -> None:
        Change.kinds[cls.__name__] = cls

    @abstractmethod
    def apply(self, tx: Transaction, move: Moment) -> None:
        """Do it."""


def facts(change: Change) -> dict[str, Any]:
    """``change`` as JSON has it."""
    return {"do": type(change).__name__, **asdict(change)}


def read(said: Mapping[str, Any]) -> Change:
    """The change that :func:`facts` wrote."""
    kind = Change.kinds.get(said.get("do", ""))
    if kind is None or {field.name for field in fields(kind)} != said.keys() - {"do"}:
        raise Unreadable(f"the journal has a change {said.get('do')!r} that this desilt does not know; upgrade desilt")
    return kind(**{name: value for name, value in said.items() if name != "do"})
