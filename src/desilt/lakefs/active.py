"""The commits that a server's rules of garbage collection keep: worked out as the server does it, and as it means to.

From each head, and from each commit that is no other's main parent, the main parents are walked. A commit keeps its
parent if it is younger than the branch's days; so the state that the branch was in so many days ago is kept too. Tags
count for nothing.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from desilt.domain.history import Commit
from desilt.domain.times import microseconds
from desilt.errors import Unreadable
from desilt.lakefs.server import GcRules

DAY = timedelta(days=1) // timedelta(microseconds=1)


def active(commits: Mapping[str, Commit], heads: Mapping[str, str], rules: GcRules, now: datetime) -> set[str]:
    """What ``prepare_commits`` would list: equal to the server's answer, to the last commit.

    The server passes over a commit that an earlier walk came by with a longer or equal period, and with it over the
    question whether *this* child keeps it. So a state that :func:`meant` has may be missing, by the order of ids.
    """
    walked: dict[str, int] = {}  # commits that were come by, and since when things were kept then
    found: set[str] = set()
    for start, branch in _starts(commits, heads):
        since = _since(rules, branch, now)
        child = _commit(commits, start)
        if branch is not None:
            found.add(start)
            walked[start] = since
        parent = start if branch is None else _main(child)
        while parent and not walked.get(parent, since + 1) <= since:
            if microseconds(child.created_at) > since:
                found.add(parent)
            walked[parent] = since
            child = _commit(commits, parent)
            parent = _main(child)
    return found


def meant(commits: Mapping[str, Commit], heads: Mapping[str, str], rules: GcRules, now: datetime) -> set[str]:
    """What the rule says in words, whatever the order: every commit of :func:`active`, and never fewer."""
    walked: dict[str, int] = {}
    found: set[str] = set()
    for start, branch in _starts(commits, heads):
        since = _since(rules, branch, now)
        child = _commit(commits, start)
        found |= {start} if branch is not None else set()
        parent = start if branch is None else _main(child)
        while parent:
            if microseconds(child.created_at) > since:
                found.add(parent)
            if walked.get(parent, since + 1) <= since:
                break
            walked[parent] = since
            child = _commit(commits, parent)
            parent = _main(child)
    return found


def _starts(commits: Mapping[str, Commit], heads: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    """Where walks begin, in the order of ids: heads with their branch, and what nothing has for a main parent."""
    below = {_main(commit) for commit in commits.values()}
    dangling = commits.keys() - below - set(heads.values())
    starts = [(head, branch) for branch, head in heads.items()] + [(one, None) for one in dangling]
    yield from sorted(starts, key=lambda start: (start[0], start[1] or ""))


def _since(rules: GcRules, branch: str | None, now: datetime) -> int:
    """In microseconds, for periods may be longer than time itself; a branch is matched by its whole name."""
    days = rules.default_days if branch is None else rules.branch_days.get(branch, rules.default_days)
    return microseconds(now) - days * DAY


def _main(commit: Commit) -> str:
    return commit.parents[0] if commit.parents else ""


def _commit(commits: Mapping[str, Commit], name: str) -> Commit:
    if name not in commits:
        raise Unreadable(f"commit {name} is missing from the server's dump; run again")
    return commits[name]
