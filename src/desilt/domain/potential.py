"""The commits a lifecycle run must look into: those that may hold what the last run could not have removed.

An address goes only when *every* branch that reaches it lets it go. So a commit
may be passed over if on one of its branches nothing has changed for it: whatever
the rules let go there now, they let go in the last run that swept, which removed
it or put it among the *deferred*, looked at again in every run. :func:`eff` is the
date up to which that holds on a branch; a commit's entries are never younger than
the commit.

A run that passes over a commit for the sake of one branch has not applied its
rules to it on the others. Those are *behind*, and :class:`Last` remembers them:
otherwise a rule given to one branch, and in a later run to the other, would meet
two runs that each trust the branch that the other one skipped.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from desilt.domain.cutoffs import Cutoff, Cutoffs, decided
from desilt.errors import Unreadable

BEGINNING = datetime.min.replace(tzinfo=UTC)  # before every commit: nothing was applied
Branches = frozenset[str]
Applied = Mapping[str, Mapping[str, datetime]]  # branch → prefix → cutoff
Commits = Mapping[str, tuple[datetime, Branches]]  # what reach() and named() make; equal sets are one object


@dataclass(frozen=True, slots=True)
class Last:
    """What the last run that swept left behind for the next one."""

    table: tuple[Cutoff, ...]
    sets: tuple[Branches, ...]
    behind: tuple[Branches, ...]  # beside sets: the branches on which some commits of that set were passed over
    known: Mapping[str, int]  # every commit it saw, and which of the sets reached it


def applied(table: Sequence[Cutoff], branches: Iterable[str]) -> Applied:
    """What a run with this ``table`` applied, to each prefix on each branch.

    The earlier of the row that decided and the default row, as the seed has it: its
    commit on b1, b2 and b3 counts from the default's date, not from b2's later one.
    """
    default = decided(table, None)
    return {
        branch: {prefix: min(before, default.get(prefix, before)) for prefix, before in decided(table, branch).items()}
        for branch in branches
    }


def eff(branch: str, now: Cutoffs, last: Applied) -> datetime | None:
    """Up to when everything that the rules of ``now`` say on ``branch`` was applied; None: no rule covers it now.

    A rule for a wider prefix was applied to the narrower one too.
    """
    before = last.get(branch, {})
    return min(
        (
            max((before[wider] for wider in before if rule.prefix.startswith(wider)), default=BEGINNING)
            for rule in now.rules
            if now.before(rule, branch) is not None
        ),
        default=None,
    )


def potential(commits: Commits, last: Last | None, now: Cutoffs) -> set[str]:
    """The ids of the commits to look into; with no run before, all that a rule covers."""
    horizon = _Horizon(last, now)
    return {name for name, (at, branches) in commits.items() if horizon.calls_for(name, at, branches)}


def after(commits: Commits, last: Last | None, now: Cutoffs) -> Last:
    """What to remember once a run of these ``commits`` has swept and every planned object has an outcome."""
    horizon, numbers, passed, known = _Horizon(last, now), dict[Branches, int](), set[int](), dict[str, int]()
    for name, (at, branches) in commits.items():
        known[name] = numbers.setdefault(branches, len(numbers))
        if not horizon.calls_for(name, at, branches):
            passed.add(known[name])
    behind = tuple(horizon.behind(one) if number in passed else frozenset() for one, number in numbers.items())
    return Last(now.table, tuple(numbers), behind, known)


class _Horizon:
    """For each set of branches, decided once, the date from which its commits are looked into."""

    def __init__(self, last: Last | None, now: Cutoffs) -> None:
        self.now, self.known = now, last.known if last else {}
        self.numbers = {branches: number for number, branches in enumerate(last.sets)} if last else {}
        self.left = dict(zip(last.sets, last.behind, strict=True)) if last else {}
        before = applied(last.table if last else (), now.branches)
        self.effs = {branch: at for branch in now.branches if (at := eff(branch, now, before)) is not None}
        self.seen: dict[Branches, tuple[datetime | None, int]] = {}

    def calls_for(self, name: str, at: datetime, branches: Branches) -> bool:
        seen = self.seen.get(branches)
        if seen is None:
            since = max(self.by_branch(branches).values(), default=None)
            seen = self.seen[branches] = (since, self.numbers.get(branches, -1))
        since, number = seen
        return since is not None and (self.known.get(name) != number or at >= since)

    def by_branch(self, branches: Branches) -> dict[str, datetime]:
        left = self.left.get(branches, frozenset())
        return {one: BEGINNING if one in left else self.effs[one] for one in branches if one in self.effs}

    def behind(self, branches: Branches) -> Branches:
        dates = self.by_branch(branches)
        since = max(dates.values(), default=None)
        return frozenset(one for one, at in dates.items() if since is not None and at < since)


def reach(parents: Mapping[str, Sequence[str]], heads: Mapping[str, str]) -> dict[str, int]:
    """For every commit the branches that reach it, as bits: bit *i* is the *i*-th of ``sorted(heads)``.

    0 for a commit that no branch reaches. Equal numbers are one object.
    """
    bits = dict.fromkeys(parents, 0)
    for number, branch in enumerate(sorted(heads)):
        if heads[branch] not in bits:
            raise Unreadable(
                f"branch {branch!r} points to commit {heads[branch]}, which is not there; see `desilt fsck`"
            )
        bits[heads[branch]] |= 1 << number
    one: dict[int, int] = {}
    for name in _children_first(parents):
        found = bits[name] = one.setdefault(bits[name], bits[name])
        for parent in parents[name]:
            bits[parent] |= found
    return bits


def named(bits: Mapping[str, int], branches: Sequence[str]) -> dict[str, Branches]:
    """What :func:`reach` found, by name; ``branches`` in the order of the bits. Equal sets are one object."""
    sets = {number: from_bits(number, branches) for number in set(bits.values())}
    return {name: sets[number] for name, number in bits.items()}


def from_bits(bits: int, branches: Sequence[str]) -> Branches:
    return frozenset(branch for number, branch in enumerate(branches) if bits >> number & 1)


def _children_first(parents: Mapping[str, Sequence[str]]) -> Iterator[str]:
    waiting = dict.fromkeys(parents, 0)
    for name, above in parents.items():
        for parent in above:
            if parent not in waiting:
                raise Unreadable(f"commit {name} has parent {parent}, which is not there; see `desilt fsck`")
            waiting[parent] += 1
    ready = [name for name, children in waiting.items() if not children]
    done = 0
    while ready:
        name = ready.pop()
        done += 1
        yield name
        for parent in parents[name]:
            waiting[parent] -= 1
            if not waiting[parent]:
                ready.append(parent)
    if done != len(waiting):
        raise Unreadable(f"{len(waiting) - done} commits descend from themselves; see `desilt fsck`")
