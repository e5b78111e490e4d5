"""What callers say, checked and made into what the engine takes; and the same as types, for editors and type checkers.

``TypedDict``s name the keywords of each job. A test keeps them in step with the jobs' own options.
"""

import os
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypedDict

from desilt.domain import spelling
from desilt.domain.policy import Policy, parse
from desilt.errors import BadRequest, NotFound
from desilt.jobs.lifecycle.policy_file import read_policy
from desilt.jobs.options import Option, told
from desilt.sweep.limits import Limits

Span = timedelta | str
Moment = datetime | str
PolicyLike = Policy | Mapping[str, Any] | os.PathLike[str] | str


class LimitWords(TypedDict, total=False):
    """How much a sweep may do unasked: the fields of :class:`Limits`."""

    max_plan_age: Span
    max_share: float | str
    max_objects: int | None
    allow_empty: bool
    confirm: bool
    after_restore: bool
    clock_is_right: bool


class AskWords(TypedDict, total=False):
    """What every job can be asked."""

    now: Moment | None
    action: Literal["delete", "trash"]
    full: bool


class GcWords(AskWords, total=False):
    branch: str | None
    inventory: str | None
    max_inventory_age: Span
    dropped_for: Span
    after_restore: bool


class LifecycleWords(AskWords, total=False):
    policy: PolicyLike | None
    dropped_for: Span


class ExpireWords(TypedDict, total=False):
    older_than: Span | datetime
    before: Moment
    keep: Mapping[str, int] | str | None
    keep_last: int | None
    delete_expired_tags: bool
    delete_expired_branches: bool
    now: Moment | None


class CollectWords(AskWords, total=False):
    older_than: Span | None
    unreached_for: Span
    keep_runs: Span
    dropped_for: Span


class GcRunWords(GcWords, LimitWords, total=False):
    pass


class LifecycleRunWords(LifecycleWords, LimitWords, total=False):
    pass


class ExpireRunWords(ExpireWords, LimitWords, total=False):
    pass


class CollectRunWords(CollectWords, LimitWords, total=False):
    pass


LIMITS = tuple(one.name for one in fields(Limits))


def limits_of(words: Mapping[str, Any]) -> Limits:
    """Limits from keywords."""
    found = Limits(**told(Limits, words, of="a sweep"))
    if not 0 <= found.max_share <= 1:
        raise BadRequest(f"'max_share' is {found.max_share}; give a share from 0 to 1, or such as '30%'")
    return found


def text_of(name: str, value: object) -> str | None:
    return _of(name, (str,), value)  # type: ignore[no-any-return]


def number_of(name: str, value: object) -> int | None:
    return _of(name, (int,), value)  # type: ignore[no-any-return]


def flag_of(name: str, value: object) -> bool:
    return bool(_of(name, (bool,), value))


def span_of(name: str, value: object) -> timedelta | None:
    return _of(name, (timedelta,), value)  # type: ignore[no-any-return]


def moment_of(name: str, value: object) -> datetime | None:
    """A moment, or the first one of a day."""
    return _of(name, (datetime,), value)  # type: ignore[no-any-return]


def end_of(name: str, value: object) -> datetime | timedelta | None:
    """A moment, or a length of time."""
    given = spelling.read_end(value) if isinstance(value, str) else value
    return _of(name, (datetime, timedelta), given)  # type: ignore[no-any-return]


def age_of(name: str, value: object) -> datetime | timedelta | None:
    """A day, or a length of time before now."""
    given = spelling.read_day_or_span(value) if isinstance(value, str) else value
    return _of(name, (datetime, timedelta), given)  # type: ignore[no-any-return]


def counts_of(name: str, value: object) -> dict[str, int]:
    """``daily=7,weekly=4``, as a text or a mapping."""
    if value is None:
        return {}
    given = spelling.read_counts(value) if isinstance(value, str) else value
    if not isinstance(given, Mapping):
        raise BadRequest(f"{name!r} is {value!r}; give {{'daily': 7}}, or 'daily=7,weekly=4'")
    return {text_of("a rule", rule) or "": number_of(f"keep {rule}", count) or 0 for rule, count in given.items()}


def policy_of(given: PolicyLike) -> Policy:
    """A policy from a mapping, from the text of one (JSON or YAML), or from the file at a path."""
    if isinstance(given, Policy):
        return given
    if isinstance(given, Mapping):
        return parse(dict(given))
    if not isinstance(given, str | os.PathLike):
        raise BadRequest(f"a policy is a mapping, a text, a path or a Policy, not {type(given).__name__}")
    if isinstance(given, str) and ("\n" in given or ": " in given or given.lstrip().startswith("{")):
        return read_policy(given)
    path = Path(given)
    try:
        return read_policy(path.read_text(encoding="utf-8"), name=path.name)
    except FileNotFoundError:
        raise NotFound("policy file", str(given), "give a path, a mapping, or the text itself") from None
    except UnicodeDecodeError:
        raise BadRequest(f"{str(given)!r} is not UTF-8; give a policy as JSON or YAML") from None
    except OSError as error:
        raise BadRequest(f"{str(given)!r} cannot be read: {error.strerror}") from None


def _of(name: str, kinds: tuple[type, ...], value: object) -> Any:
    return Option(name, kinds, optional=True, default=None).read(value)
