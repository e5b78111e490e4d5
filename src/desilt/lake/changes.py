"""What a move can change: refs, commits, holds, policies, history.

Fields are what JSON can hold; times are microseconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from desilt.domain.address import uid
from desilt.domain.history import SHORT, Commit
from desilt.domain.times import microseconds, moment
from desilt.lake import commits, fresh, refs, repositories, staging
from desilt.lake.change import Change, Moment
from desilt.lake.dropping import By, dropping
from desilt.lake.refs import LakeBranch
from desilt.records import holds, policies, watermarks
from desilt.records import removals as tombstones
from desilt.records.database import Transaction
from desilt.records.holds import Hold, HoldKind
from desilt.records.removals import State
from desilt.repository.snapshot import Tag

GC = "gc"  # the job that must look at everything again once commits are gone


@dataclass(frozen=True, slots=True)
class RepositoryMade(Change):
    name: str
    default_branch: str

    def apply(self, tx: Transaction, move: Moment) -> None:
        """Its row is there before its journal is."""

    def __str__(self) -> str:
        return f"repository {self.name!r} made"


@dataclass(frozen=True, slots=True)
class Committed(Change):
    id: str
    parents: tuple[str, ...]
    metarange: str
    created_at: int
    committer: str
    message: str
    metadata: Mapping[str, str]
    generation: int

    def apply(self, tx: Transaction, move: Moment) -> None:
        commits.insert(tx, move.repository, self.commit)

    @property
    def commit(self) -> Commit:
        at, about = moment(self.created_at), dict(self.metadata)
        return Commit(
            self.id, tuple(self.parents), self.metarange, at, self.committer, self.message, about, self.generation
        )

    def __str__(self) -> str:
        return f"commit {self.id[:SHORT]} {self.message!r}"


def committed(one: Commit) -> Committed:
    at = microseconds(one.created_at)
    return Committed(one.id, one.parents, one.metarange, at, one.committer, one.message, one.metadata, one.generation)


@dataclass(frozen=True, slots=True)
class BranchMade(Change):
    name: str
    uid: str
    head: str
    token: str
    created_at: int

    def apply(self, tx: Transaction, move: Moment) -> None:
        made = LakeBranch(self.name, self.uid, self.head, moment(self.created_at), self.token)
        refs.create_branch(tx, move.repository, made)

    def __str__(self) -> str:
        return f"branch {self.name!r} made"


def branch_made(one: LakeBranch) -> BranchMade:
    return BranchMade(one.name, one.uid, one.head, one.token, microseconds(one.created_at))


@dataclass(frozen=True, slots=True)
class HeadMoved(Change):
    name: str
    uid: str
    head: str

    def apply(self, tx: Transaction, _move: Moment) -> None:
        refs.move(tx, self.uid, head=self.head)

    def __str__(self) -> str:
        return f"branch {self.name!r} moved to {self.head[:SHORT]}"


@dataclass(frozen=True, slots=True)
class AreasTaken(Change):
    """Staging areas, newest first, that have become a commit."""

    branch: str  # its uid
    tokens: tuple[str, ...]

    def apply(self, tx: Transaction, move: Moment) -> None:
        head, at = refs.branch_by_uid(tx, self.branch).head, move.again_at or move.at
        with dropping(tx, move.repository, self.branch, head=head, by=By.HIDDEN, at=at) as drops:
            if move.again_at is None:
                staging.take(tx, self.tokens, drops)
            else:  # what the commit took of what is staged here is not known
                for token in self.tokens:
                    staging.drop(tx, token, drops)
        fresh = uid(move.at, bytes.fromhex(move.mark))  # a restored branch may still write to one of them
        refs.take(tx, self.branch, self.tokens, fresh=fresh)

    def __str__(self) -> str:
        return f"{len(self.tokens)} staging areas committed"


@dataclass(frozen=True, slots=True)
class BranchDeleted(Change):
    releases: ClassVar[bool] = True
    name: str
    uid: str
    head: str

    def apply(self, tx: Transaction, move: Moment) -> None:
        gone = refs.branch_by_uid(tx, self.uid)
        at = move.again_at or move.at
        with dropping(tx, move.repository, self.uid, head=gone.head, by=By.BRANCH_DELETED, at=at) as drops:
            for token in gone.tokens:  # all of them with their branch
                staging.drop(tx, token, drops)
        refs.delete_branch(tx, move.repository, gone, at=move.at)

    def __str__(self) -> str:
        return f"branch {self.name!r} deleted"


@dataclass(frozen=True, slots=True)
class TagMade(Change):
    name: str
    target: str
    created_at: int

    def apply(self, tx: Transaction, move: Moment) -> None:
        refs.create_tag(tx, move.repository, Tag(self.name, self.target, moment(self.created_at)))

    def __str__(self) -> str:
        return f"tag {self.name!r} made"


@dataclass(frozen=True, slots=True)
class TagDeleted(Change):
    releases: ClassVar[bool] = True
    name: str

    def apply(self, tx: Transaction, move: Moment) -> None:
        refs.delete_tag(tx, move.repository, self.name, at=move.at)

    def __str__(self) -> str:
        return f"tag {self.name!r} deleted"


@dataclass(frozen=True, slots=True)
class HoldMade(Change):
    id: str
    kind: str
    value: str
    reason: str
    made_at: int
    until: int | None

    def apply(self, tx: Transaction, move: Moment) -> None:
        end = None if self.until is None else moment(self.until)
        made = Hold(self.id, HoldKind(self.kind), self.value, self.reason, moment(self.made_at), end, move.generation)
        holds.add(tx, move.repository, made)
        repositories.count(tx, move.repository, "hold", 1)

    def __str__(self) -> str:
        return f"hold {self.id} on {self.kind} {self.value!r}"


def hold_made(one: Hold) -> HoldMade:
    end = None if one.until is None else microseconds(one.until)
    return HoldMade(one.id, one.kind.value, one.value, one.reason, microseconds(one.made_at), end)


@dataclass(frozen=True, slots=True)
class HoldLifted(Change):
    releases: ClassVar[bool] = True
    id: str

    def apply(self, tx: Transaction, move: Moment) -> None:
        lifted = holds.remove(tx, move.repository, self.id)
        repositories.count(tx, move.repository, "hold", -1)
        if lifted.kind is HoldKind.REF:
            commits.release(tx, move.repository, [lifted.value], at=move.at)

    def __str__(self) -> str:
        return f"hold {self.id} lifted"


@dataclass(frozen=True, slots=True)
class PolicySet(Change):
    job: str
    document: Mapping[str, Any]
    agreed: tuple[str, ...]

    def apply(self, tx: Transaction, move: Moment) -> None:
        policies.write(tx, move.repository, self.job, self.document, self.agreed, at=move.at)

    def __str__(self) -> str:
        return f"policy of {self.job} set"


@dataclass(frozen=True, slots=True)
class HardDeleteSet(Change):
    """Hard delete is on, and waits so many microseconds; None: it is off, and nothing is fresh any more."""

    wait: int | None
    share: str

    def apply(self, tx: Transaction, move: Moment) -> None:
        repositories.set_hard_delete(tx, move.repository, self.wait, self.share)
        if self.wait is None:
            fresh.forget_all(tx, move.repository)

    def __str__(self) -> str:
        return f"hard delete {'off' if self.wait is None else 'on'}"


@dataclass(frozen=True, slots=True)
class HistoryEdited(Change):
    """Commits that get other parents: id, the parents they have, and those they get."""

    releases: ClassVar[bool] = True
    edits: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]

    def apply(self, tx: Transaction, move: Moment) -> None:
        repositories.edited_now(tx, move.repository)
        for commit, old, new in self.edits:
            if not commits.edit(tx, move.repository, commit, seen=old, parents=new):
                raise AssertionError(f"commit {commit} changed under a lock")
            commits.release(tx, move.repository, old, at=move.at)

    def __str__(self) -> str:
        return f"{len(self.edits)} commits edited"


@dataclass(frozen=True, slots=True)
class CommitsCollected(Change):
    releases: ClassVar[bool] = True
    ids: tuple[str, ...]
    run: str

    def apply(self, tx: Transaction, move: Moment) -> None:
        repositories.edited_now(tx, move.repository)
        commits.collect(tx, move.repository, self.ids, run=self.run, at=move.at)
        watermarks.forget(tx, move.repository, GC)

    def __str__(self) -> str:
        return f"{len(self.ids)} commits collected by run {self.run}"


@dataclass(frozen=True, slots=True)
class TablesBack(Change):
    """Ranges and metaranges that were collected, and that a new commit has again: run and address."""

    stones: tuple[tuple[str, str], ...]

    def apply(self, tx: Transaction, move: Moment) -> None:
        for run, address in self.stones:
            tombstones.lift(tx, move.repository, run, [address], State.RESTORED, at=move.at)

    def __str__(self) -> str:
        return f"{len(self.stones)} tables brought back"
