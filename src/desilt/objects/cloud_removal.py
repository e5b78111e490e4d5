"""Many keys of a bucket, each asked for alone, and when to stop asking."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias, TypeVar

from obstore.exceptions import GenericError

from desilt.errors import DesiltError
from desilt.objects.removal import failed
from desilt.objects.s3_client import unanswered
from desilt.objects.store import Outcome, Outcomes, Result

AT_ONCE = 16  # requests on their way at a time

Question = TypeVar("Question")
Told = TypeVar("Told")
Attempt: TypeAlias = tuple[
    str, Callable[[], object]
]  # a key, and what is tried with it; NotFound if there is no object


def each_alone(attempts: Sequence[Attempt], between: Callable[[], None]) -> Outcomes:
    """One outcome for each, in order; ``between`` is called before each few that are asked for side by side."""
    return few_by_few(attempts, asked, untried, between)


def few_by_few(
    questions: Sequence[Question],
    ask: Callable[[Question], tuple[Told, bool]],
    unasked: Callable[[Question, Told], Told],
    between: Callable[[], None],
) -> list[Told]:
    """What ``ask`` tells of each, and whether the store answered; ``between`` is called before each few.

    A request that the server does not answer is tried for minutes. When
    :data:`AT_ONCE` of them have ended so side by side, the rest fail without being
    asked: a thousand keys would take hours to say the same. ``unasked`` tells of those,
    given what was told last.
    """
    told: list[Told] = []
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for at in range(0, len(questions), AT_ONCE):
            between()
            answers = list(threads.map(ask, questions[at : at + AT_ONCE]))
            told += [one for one, _ in answers]
            if not any(answered for _, answered in answers):
                return told + [unasked(question, told[-1]) for question in questions[at + AT_ONCE :]]
    return told


def asked(attempt: Attempt) -> tuple[Outcome, bool]:
    """The outcome, and whether the store gave an answer; a refusal is one."""
    key, act = attempt
    try:
        act()
    except DesiltError as error:
        return failed(key, error), is_answer(error)
    return Outcome(key, Result.REMOVED), True


def is_answer(error: DesiltError) -> bool:
    """Whether ``error`` is what the store said, and not that it said nothing."""
    return not (isinstance(error.__cause__, GenericError) or unanswered(error.__cause__))


def untried(attempt: Attempt, last: Outcome) -> Outcome:
    return Outcome(attempt[0], Result.FAILED, not_tried(last.detail), tried=False)


def not_tried(why: str) -> str:
    return f"not tried, since the store did not answer before: {why}"


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
