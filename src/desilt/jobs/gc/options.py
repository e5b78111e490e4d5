"""What a run of the uncommitted GC can be told."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from desilt.errors import BadRequest
from desilt.jobs.job import DROPPED_FOR


def only(name: str, word: str) -> Callable[[Any], str]:
    """Reads an option that can be one word, or is left out: what is wrong in a file is told when that is set."""

    def read(value: Any) -> str:
        if value != word:
            raise BadRequest(f"{name} can be {word!r}, not {value!r}; leave it out otherwise")
        return word

    return read


@dataclass(frozen=True, slots=True)
class Options:
    """What a run of it can be told besides."""

    branch: str | None = None  # None: the whole repository
    inventory: str | None = None  # a listing that somebody else made
    max_inventory_age: timedelta = timedelta(hours=48)
    dropped_for: timedelta = DROPPED_FOR  # objects that something pointed to since then stay
    after_restore: bool = False  # what restored records lost may go
    # "server": what only commits have that its own rules let go, goes too
    rules: str | None = field(default=None, metadata={"read": only("rules", "server")})
    tags: str | None = field(default=None, metadata={"read": only("tags", "hold")})  # "hold": but not what tags name


def check(options: Options) -> None:
    """Refuse what cannot go together."""
    if options.tags and not options.rules:
        raise BadRequest("tags hold what they name already, unless it goes by rules; leave --tags out")
    if options.rules and (options.branch is not None or options.inventory is not None):
        raise BadRequest("rules of the server are for the whole repository, as we list it; leave the other out")
