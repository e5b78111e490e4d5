"""History of an Icechunk repository, changed in place: by one file in format 2, by several in format 1."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial

from desilt.errors import HeldSince
from desilt.icechunk.core import IcechunkCore
from desilt.icechunk.edits import edited_files, edited_repo
from desilt.icechunk.edits.editing import Decided, EditTurn, decided, wait
from desilt.icechunk.edits.repo_change import RepoChange, RepoOperation
from desilt.icechunk.history import history
from desilt.records import holds
from desilt.records.holds import HoldKind
from desilt.records.locks import Lock
from desilt.repository.editor import Edits, GoingRef
from desilt.repository.gate import Reliance
from desilt.repository.snapshot import Revision, Snapshot

DELETIONS = {"tag": RepoOperation.TAG_DELETED, "branch": RepoOperation.BRANCH_DELETED}


class IcechunkEditor:
    """Of one repository, of the format it had when it was opened."""

    def __init__(self, core: IcechunkCore, *, pause: Callable[[int], None] = wait) -> None:
        self._core, self._pause = core, pause

    def edit(
        self, lock: Lock, since: Revision, relies_on: Reliance, decide: Callable[[Snapshot], Edits]
    ) -> tuple[Snapshot, Mapping[str, str]]:
        """All at once in format 2; in format 1 edits before refs, the oldest first. Done twice, it is done once."""
        turn = EditTurn(self._core, lock, lock.run, since, relies_on, self._pause)
        made = self._made(turn, decide, RepoOperation.EXPIRED)
        return made.seen, made.fates

    def delete_refs(
        self, lock: Lock, run: str, refs: Sequence[GoingRef], since: Revision, relies_on: Reliance
    ) -> Mapping[str, str]:
        """What became of each, one by one. Done twice, it is done once."""
        turn, fates = EditTurn(self._core, lock, run, since, relies_on, self._pause), dict[str, str]()
        for one in refs:
            fates |= self._made(turn, partial(_only, one), DELETIONS[one.kind]).fates
        return fates

    def _made(self, turn: EditTurn, decide: Callable[[Snapshot], Edits], operation: RepoOperation) -> Decided:
        if self._core.format == 1:
            return edited_files.edited(turn, lambda whole: decided(turn, whole, decide(whole)))
        made: list[Decided] = []

        def change(whole: Snapshot) -> RepoChange | None:
            made.append(decided(turn, whole, decide(whole)))
            return _change(made[-1], operation)

        edited_repo.replaced(turn, change)
        return made[-1]

    def take(
        self, lock: Lock, run: str, ids: Sequence[str], since: Revision, at: datetime, released_since: datetime | None
    ) -> None:
        """Out of the list of format 2, all at once. Format 1 has none: there a snapshot is taken with its file.

        Nobody writes down there when a ref left a commit, so of ``released_since`` only holds that lapsed are known.
        """
        turn = EditTurn(self._core, lock, run, since, Reliance(at, at), self._pause)
        if self._core.format == 1:
            edited_files.refuse_upgraded(turn)
            return

        def change(whole: Snapshot) -> RepoChange | None:
            turn.check()
            self._check_holds(run, since)
            stay = whole.staying(ids, self._lapsed(released_since))
            going = frozenset(name for name in ids if name in whole.commits and name not in stay)
            return RepoChange(RepoOperation.GARBAGE_COLLECTED, taken=going) if going else None

        edited_repo.replaced(turn, change)

    def _check_holds(self, run: str, since: Revision) -> None:
        with self._core.records.read() as tx:
            if any(hold.kind is HoldKind.PREFIX for hold in holds.since(tx, self._core.uid, since.number)):
                raise HeldSince(run)

    def _lapsed(self, since: datetime | None) -> set[str]:
        if since is None:
            return set()
        with self._core.records.read() as tx:
            every = [hold for hold in holds.every(tx, self._core.uid) if hold.kind is HoldKind.REF]
        return {hold.value for hold in every if hold.until is not None and since <= hold.until}

    def there(self, ids: Sequence[str]) -> set[str]:
        return set(ids) & history(self._core.store).seen.commits.keys()


def _only(one: GoingRef, _: Snapshot) -> Edits:
    return Edits(refs=[one])


def _change(made: Decided, operation: RepoOperation) -> RepoChange | None:
    if not made.does:
        return None
    parents = {name: new for name, (_, new) in made.parents.items()}
    branches, tags = (frozenset(one.name for one in made.going if one.kind == kind) for kind in ("branch", "tag"))
    return RepoChange(operation, parents, made.released, branches, tags)
