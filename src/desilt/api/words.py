"""What callers say, checked and made into what the engine takes; and the same as types, for editors and type checkers.

``TypedDict``s name the keywords of each job. A test keeps them in step with the jobs' own options.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict

from desilt.domain import spelling
from desilt.jobs.lifecycle.policy_file import PolicyLike
from desilt.jobs.options import Option
from desilt.jobs.retention.document import RetentionLike

Span = timedelta | str
Moment = datetime | str


class LimitWords(TypedDict, total=False):
    """How much a sweep may do unasked: the fields of :class:`Limits`."""

    max_plan_age: Span
    max_share: float | str
    max_objects: int | None
    allow_empty: bool
    confirm: bool
    after_restore: bool
    clock_is_right: bool
    max_deletes_per_second: int | None


class AskWords(TypedDict, total=False):
    """What every job can be asked."""

    now: Moment | None
    action: Literal["delete", "trash", "purge-versions"]
    full: bool


class GcWords(AskWords, total=False):
    branch: str | None
    inventory: str | None
    max_inventory_age: Span
    dropped_for: Span
    after_restore: bool
    rules: str | None
    tags: str | None


class LifecycleWords(AskWords, total=False):
    policy: PolicyLike | None
    dropped_for: Span


class RetentionWords(AskWords, total=False):
    document: RetentionLike | None
    tag: str
    wait: Span
    dropped_for: Span
    batch: bool
    account_id: str
    role_arn: str


class ExpireWords(AskWords, total=False):
    older_than: Span | datetime
    before: Moment
    keep: Mapping[str, int] | str | None
    keep_last: int | None
    delete_expired_tags: bool
    delete_expired_branches: bool
    mode: Literal["design", "v1", "v2"] | None
    sizes: bool


class CollectWords(AskWords, total=False):
    older_than: Span | None
    unreached_for: Span
    keep_runs: Span
    dropped_for: Span
    unsafe: bool
    accept_missing: int
    backups_older_than: Span | None


class GcRunWords(GcWords, LimitWords, total=False):
    pass


class LifecycleRunWords(LifecycleWords, LimitWords, total=False):
    pass


class RetentionRunWords(RetentionWords, LimitWords, total=False):
    pass


class ExpireRunWords(ExpireWords, LimitWords, total=False):
    pass


class CollectRunWords(CollectWords, LimitWords, total=False):
    pass


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


def share_of(name: str, value: object) -> float | None:
    """A number from 0 to 1, or such as ``"30%"``."""
    return _of(name, (float,), value)  # type: ignore[no-any-return]


def _of(name: str, kinds: tuple[type, ...], value: object) -> Any:
    return Option(name, kinds, optional=True, default=None).read(value)
