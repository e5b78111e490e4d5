"""Commits, merges and reverts: the only ways a branch moves.

Each reads what it builds on, builds without holding any lock, and moves the
branch only if it is still where it was, and if nothing that it builds on was
collected meanwhile.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from desilt.domain.history import Commit, new_commit
from desilt.domain.times import SECOND
from desilt.errors import BadRequest, BranchMoved, Conflict, Dirty, NothingToCommit
from desilt.lake import bases, commit_time, commits, journal, refs, repositories, returned, staging
from desilt.lake.apply import apply
from desilt.lake.changes import AreasTaken, HeadMoved, TablesBack, committed
from desilt.lake.core import Core
from desilt.lake.dropping import By, dropping
from desilt.lake.merge import Strategy, merge
from desilt.lake.moves import moving, settle
from desilt.lake.partitions import new_uid
from desilt.lake.refs import LakeBranch
from desilt.lake.vanished import telling_gone
from desilt.objects import store_clock
from desilt.records.database import Transaction
from desilt.sstable.ranges import EMPTY

TRIES = 10


@dataclass(frozen=True, slots=True)
class Signature:
    """What people add to a commit."""

    message: str
    committer: str
    metadata: Mapping[str, str]


class Committer:
    """Moves the branches of one repository."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def commit(self, branch: str, signature: Signature, *, allow_empty: bool) -> Commit:
        """What is staged on ``branch``, sealed and made a commit."""
        settle(self._core)  # one that was cut off may be this very commit
        sealed = self._seal(branch, allow_empty=allow_empty)
        for _ in range(TRIES):
            begun = self._core.clock()
            with self._core.database.read() as tx:
                seen, parent = self._look(tx, branch)
                if sealed and not set(sealed) & set(seen.sealed):
                    raise Conflict(f"what was staged on {branch!r} was committed or reset by somebody else meanwhile")
                with telling_gone(self._core, parent.id):
                    metarange = apply(self._core.ranges, parent.metarange, staging.changes(tx, seen.sealed))
            if metarange == parent.metarange and not allow_empty:
                self._forget(branch, seen)
                raise NothingToCommit(branch)
            made = self._move(branch, seen, [parent], metarange, signature, begun=begun, taking=seen.sealed)
            if made:
                return made
        raise BranchMoved(branch, "committing")

    def merge(
        self,
        source: Commit,
        branch: str,
        names: tuple[str, str],
        signature: Signature,
        strategy: Strategy | None,
        *,
        base: Commit | None = None,
    ) -> Commit | None:
        """``source`` merged into ``branch``; None where the branch has all of it already.

        What the source changed counts from ``base``; by default, from where the two histories met.
        """
        for _ in range(TRIES):
            begun = self._core.clock()
            with self._core.database.read() as tx:
                seen, head = self._clean(tx, branch)
                met = bases.met(tx, self._core, source.id, head.id)
                if base is not None:
                    bases.check_chosen(tx, self._core, base, source.id, head.id)
            if met is not None and met.id == source.id:
                return None
            since = base or (met.usable(bases.MERGE) if met else None)
            with telling_gone(self._core, source.id, head.id, *([since.id] if since else [])):
                metarange = merge(
                    self._core.ranges,
                    base=since.metarange if since else EMPTY,
                    source=source.metarange,
                    destination=head.metarange,
                    strategy=strategy,
                    names=names,
                )
            made = self._move(branch, seen, [head, source], metarange, signature, begun=begun)
            if made:
                return made
        raise BranchMoved(branch, "merging")

    def revert(self, reverted: Commit, branch: str, signature: Signature, *, parent: int | None) -> Commit:
        """A commit that takes back what ``reverted`` did, seen from the parent number ``parent`` it was made from."""
        number, parents = parent or 1, len(reverted.made_from)
        if not parents:
            raise BadRequest(f"{reverted.id[:12]} is a first commit; there is nothing to go back to")
        if parents > 1 and parent is None:
            raise BadRequest(f"{reverted.id[:12]} is a merge; say with --parent which side to go back to (1 or 2)")
        if not 1 <= number <= parents:
            raise BadRequest(f"{reverted.id[:12]} has {parents} parents; --parent must be one of them")
        for _ in range(TRIES):
            begun = self._core.clock()
            with self._core.database.read() as tx:
                seen, head = self._clean(tx, branch)
                before = bases.parent(tx, self._core, reverted, number).usable(bases.REVERT)
            with telling_gone(self._core, reverted.id, before.id, head.id):
                metarange = merge(
                    self._core.ranges,
                    base=reverted.metarange,
                    source=before.metarange,
                    destination=head.metarange,
                    strategy=None,
                    names=(f"the state before {reverted.id[:12]}", branch),
                )
            if metarange == head.metarange:
                raise NothingToCommit(branch)
            made = self._move(branch, seen, [head], metarange, signature, begun=begun, using=[reverted, before])
            if made:
                return made
        raise BranchMoved(branch, "reverting")

    def _seal(self, branch: str, *, allow_empty: bool) -> tuple[str, ...]:
        """The staging areas to be committed, closed to writers."""
        with self._core.database.write() as tx:
            repositories.writing(tx, self._core.uid)  # who restores has seen where writes go, and stages there
            seen = refs.branch(tx, self._core.uid, branch, lock="alone")
            if not staging.is_empty(tx, (seen.token,)):
                refs.seal(tx, seen, token=new_uid(self._core.clock()))
                return seen.tokens
            if not allow_empty and staging.is_empty(tx, seen.sealed):
                raise NothingToCommit(branch)
            return seen.sealed

    def _look(self, tx: Transaction, branch: str) -> tuple[LakeBranch, Commit]:
        seen = refs.branch(tx, self._core.uid, branch)
        return seen, commits.fetching(tx, self._core.uid)(seen.head)

    def _clean(self, tx: Transaction, branch: str) -> tuple[LakeBranch, Commit]:
        seen, head = self._look(tx, branch)
        if not staging.is_empty(tx, seen.tokens):
            raise Dirty(branch)
        return seen, head

    def _move(
        self,
        branch: str,
        seen: LakeBranch,
        parents: Sequence[Commit],
        metarange: str,
        signature: Signature,
        *,
        begun: datetime,
        using: Sequence[Commit] = (),
        taking: tuple[str, ...] = (),
    ) -> Commit | None:
        """Compare and set: the new commit, if ``branch`` is still as it was ``seen``; else None, and nothing done.

        ``metarange`` was built since ``begun``, out of the ``parents`` and of what else it is ``using``.
        """
        commit_time.wait_for(self._core.clock, parents)
        commit_time.check(self._core.clock(), store_clock.store_time(self._core.store))
        needed = returned.look(self._core, metarange, begun=begun)
        with moving(self._core) as move:  # always before the branch: locks are taken in one order
            tx = move.tx
            now = refs.branch(tx, self._core.uid, branch, lock="alone")
            if (now.uid, now.head) != (seen.uid, seen.head) or now.sealed[len(now.sealed) - len(taking) :] != taking:
                return None
            commits.require(tx, self._core.uid, [one.id for one in (*parents, *using)])
            if back := returned.coming_back(tx, self._core, needed):
                move.do(TablesBack(back))
            made = self._new(tx, parents, metarange, signature)
            move.do(committed(made))
            move.do(HeadMoved(now.name, now.uid, made.id))
            if taking:
                move.do(AreasTaken(now.uid, taking))
            return made

    def _new(self, tx: Transaction, parents: Sequence[Commit], metarange: str, signature: Signature) -> Commit:
        at = commit_time.later_than(parents, self._core.clock)
        while True:
            made = new_commit(
                parents=parents,
                metarange=metarange,
                created_at=at,
                committer=signature.committer,
                message=signature.message,
                metadata=signature.metadata,
            )
            if commits.trace(tx, self._core.uid, made.id) is None:
                return made
            at += SECOND  # what was collected does not come back, even if a clock stands still

    def _forget(self, branch: str, seen: LakeBranch) -> None:
        """Drop sealed areas that change nothing; not those of a commit that was cut off, and may yet be made."""
        with self._core.database.write() as tx:
            repositories.writing(tx, self._core.uid)
            now = refs.branch(tx, self._core.uid, branch, lock="alone")
            if (now.head, now.sealed) == (seen.head, seen.sealed) and not journal.has_next(self._core, tx):
                at = self._core.clock()
                with dropping(tx, self._core.uid, now.uid, head=now.head, by=By.NOTHING, at=at) as drops:
                    for token in seen.sealed:
                        staging.drop(tx, token, drops)
                refs.take(tx, now.uid, seen.sealed, fresh=new_uid(at))
