"""Many keys of a bucket, each asked for alone, and when to stop asking."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from obstore.exceptions import GenericError

from desilt.errors import DesiltError
from desilt.objects.removal import failed
from desilt.objects.store import Outcome, Outcomes, Result

AT_ONCE = 16  # requests on their way at a time

Attempt: TypeAlias = tuple[
    str, Callable[[], object]
]  # a key, and what is tried with it; NotFound if there is no object


def each_alone(attempts: Sequence[Attempt], between: Callable[[], None]) -> Outcomes:
    """One outcome for each, in order; ``between`` is called before each few that are asked for side by side.

    A request that the server does not answer is tried for up to two minutes. When
    :data:`AT_ONCE` of them have ended so side by side, the rest fail without being
    asked: a thousand keys would take hours to say the same.
    """
    outcomes: Outcomes = []
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for at in range(0, len(attempts), AT_ONCE):
            between()
            answers = list(threads.map(asked, attempts[at : at + AT_ONCE]))
            outcomes += [outcome for outcome, _ in answers]
            if not any(answered for _, answered in answers):
                why = f"not tried, since the store did not answer before: {outcomes[-1].detail}"
                return outcomes + [Outcome(key, Result.FAILED, why) for key, _ in attempts[at + AT_ONCE :]]
    return outcomes


def asked(attempt: Attempt) -> tuple[Outcome, bool]:
    """The outcome, and whether the store gave an answer; a refusal is one."""
    key, act = attempt
    try:
        act()
    except DesiltError as error:
        return failed(key, error), not isinstance(error.__cause__, GenericError)
    return Outcome(key, Result.REMOVED), True


def repeated(keys: Iterable[str], outcomes: Iterable[Outcome]) -> Outcomes:
    """The ``outcomes`` of different keys told for all ``keys``: what was removed is gone the second time."""
    known = {outcome.key: outcome for outcome in outcomes}
    told: Outcomes = []
    for key in keys:
        told.append(known[key])
        if known[key].result is Result.REMOVED:
            known[key] = Outcome(key, Result.GONE)
    return told


def apart(pairs: Sequence[tuple[str, str]]) -> bool:
    """Whether no key is in two of the moves, so that their order does not matter."""
    keys = [key for pair in pairs for key in pair]
    return len(set(keys)) == len(keys)
