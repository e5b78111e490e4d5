"""History changed in place: other parents, refs that go, commits that are taken.

Whatever is done is decided again from what is there by then, in a transaction that
holds the repository alone; or before it, if nothing has moved since.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from desilt.errors import HeldSince, NotFound
from desilt.lake import commits, reader, refs, repositories
from desilt.lake.changes import BranchDeleted, CommitsCollected, HistoryEdited, TagDeleted
from desilt.lake.core import Core
from desilt.lake.moves import Move, intend, moving, moving_in
from desilt.records import holds, locks
from desilt.records.database import Transaction
from desilt.records.holds import HoldKind
from desilt.records.locks import Lock
from desilt.repository.editor import DELETED, Edits, GoingRef
from desilt.repository.gate import Reliance
from desilt.repository.policy import check_policy
from desilt.repository.snapshot import Revision, Snapshot

LOOKS = 10  # without holding refs still
PAGE = 5_000  # commits to a transaction


class LakeEditor:
    """Of one repository of a lake of our own."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def edit(
        self, lock: Lock, since: Revision, relies_on: Reliance, decide: Callable[[Snapshot], Edits]
    ) -> tuple[Snapshot, dict[str, str]]:
        """All of it in one transaction. Done twice, it is done once."""
        core, looks = self._core, 0
        while True:
            mark = intend(core)
            with core.database.read() as tx:
                seen = reader.read(tx, core, relies_on.at, uses=True)
            edits = decide(seen)
            with core.database.write() as tx:
                generation = repositories.condemning(tx, core.uid)
                locks.check(tx, lock)
                if generation != seen.revision.number and looks == LOOKS:  # refs move faster than that: hold them
                    seen = reader.read(tx, core, relies_on.at, uses=True)
                    edits = decide(seen)
                if generation == seen.revision.number:
                    with moving_in(tx, core, mark) as made:
                        return seen, self._edit(made, edits, since, relies_on)
            looks += 1

    def _edit(self, move: Move, edits: Edits, since: Revision, relies_on: Reliance) -> dict[str, str]:
        if edits.parents or edits.refs or edits.spared:
            move.do(HistoryEdited(tuple(edits.parents)))
        deleted = {one.name: self._delete(move, one, since, relies_on) for one in edits.refs}
        return {**edits.spared, **deleted}

    def delete_refs(
        self, lock: Lock, run: str, going: Sequence[GoingRef], since: Revision, relies_on: Reliance
    ) -> dict[str, str]:
        """What became of each: "deleted", or why it is kept after all. Done twice, it is done once."""
        fates = {}
        for one in going:
            with moving(self._core) as move:
                locks.check(move.tx, lock)
                check_policy(move.tx, self._core.uid, run, relies_on)
                fates[one.name] = self._delete(move, one, since, relies_on)
        return fates

    def _delete(self, move: Move, one: GoingRef, since: Revision, relies_on: Reliance) -> str:
        if one.kind == "tag":
            return self._delete_tag(move, one, relies_on)
        return self._delete_branch(move, one, since, relies_on)

    def _delete_tag(self, move: Move, one: GoingRef, relies_on: Reliance) -> str:
        tag = {tag.name: tag for tag in refs.tags(move.tx, self._core.uid)}.get(one.name)
        if tag is None:
            return DELETED
        if (tag.target, tag.uid) != (one.head, one.uid) or tag.created_at >= relies_on.made_at:
            return "kept: it was made again since"
        move.do(TagDeleted(one.name))
        return DELETED

    def _delete_branch(self, move: Move, one: GoingRef, since: Revision, relies_on: Reliance) -> str:
        core, tx = self._core, move.tx
        try:
            branch = refs.branch(tx, core.uid, one.name, lock="alone")
        except NotFound:
            return DELETED
        if (branch.uid, branch.head) != (one.uid, one.head):
            return "kept: it has moved since"
        if why := reader.protects(tx, core, branch):
            return f"kept: {why}"
        if any(hold.kind is HoldKind.REF for hold in holds.since(tx, core.uid, since.number)):
            return "kept: a hold was made since, on a commit that it may reach"
        used = reader.last_upload(tx, branch)
        if used is not None and used >= relies_on.made_at:
            return "kept: somebody uploads to it"
        move.do(BranchDeleted(branch.name, branch.uid, branch.head))
        return DELETED

    def take(
        self, lock: Lock, run: str, ids: Sequence[str], since: Revision, at: datetime, released_since: datetime | None
    ) -> None:
        """Page by page. From the transaction that takes a commit on, whoever asks for it is told that it is gone."""
        core, page, looks = self._core, 0, 0
        live, generation = set[str](), since.number
        while page * PAGE < len(ids):
            mark, rest = intend(core), ids[page * PAGE :]
            with core.database.write() as tx:
                now = repositories.condemning(tx, core.uid)
                locks.check(tx, lock)
                if now != generation and looks == LOOKS:  # refs move faster than that: hold them
                    live, generation = self._staying(tx, rest, at, released_since)
                if now == generation:
                    self._check_holds(tx, run, since)
                    self._take(tx, run, [name for name in rest[:PAGE] if name not in live], mark)
                    generation, page = repositories.generation(tx, core.uid), page + 1
                    continue
            with core.database.read() as tx:
                live, generation = self._staying(tx, rest, at, released_since)
            looks += 1

    def _staying(
        self, tx: Transaction, ids: Sequence[str], at: datetime, released_since: datetime | None
    ) -> tuple[set[str], int]:
        """The commits that stay by now, and the number of the revision that refs are at."""
        seen = reader.read(tx, self._core, at)
        released = reader.released_since(tx, self._core, released_since) if released_since else set[str]()
        return seen.staying(ids, released), seen.revision.number

    def _check_holds(self, tx: Transaction, run: str, since: Revision) -> None:
        if any(hold.kind is HoldKind.PREFIX for hold in holds.since(tx, self._core.uid, since.number)):
            raise HeldSince(run)

    def _take(self, tx: Transaction, run: str, ids: Sequence[str], mark: str) -> None:
        there = commits.there(tx, self._core.uid, ids)
        if there:
            with moving_in(tx, self._core, mark) as made:
                made.do(CommitsCollected(tuple(name for name in ids if name in there), run))

    def there(self, ids: Sequence[str]) -> set[str]:
        with self._core.database.read() as tx:
            return commits.there(tx, self._core.uid, ids)
