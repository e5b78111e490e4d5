"""One move of a repository as its journal keeps it: what it did, and which move it follows.

Every record is signed with the repository's secret, and names the mark of the one
before it: two histories that reached the same number are told apart, and nothing
that was altered or cut off is taken for a record.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from desilt.domain.times import microseconds, moment
from desilt.errors import Unreadable

VERSION = 1


@dataclass(frozen=True, slots=True)
class Record:
    """What one move changed, in words that can be kept and carried out again."""

    generation: int
    follows: int  # the generation before it; numbers between the two were given up. -1: the first of all
    before: str  # the mark of that
    mark: str
    at: datetime
    changes: tuple[Mapping[str, Any], ...]


def write(record: Record, secret: str) -> bytes:
    facts = {"version": VERSION, **asdict(record), "at": microseconds(record.at)}
    return (json.dumps({**facts, "signed": _sign(facts, secret)}, indent=1) + "\n").encode()


def read(data: bytes, secret: str, *, generation: int, name: str) -> Record:
    """The record of ``generation`` that ``data`` is, or :class:`Unreadable`; ``name`` is for the message."""
    try:
        facts = json.loads(data)
        signed = facts.pop("signed")
        genuine = hmac.compare_digest(str(signed), _sign(facts, secret))
        version = facts.pop("version")
    except (ValueError, KeyError, AttributeError, TypeError):
        raise Unreadable(f"{name} is not a record of the journal; restore it from a copy") from None
    if not genuine:
        raise Unreadable(f"{name} is not what was written; restore it from a copy")
    if version != VERSION:
        raise Unreadable(f"{name} was written by a later desilt; upgrade desilt")
    found = Record(**{**facts, "at": moment(facts["at"]), "changes": tuple(facts["changes"])})
    if found.generation != generation:
        raise Unreadable(f"{name} is the record of move {found.generation}; restore it from a copy")
    return found


def _sign(facts: Mapping[str, Any], secret: str) -> str:
    said = json.dumps(facts, sort_keys=True).encode()
    return hmac.digest(secret.encode(), b"journal\n" + said, hashlib.sha256).hex()
