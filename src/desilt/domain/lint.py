"""What a policy says that its writer cannot have meant, or should say twice.

An *error* is refused, a *confirm* wants a yes, a *warning* is told. Disabled rules
do not count. Rules are compared on every branch there is, on those their entries
name or could match, and on any other branch: tomorrow's.

Of rules that overlap, any one removes. So a narrower prefix with a *longer* period
keeps nothing: the wider rule has removed it by then, and what was meant is a keep
rule. Where the wider rule is ``noncurrent_only`` and the narrower is not, the
narrower still does what the wider does not, and removes what heads hold: a sane
policy (old versions go after a month, below ``tmp/`` all goes after a quarter),
which is told as a warning.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import permutations
from typing import Literal

from desilt.domain.cutoffs import WILDCARD, days_for
from desilt.domain.policy import Policy, Rule

Level = Literal["error", "confirm", "warning"]
LEVELS: tuple[Level, ...] = ("error", "confirm", "warning")
OTHER = "…"  # a name that no branch can have, and only a wildcard matches


@dataclass(frozen=True, slots=True)
class Lint:
    """One thing to say about a policy."""

    level: Level
    rule: str  # its id, or where it stands: "branches 2"; "" is the policy as a whole
    fact: str
    fix: str
    about: str = ""  # besides the rule, what it is about: a fact may be told otherwise as branches come and go

    @property
    def key(self) -> str:
        """What somebody who agreed to it has agreed to."""
        return f"{self.rule}: {self.about}"


def lint(
    policy: Policy,
    *,
    branches: Collection[str],
    default_branch: str | None = None,
    has_path: Callable[[str], bool] | None = None,
    has_glob: Callable[[str], bool] | None = None,
) -> list[Lint]:
    """Everything there is to say about ``policy``, the worst first.

    ``has_path`` and ``has_glob`` tell whether any path of the repository begins with a
    prefix or matches a glob; without them nobody is told what matches nothing.
    """
    rules = [rule for rule in policy.rules if rule.enabled]
    names = [*sorted(branches), *sorted({*_witnesses(rules)}.difference(branches)), OTHER]
    days = {rule.id: [days_for(rule, name) for name in names] for rule in rules}
    found = [
        *_overlaps(rules, names, days, set(branches)),
        *_idle_keeps(policy, has_path, has_glob),
        *_unmatched(rules, branches, has_path),
        *_everything(rules, branches),
        *_branch_rules(policy, branches, default_branch),
    ]
    return sorted(found, key=lambda one: LEVELS.index(one.level))


def _overlaps(
    rules: list[Rule], names: list[str], days: dict[str, list[int | None]], branches: set[str]
) -> Iterator[Lint]:
    """Rules that another one makes void, on some branches or on all."""
    shadowed: set[str] = set()
    for narrow, wide in permutations(reversed(rules), 2):  # of two that say the same, the later one is told
        if not narrow.prefix.startswith(wide.prefix):
            continue
        pairs = list(zip(names, days[narrow.id], days[wide.id], strict=True))
        longer = [(name, n, w) for name, n, w in pairs if n is not None and w is not None and n > w]
        covered = [(n, w) for _, n, w in pairs if n is not None]
        counts = narrow.noncurrent_only or not wide.noncurrent_only  # wherever the narrow one counts
        idle = counts and bool(covered) and all(w is not None and w <= n for n, w in covered)
        if longer and narrow.prefix != wide.prefix:
            yield _longer(narrow, wide, longer, counts, branches)
        elif idle and not shadowed & {narrow.id, wide.id}:
            shadowed.add(narrow.id)
            fact = f"rule {wide.id!r} removes all that it removes, no later, wherever it applies"
            yield Lint("warning", narrow.id, fact, f"take it out, or give it fewer days than {wide.id!r}")


def _longer(narrow: Rule, wide: Rule, longer: list[tuple[str, int, int]], counts: bool, branches: set[str]) -> Lint:
    name, slow, fast = longer[0]
    where = "any other branch" if name == OTHER else repr(name) if name in branches else f"a branch such as {name!r}"
    place = f"on {where}{f' and {len(longer) - 1} more' if len(longer) > 1 else ''}"
    other = f"rule {wide.id!r} (prefix {wide.prefix!r})"
    if counts:
        fact = f"{place} it waits {slow} days, but {other} has removed all of it after {fast}"
        keep = json.dumps({"keep": [{"prefix": narrow.prefix}]}, ensure_ascii=False)
        return Lint(
            "error", narrow.id, fact, f"to keep it, write {keep}; else give it at most {fast} days there", wide.id
        )
    fact = f"{place} it waits {slow} days, but {other} removes what is not current after {fast}"
    return Lint("warning", narrow.id, fact, f"nothing, if only what is current was meant to wait {slow} days")


def _idle_keeps(
    policy: Policy, has_path: Callable[[str], bool] | None, has_glob: Callable[[str], bool] | None
) -> Iterator[Lint]:
    for keep in policy.keep:
        for kind, said, has in (("prefix", keep.prefix, has_path), ("glob", keep.glob, has_glob)):
            if said is not None and has is not None and not has(said):
                fact = f"no path matches its {kind} {said!r}: it keeps nothing"
                yield Lint("error", keep.id, fact, "mend or remove it", said)


def _unmatched(rules: list[Rule], branches: Collection[str], has_path: Callable[[str], bool] | None) -> Iterator[Lint]:
    """What matches nothing. An entry that grants a branch *more* days is a keep rule at heart, and wants a yes."""
    for rule in rules:
        if has_path is not None and not has_path(rule.prefix):
            yield Lint("warning", rule.id, f"no path begins with {rule.prefix!r}", "look for a misspelling")
        for entry, days in rule.branch_days.items():
            if entry not in branches and not _matches(entry, branches):
                protects = rule.days is not None and days > rule.days
                more = f", so its {days} days protect nothing and {rule.days} apply" if protects else ""
                fact = f"branch_days names {entry!r}, which matches no branch{more}"
                level: Level = "confirm" if protects else "warning"
                yield Lint(level, rule.id, fact, "look for a misspelling", f"branch {entry}")


def _everything(rules: list[Rule], branches: Collection[str]) -> Iterator[Lint]:
    """On every branch there is, whatever it holds now will go one day."""
    whole = [rule for rule in rules if rule.prefix == "" and not rule.noncurrent_only]
    if branches and all(any(days_for(rule, branch) is not None for rule in whole) for branch in branches):
        names = ", ".join(repr(rule.id) for rule in whole)
        fact = f"{names} cover every path of every branch: what the heads hold goes too, once it is old enough"
        fix = 'write "noncurrent_only": true to keep what is current, or say yes'
        yield Lint("confirm", "", fact, fix, f"everything, by {names}")


def _branch_rules(policy: Policy, branches: Collection[str], default: str | None) -> Iterator[Lint]:
    for number, rule in enumerate(policy.branches, 1):
        found = _matches(rule.match, branches)
        if not found:
            yield Lint("warning", f"branches {number}", f"{rule.match!r} matches no branch", "look for a misspelling")
        elif found == [default]:
            fact = f"{rule.match!r} matches only {default!r}, the default branch, which is never removed"
            yield Lint("warning", f"branches {number}", fact, "match other branches, or take it out")


def _matches(glob: str, branches: Iterable[str]) -> list[str]:
    return [branch for branch in branches if branch == glob or fnmatchcase(branch, glob)]


def _witnesses(rules: list[Rule]) -> Iterator[str]:
    """Names that are not branches yet, on which entries of different rules could meet."""
    entries = {entry for rule in rules for entry in rule.branch_days}
    globs = [entry for entry in entries if WILDCARD.search(entry)]
    yield from entries.difference(globs)
    for glob in globs:
        yield _filled(glob)
    for left, right in permutations(globs, 2):  # dev-* and *-tmp meet in dev-x-tmp
        yield _filled(WILDCARD.split(left)[0] + "*" + WILDCARD.split(right)[-1])


def _filled(glob: str) -> str:
    return WILDCARD.sub(lambda found: found[0].strip("[]!")[:1] if found[0][0] == "[" else "x", glob)
