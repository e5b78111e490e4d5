"""Branches that nobody works on any more, by the rules of a policy."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

from desilt.domain.cutoffs import DAY
from desilt.domain.policy import BranchRule


@dataclass(frozen=True, slots=True)
class Activity:
    """What is known of a branch."""

    name: str
    created_at: datetime
    last_write: datetime  # of any kind: a commit, something staged, an upload
    keeps: str  # why it must stay whatever the rules say; "" if nothing speaks against its going


def stale(branches: Iterable[Activity], rules: Sequence[BranchRule], now: datetime) -> dict[str, str]:
    """The branches that go, and why. A day is 24 hours, and over only when it is over."""
    found: dict[str, str] = {}
    for branch in branches:
        for rule in rules:
            if branch.keeps or not fnmatchcase(branch.name, rule.match):
                continue
            if rule.idle_days is not None and now - branch.last_write > rule.idle_days * DAY:
                found[branch.name] = f"{rule.match!r}: no write for more than {rule.idle_days} days"
            elif rule.max_age_days is not None and now - branch.created_at > rule.max_age_days * DAY:
                found[branch.name] = f"{rule.match!r}: older than {rule.max_age_days} days"
    return found
