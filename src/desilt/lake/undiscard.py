"""The undo for a mistaken reset: what hard delete has condemned, staged again where it was.

Only what nobody has claimed comes back: a worker that was thought dead may still delete
what it once claimed. And only where the path is as the drop left it: in the staging
areas, and in the head.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from desilt.domain.entry import decode_path, shown_path
from desilt.errors import BranchMoved, CommitGone, MissingTable, NotFound
from desilt.lake import commits, discards, dropped, fresh, refs, staging
from desilt.lake.core import Core
from desilt.lake.discards import DiscardRow
from desilt.lake.dropping import By
from desilt.lake.events import DiscardsRestored
from desilt.lake.moves import moving
from desilt.lake.refs import LakeBranch
from desilt.records import removals as tombstones
from desilt.records.database import Transaction
from desilt.records.removals import HARD_DELETE, State
from desilt.repository.hard_delete import Restaged, WantedBack

LEFT: Mapping[str, tuple[bool, bytes | None]] = {
    By.REMOVED: (True, None),  # a staged removal
    By.RESET: (False, None),
    By.NOTHING: (False, None),
}
"""What each way to drop an entry leaves staged at its path; others put something in its place."""
TRIES = 10


@dataclass(frozen=True, slots=True)
class SeenHeads:
    """What commits have where entries were dropped, now and then, as of some heads."""

    heads: Mapping[str, str]  # by the uid of the branch
    same: frozenset[tuple[str, bytes]]  # branch and path where both are the same


def restore(core: Core, wanted: WantedBack) -> Restaged:
    """Lift the tombstones of all that is ``wanted``, and stage the entries again, in one transaction."""
    for _ in range(TRIES):
        with core.database.read() as tx:
            rows = _chosen(tx, core.uid, wanted)
            on = {branch.uid: branch for branch in refs.branches(tx, core.uid)}
        seen = _look(core, rows, on)
        with moving(core, alone=True) as move:
            tx = move.tx
            now = {branch.uid: branch for branch in refs.branches(tx, core.uid)}
            if all(uid in now and now[uid].head == head for uid, head in seen.heads.items()):
                done = _restage(tx, core, _chosen(tx, core.uid, wanted), now, seen)
                if done.objects:
                    move.note(DiscardsRestored(done.objects))
                return done
    raise BranchMoved(wanted.branch or "a branch", "restoring what was staged there")


def _chosen(tx: Transaction, repository: str, wanted: WantedBack) -> list[DiscardRow]:
    """All paths of the objects that are wanted by one of them."""
    branch = None if wanted.branch is None else refs.branch(tx, repository, wanted.branch).uid
    rows = discards.of(tx, repository, wanted.addresses) if wanted.addresses else list(discards.every(tx, repository))
    meant = {
        row.address
        for row in rows
        if branch in (None, row.branch) and shown_path(decode_path(row.path)).startswith(wanted.prefix)
    }
    return [row for row in rows if row.address in meant]


def _look(core: Core, rows: Sequence[DiscardRow], on: Mapping[str, LakeBranch]) -> SeenHeads:
    """Read what heads have at the paths: before the transaction, for a slow store must not hold a lock."""
    heads = {row.branch: on[row.branch].head for row in rows if row.branch in on}
    same: set[tuple[str, bytes]] = set()
    for uid, head in heads.items():
        for then in {row.head for row in rows if row.branch == uid}:
            keys = sorted({row.path for row in rows if (row.branch, row.head) == (uid, then)})
            try:
                before, after = (_committed(core, commit, keys) for commit in (then, head))
            except (NotFound, CommitGone, MissingTable):
                continue  # nobody can tell any more
            same |= {(uid, key) for key, one, other in zip(keys, before, after, strict=True) if one == other}
    return SeenHeads(heads, frozenset(same))


def _committed(core: Core, commit: str, keys: Sequence[bytes]) -> list[bytes | None]:
    with core.database.read() as tx:
        metarange = commits.fetching(tx, core.uid)(commit).metarange
    return list(core.ranges.get_many(metarange, keys))


def _restage(
    tx: Transaction, core: Core, rows: Sequence[DiscardRow], on: Mapping[str, LakeBranch], seen: SeenHeads
) -> Restaged:
    stones = tombstones.found_in(tx, core.uid, sorted({row.address for row in rows}))
    free = {address: stone for address, stone in stones.items() if stone.state is State.DISCARDED}
    left = [row for row in rows if row.address in free]
    since = {address: stone.condemned_at for address, stone in free.items()}
    untouched = _untouched(tx, core.uid, left, since, on, seen)
    back = {row.address: free[row.address] for row in untouched}
    staging.put_back(tx, ((on[row.branch].token, row.path, row.value, row.address) for row in untouched))
    fresh.add_many(tx, core.uid, ((address, stone.size) for address, stone in back.items()))
    tombstones.lift(tx, core.uid, HARD_DELETE, back, State.RESTORED, at=core.clock())
    discards.forget(tx, core.uid, back)
    written = dict.fromkeys(shown_path(decode_path(row.path)) for row in left if row not in untouched)
    size = sum(stone.size for stone in back.values())
    return Restaged(len(back), size, tuple(written), len(stones) - len(free))


def _untouched(
    tx: Transaction,
    repository: str,
    rows: Sequence[DiscardRow],
    since: Mapping[str, datetime],
    on: Mapping[str, LakeBranch],
    seen: SeenHeads,
) -> set[DiscardRow]:
    """Those whose paths are as the drop left them: staged, committed, and not written and dropped again since."""
    same = [row for row in rows if row.by in LEFT and (row.branch, row.path) in seen.same]
    staged = {
        (uid, path): found
        for uid in {row.branch for row in same}
        for path, found in staging.find_many(tx, on[uid].tokens, [r.path for r in same if r.branch == uid]).items()
    }
    later = _dropped_later(tx, repository, rows, min(since.values(), default=None))
    return {
        row
        for row in same
        if staged.get((row.branch, row.path), (False, None)) == LEFT[row.by]
        and not any(at >= since[row.address] and address != row.address for at, address in later[row.branch, row.path])
    }


def _dropped_later(
    tx: Transaction, repository: str, rows: Iterable[DiscardRow], since: datetime | None
) -> dict[tuple[str, bytes], list[tuple[datetime, str]]]:
    """What was dropped where rows were, since the first of them; but for what was hidden by them."""
    hidden = {(row.address, row.path) for row in rows if row.by == By.HIDDEN}
    found: dict[tuple[str, bytes], list[tuple[datetime, str]]] = {(row.branch, row.path): [] for row in rows}
    for branch, path, address, at in dropped.each_since(tx, repository, since) if since is not None else ():
        if (branch, path) in found and (address, path) not in hidden:
            found[branch, path].append((at, address))
    return found
