"""Branches that a policy removes: how long nobody has worked on each, and whether anything protects it."""

from datetime import datetime

from desilt.domain.policy import Policy
from desilt.domain.stale import Activity, stale
from desilt.records.holds import HoldKind
from desilt.repository.editor import GoingRef
from desilt.repository.snapshot import Branch, Snapshot


def stale_branches(seen: Snapshot, policy: Policy, now: datetime) -> tuple[GoingRef, ...]:
    """Those of ``seen``, read with the uses of its branches."""
    if not policy.branches:
        return ()
    going = stale([_activity(seen, branch) for branch in seen.branches], policy.branches, now)
    for name in _needed(seen, set(going)):
        del going[name]
    return tuple(
        GoingRef("branch", branch.name, branch.uid, branch.head, going[branch.name])
        for branch in seen.branches
        if branch.name in going
    )


def _needed(seen: Snapshot, going: set[str]) -> set[str]:
    """Branches among ``going`` without which a commit that somebody holds would be reached by none."""
    gone = sum(1 << place for place, branch in enumerate(seen.branches) if branch.name in going)
    held = {hold.value for hold in seen.held(HoldKind.REF)}
    lonely = [bits for name in held if (bits := seen.bits.get(name, 0)) and not bits & ~gone]
    return {branch.name for place, branch in enumerate(seen.branches) if any(bits >> place & 1 for bits in lonely)}


def _activity(seen: Snapshot, branch: Branch) -> Activity:
    use = seen.uses[branch.name]
    uploads = [use.last_upload] if use.last_upload else []
    last = max([branch.created_at, seen.commits[branch.head].created_at, *uploads])
    return Activity(branch.name, branch.created_at, last, use.protects)
