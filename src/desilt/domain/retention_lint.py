"""What a retention document says that its writer cannot have meant, or should say twice.

An *error* is refused, a *confirm* wants a yes, a *warning* is told. Disabled rules do not count.
"""

from collections.abc import Callable, Collection, Iterator
from itertools import permutations

from desilt.domain.lint import LEVELS, Lint
from desilt.domain.retention import Kind, Retention, RuleExpiry


def lint(
    retention: Retention,
    *,
    branches: Collection[str],
    default_branch: str,
    has_path: Callable[[str], bool] | None = None,
) -> list[Lint]:
    """Everything there is to say about ``retention``, the worst first."""
    found = [
        *_nothing(retention),
        *_unmatched(retention, branches, has_path),
        *_heads(retention, branches, default_branch),
        *_idle(retention),
    ]
    return sorted(found, key=lambda one: LEVELS.index(one.level))


def _nothing(retention: Retention) -> Iterator[Lint]:
    if not retention.expiries:
        yield Lint("warning", "", "every rule is disabled: nothing expires", "enable one, if that is not meant")


def _unmatched(
    retention: Retention, branches: Collection[str], has_path: Callable[[str], bool] | None
) -> Iterator[Lint]:
    """What is about nothing. A prefix is the branch first: a path alone is the commonest mistake."""
    for rule in retention.rules:
        if not rule.enabled:
            continue
        where, (name, path) = f"rule {rule.number}", rule.branch_and_path
        if not any(rule.path_on(branch) is not None for branch in branches):
            fact = f"no branch {f'is called {name!r}' if path is not None else f'begins with {name!r}'}"
            yield Lint("warning", where, fact, "write <branch>/<path prefix>, such as main/logs/")
        elif path and has_path is not None and not has_path(path):
            yield Lint("warning", where, f"no path begins with {path!r}", "look for a misspelling")


def _heads(retention: Retention, branches: Collection[str], default_branch: str) -> Iterator[Lint]:
    """What people see on a branch today goes one day, whether they still use it or not."""
    for one in retention.expiries:
        path = one.rule.branch_and_path[1] or ""
        if one.kind is not Kind.ALL or path:
            continue
        covered = [branch for branch in branches if one.rule.path_on(branch) is not None]
        if default_branch in covered:
            also = f" and {len(covered) - 1} more" if len(covered) > 1 else ""
            fact = f"'all' covers every path of {default_branch!r}{also}: what its head has goes too, once it is old"
            fix = "write noncurrent to keep what is current, or say yes"
            yield Lint("confirm", f"rule {one.rule.number}", fact, fix, f"all of {one.rule.prefix!r}")


def _idle(retention: Retention) -> Iterator[Lint]:
    """What another rule does no later: that one counts, since any one expires."""
    told: set[str] = set()
    for narrow, wide in permutations(reversed(retention.expiries), 2):
        covers = narrow.rule.prefix.startswith(wide.rule.prefix) and wide.kind in (Kind.ALL, narrow.kind)
        if covers and wide.span <= narrow.span and wide.id not in told:
            told.add(narrow.id)
            fact = f"{narrow.kind} after {_days(narrow)} days does nothing: {wide.id} expires all of that no later"
            yield Lint(
                "warning", f"rule {narrow.rule.number}", fact, f"take it out, or give it fewer than {_days(wide)} days"
            )


def _days(one: RuleExpiry) -> str:
    return f"{one.span.total_seconds() / 86_400:g}"
