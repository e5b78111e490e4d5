"""The undo for a mistaken reset: what hard delete has condemned, staged again where it was.

Only what nobody has claimed comes back: a worker that was thought dead may still delete
what it once claimed. And only where the path is as the drop left it: in the staging
areas, and in the head.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from desilt.domain.entry import decode_path, shown_path
from desilt.errors import BranchMoved, CommitGone, MissingTable, NotFound
from desilt.lake import commits, discards, fresh, refs, staging
from desilt.lake.core import Core
from desilt.lake.discards import DiscardRow
from desilt.lake.dropping import By, dropping
from desilt.lake.events import DiscardsRestored
from desilt.lake.moves import moving
from desilt.lake.refs import LakeBranch
from desilt.records import removals as tombstones
from desilt.records.database import Transaction
from desilt.records.removals import State, Tombstone
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
                    move.do(DiscardsRestored(done.objects))
                return done
    raise BranchMoved(wanted.branch or "a branch", "restoring what was staged there")


def _chosen(tx: Transaction, repository: str, wanted: WantedBack) -> list[DiscardRow]:
    branch = None if wanted.branch is None else refs.branch(tx, repository, wanted.branch).uid
    rows = discards.of(tx, repository, wanted.addresses) if wanted.addresses else discards.every(tx, repository)
    return [
        row
        for row in rows
        if branch in (None, row.branch) and shown_path(decode_path(row.path)).startswith(wanted.prefix)
    ]


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
    tx: Transaction, core: Core, rows: Iterable[DiscardRow], on: Mapping[str, LakeBranch], seen: SeenHeads
) -> Restaged:
    found = list(rows)
    stones = tombstones.found_in(tx, core.uid, sorted({row.address for row in found}))
    free = {address: stone for address, stone in stones.items() if stone.state is State.DISCARDED}
    back: dict[str, Tombstone] = {}
    written: list[str] = []
    for row in found:
        if row.address not in free:
            continue
        branch = on.get(row.branch)
        if branch is None or not _untouched(tx, core, row, branch, seen):
            written.append(shown_path(decode_path(row.path)))
            continue
        with dropping(
            tx, core.uid, branch.uid, head=branch.head, by=By.OVERWRITTEN, at=core.clock()
        ) as drops:  # nothing is
            staging.stage(tx, branch.token, row.path, row.value, drops)
        back[row.address] = free[row.address]
    for address, stone in back.items():
        fresh.add(tx, core.uid, address, stone.size)
        tombstones.lift(tx, core.uid, stone.run, [address], State.RESTORED, at=core.clock())
    discards.forget(tx, core.uid, back)
    late = len(stones) - len(free)
    return Restaged(len(back), sum(stone.size for stone in back.values()), tuple(dict.fromkeys(written)), late)


def _untouched(tx: Transaction, core: Core, row: DiscardRow, branch: LakeBranch, seen: SeenHeads) -> bool:
    """Whether the path is as the drop left it: staged, committed, and not written and dropped again since."""
    if row.by not in LEFT or (row.branch, row.path) not in seen.same:
        return False
    if staging.find(tx, branch.tokens, row.path) != LEFT[row.by]:
        return False
    since = tx.one(
        "SELECT 1 FROM dropped AS later JOIN dropped AS mine ON mine.repository = later.repository "
        "AND mine.branch = later.branch AND mine.path = later.path WHERE mine.repository = ? AND mine.branch = ? "
        "AND mine.path = ? AND mine.address = ? AND later.address <> mine.address "
        "AND later.dropped_at >= mine.dropped_at LIMIT 1",
        *(core.uid, row.branch, row.path, row.address),
    )
    return since is None
