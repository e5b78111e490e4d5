"""What every edit of an Icechunk repository looks at: whose turn it is, what people ordered, what became of refs."""

import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from desilt.domain.expiration import leaving
from desilt.errors import Conflict
from desilt.icechunk.core import PREFIX, IcechunkCore
from desilt.icechunk.history import MAIN
from desilt.icechunk.seen import PROTECTED
from desilt.records import edits, holds, locks
from desilt.records.holds import HoldKind
from desilt.records.locks import Lock
from desilt.repository import lease
from desilt.repository.editor import DELETED, Edits, GoingRef
from desilt.repository.gate import Reliance
from desilt.repository.graced import keeper
from desilt.repository.policy import check_policy
from desilt.repository.snapshot import Revision, Snapshot

TRIES = 20
SHORTEST, LONGEST = 0.05, 5.0  # seconds
HELD = "kept: a hold was made since, on a commit that it may reach"


def wait(tried: int) -> None:
    """Longer each time, and not as long as others."""
    time.sleep(min(LONGEST, SHORTEST * 1.6**tried) * random.uniform(0.5, 1))


@dataclass(frozen=True, slots=True)
class EditTurn:
    """One who edits, by which lock, and what they go by."""

    core: IcechunkCore
    lock: Lock
    run: str
    since: Revision
    relies_on: Reliance
    pause: Callable[[int], None] = wait

    def begin(self) -> None:
        """Refused, where our records do not count."""
        lease.check(lease.newest(self.core.store, PREFIX), keeper(self.core, self.lock))

    def check(self) -> bool:
        """Whether anybody held a commit since the plan; refused out of turn, or where the policy is another."""
        with self.core.records.write() as tx:
            locks.check(tx, self.lock)
            check_policy(tx, self.core.uid, self.run, self.relies_on)
            made = holds.since(tx, self.core.uid, self.since.number)
            return any(hold.kind is HoldKind.REF for hold in made)

    def still_counts(self, seen: Snapshot) -> bool:
        """Whether nobody has held anything since this was ``seen``; refused, where it is somebody else's turn."""
        with self.core.records.write() as tx:
            locks.check(tx, self.lock)
            return not any(holds.since(tx, self.core.uid, seen.revision.number))

    def announce(self) -> None:
        """Before anything is written: plans that were made until now are of a history that is over."""
        with self.core.records.write() as tx:
            locks.check(tx, self.lock)
            edits.begin(tx, self.core.uid, self.run, now=self.core.clock())

    def fate(self, seen: Snapshot, one: GoingRef, *, held: bool) -> str:
        """What is to become of a ref, as it is seen; :data:`DELETED` also of one that is gone."""
        found = state(seen, one)
        if found is None:
            return DELETED
        if found != (one.head, one.uid):
            return "kept: it has moved since" if one.kind == "branch" else "kept: it was made again since"
        if (one.kind, one.name) == ("branch", MAIN):
            return f"kept: {PROTECTED}"
        return HELD if held and one.kind == "branch" else DELETED


def state(seen: Snapshot, one: GoingRef) -> tuple[str, str] | None:
    """Where a ref is, and what tells it from others of its name; None: there is none."""
    if one.kind == "tag":
        return next(((tag.target, tag.uid) for tag in seen.tags if tag.name == one.name), None)
    return next(((branch.head, branch.uid) for branch in seen.branches if branch.name == one.name), None)


@dataclass(frozen=True, slots=True)
class Decided:
    """What is done to what was seen."""

    seen: Snapshot
    parents: dict[str, tuple[str, str]]  # by snapshot, oldest first: the one it has, and the one it gets
    going: tuple[GoingRef, ...]
    released: frozenset[str]
    fates: dict[str, str]

    @property
    def does(self) -> bool:
        return bool(self.parents or self.going or self.released)


def decided(turn: EditTurn, seen: Snapshot, wanted: Edits) -> Decided:
    """``wanted`` as they can be made by now: who is kept after all keeps its tip."""
    held = turn.check()
    fates = {(one.kind, one.name): turn.fate(seen, one, held=held) for one in wanted.refs}
    going = tuple(one for one in wanted.refs if fates[one.kind, one.name] == DELETED and state(seen, one))
    parents = {name: (_one(name, old), _one(name, new)) for name, old, new in wanted.parents}
    order = sorted(parents, key=lambda name: (seen.commits[name].created_at, name))
    tips = _tips(seen, going)
    released = leaving(seen.commits, {name: (new,) for name, (_, new) in parents.items()}, wanted.released, tips)
    told = {**wanted.spared, **{name: fate for (_, name), fate in fates.items()}}
    return Decided(seen, {name: parents[name] for name in order}, going, released, told)


def _tips(seen: Snapshot, going: Iterable[GoingRef]) -> set[str]:
    gone = {(one.kind, one.name) for one in going}
    tips = {branch.head for branch in seen.branches if ("branch", branch.name) not in gone}
    tips |= {tag.target for tag in seen.tags if ("tag", tag.name) not in gone}
    return tips | ({hold.value for hold in seen.held(HoldKind.REF)} & seen.commits.keys())


def _one(name: str, parents: tuple[str, ...]) -> str:
    if len(parents) != 1:
        raise Conflict(f"snapshot {name} cannot have {len(parents)} parents; plan again")
    return parents[0]
