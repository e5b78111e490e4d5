"""What every store needs to take many objects away: the checks before, and an outcome for each."""

from collections.abc import Callable, Sequence

from desilt.errors import BadRequest, DesiltError, NotFound
from desilt.objects.store import Outcome, Result, check_key


def check_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """:class:`BadRequest` unless each is a move from one key to another."""
    for source, destination in pairs:
        if check_key(source) == check_key(destination):  # as a copy and a delete, that would destroy it
            raise BadRequest(f"cannot move {source!r} onto itself; give each object another key to go to")


def attempt(act: Callable[..., object], key: str, *more: object) -> Outcome:
    """What came of ``act(key, *more)``, which raises NotFound if there is no object, another error if it failed."""
    try:
        act(key, *more)
    except DesiltError as error:
        return failed(key, error)
    return Outcome(key, Result.REMOVED)


def failed(key: str, error: DesiltError) -> Outcome:
    if isinstance(error, NotFound):
        return Outcome(key, Result.GONE)
    return Outcome(key, Result.FAILED, str(error))


def by_folder(keys: Sequence[str]) -> dict[str, list[int]]:
    """Which of ``keys``, by their places, lie in each folder."""
    found: dict[str, list[int]] = {}
    for place, key in enumerate(keys):
        found.setdefault(key.rpartition("/")[0], []).append(place)
    return found
