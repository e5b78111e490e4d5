"""What a run of the uncommitted GC can be told."""

from dataclasses import dataclass
from datetime import timedelta

from desilt.errors import BadRequest
from desilt.jobs.job import DROPPED_FOR


@dataclass(frozen=True, slots=True)
class Options:
    """What a run of it can be told besides."""

    branch: str | None = None  # None: the whole repository
    inventory: str | None = None  # a listing that somebody else made
    max_inventory_age: timedelta = timedelta(hours=48)
    dropped_for: timedelta = DROPPED_FOR  # objects that something pointed to since then stay
    after_restore: bool = False  # what restored records lost may go
    rules: str | None = None  # "server": what only commits have that its own rules let go, goes too
    tags: str | None = None  # "hold": but not what tags name


def check(options: Options) -> None:
    """Refuse what cannot go together."""
    if options.rules not in (None, "server") or options.tags not in (None, "hold"):
        raise BadRequest("rules can be 'server', and tags can be 'hold'; leave them out otherwise")
    if options.tags and not options.rules:
        raise BadRequest("tags hold what they name already, unless it goes by rules; leave --tags out")
    if options.rules and (options.branch is not None or options.inventory is not None):
        raise BadRequest("rules of the server are for the whole repository, as we list it; leave the other out")
