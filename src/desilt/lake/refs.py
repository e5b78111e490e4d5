"""Branches and tags as rows, and what a ref expression points to.

``main`` is a branch with what is staged on it, ``main@`` its last commit alone;
a tag or a commit (any unambiguous beginning of its id) is itself; ``~N`` goes N
first parents up, ``^N`` to the Nth parent.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from desilt.domain.history import Commit
from desilt.domain.times import microseconds, moment
from desilt.errors import AlreadyExists, InvalidRef, NotFound
from desilt.lake import commits, repositories
from desilt.records.database import Row, Transaction
from desilt.repository import snapshot
from desilt.repository.snapshot import Tag

Lock = Literal["alone", "shared"]
EXPRESSION = re.compile(r"(?P<base>.+?)(?P<steps>([~^]\d*)*)(?P<committed>@?)", re.DOTALL)
STEP = re.compile(r"([~^])(\d*)")
SHORTEST_ID = 4


@dataclass(frozen=True, slots=True)
class LakeBranch(snapshot.Branch):
    """A name that moves, and the staging areas on top of its last commit."""

    token: str
    sealed: tuple[str, ...] = ()  # newest first

    @property
    def tokens(self) -> tuple[str, ...]:
        """Every staging area of the branch, newest first."""
        return (self.token, *self.sealed)


@dataclass(frozen=True, slots=True)
class Target:
    """What a ref expression means: a commit, and the branch whose staged changes lie on top, if any."""

    commit: Commit
    branch: LakeBranch | None


def branch(tx: Transaction, repository: str, name: str, *, lock: Lock | None = None) -> LakeBranch:
    """The branch as it is now, locked by ``lock`` until the transaction ends."""
    if lock is not None:
        tx.lock(f"{repository}/{name}", shared=lock == "shared")
    row = tx.one(f"{SELECT_BRANCH} AND name = ?", repository, name)
    if row is None:
        raise NotFound("branch", name, "see `desilt lake branches`")
    return _branch(tx, row)


def branch_by_uid(tx: Transaction, uid: str) -> LakeBranch:
    """The branch that no other can be taken for."""
    row = tx.one("SELECT name, uid, head, token, created_at FROM branches WHERE uid = ?", uid)
    if row is None:
        raise NotFound("branch with uid", uid)
    return _branch(tx, row)


def branches(tx: Transaction, repository: str) -> list[LakeBranch]:
    return [_branch(tx, row) for row in tx.rows(f"{SELECT_BRANCH} ORDER BY name", repository)]


def create_branch(tx: Transaction, repository: str, new: LakeBranch) -> None:
    made = tx.execute(
        "INSERT INTO branches (repository, name, uid, head, token, created_at) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        *(repository, new.name, new.uid, new.head, new.token, microseconds(new.created_at)),
    )
    if not made:
        raise AlreadyExists("branch", new.name)
    repositories.count(tx, repository, "branch", 1)


def delete_branch(tx: Transaction, repository: str, old: LakeBranch, *, at: datetime) -> None:
    commits.release(tx, repository, [old.head], at=at)
    tx.execute("DELETE FROM sealed WHERE branch = ?", old.uid)
    gone = tx.execute("DELETE FROM branches WHERE uid = ?", old.uid)
    tx.execute(
        "INSERT INTO former_branches (repository, uid, name, deleted_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        *(repository, old.uid, old.name, microseconds(at)),
    )
    repositories.count(tx, repository, "branch", -gone)


def former_branches(tx: Transaction, repository: str) -> dict[str, str]:
    """The names of branches that were deleted, by uid: what was uploaded to them may still lie there."""
    rows = tx.rows("SELECT uid, name FROM former_branches WHERE repository = ?", repository)
    return {str(uid): str(name) for uid, name in rows}


def sealed_for(tx: Transaction, branch_uid: str) -> set[str]:
    """The sealed staging areas of a branch, if there are any."""
    return {str(token) for (token,) in tx.rows("SELECT token FROM sealed WHERE branch = ?", branch_uid)}


def move(tx: Transaction, branch_uid: str, *, head: str) -> None:
    if not tx.execute("UPDATE branches SET head = ? WHERE uid = ?", head, branch_uid):
        raise NotFound("branch with uid", branch_uid)


def seal(tx: Transaction, sealing: LakeBranch, *, token: str) -> None:
    """Writes go to ``token`` from here on; what was open lies sealed below."""
    tx.execute(
        "INSERT INTO sealed (branch, position, token) VALUES (?, ?, ?)", sealing.uid, _next(tx, sealing), sealing.token
    )
    tx.execute("UPDATE branches SET token = ? WHERE uid = ?", token, sealing.uid)


def take(tx: Transaction, branch_uid: str, tokens: Sequence[str], *, fresh: str) -> None:
    """Forget staging areas that have become a commit; a branch that writes to one of them goes on with ``fresh``."""
    for token in tokens:
        tx.execute("DELETE FROM sealed WHERE branch = ? AND token = ?", branch_uid, token)
        tx.execute("UPDATE branches SET token = ? WHERE uid = ? AND token = ?", fresh, branch_uid, token)


def restart(tx: Transaction, fresh: LakeBranch, *, token: str) -> None:
    """Only ``token`` from here on, and nothing sealed."""
    tx.execute("DELETE FROM sealed WHERE branch = ?", fresh.uid)
    tx.execute("UPDATE branches SET token = ? WHERE uid = ?", token, fresh.uid)


def tags(tx: Transaction, repository: str) -> Iterator[Tag]:
    rows = tx.rows("SELECT name, target, created_at FROM tags WHERE repository = ? ORDER BY name", repository)
    return (Tag(name, target, moment(at)) for name, target, at in rows)


def has_branch(tx: Transaction, repository: str, name: str) -> bool:
    return tx.one(f"{SELECT_BRANCH} AND name = ?", repository, name) is not None


def has_tag(tx: Transaction, repository: str, name: str) -> bool:
    return tx.one("SELECT 1 FROM tags WHERE repository = ? AND name = ?", repository, name) is not None


def create_tag(tx: Transaction, repository: str, new: Tag) -> None:
    made = tx.execute(
        "INSERT INTO tags (repository, name, target, created_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        *(repository, new.name, new.target, microseconds(new.created_at)),
    )
    if not made:
        raise AlreadyExists("tag", new.name, "tags do not move; delete it first, or choose another name")
    repositories.count(tx, repository, "tag", 1)


def delete_tag(tx: Transaction, repository: str, name: str, *, at: datetime) -> None:
    commits.release(tx, repository, [tag.target for tag in tags(tx, repository) if tag.name == name], at=at)
    if not tx.execute("DELETE FROM tags WHERE repository = ? AND name = ?", repository, name):
        raise NotFound("tag", name, "see `desilt lake tags`")
    repositories.count(tx, repository, "tag", -1)


def resolve(tx: Transaction, repository: str, expression: str) -> Target:
    """What ``expression`` points to."""
    parts = EXPRESSION.fullmatch(expression)
    if parts is None:
        raise InvalidRef(expression, "it is empty")
    named = _named(tx, repository, expression)  # a tag's name may itself hold ~ or @
    if named is None:
        named = _named(tx, repository, parts["base"])
        if named is None:
            raise NotFound("ref", parts["base"], "see `desilt lake branches`, `tags` and `log`")
        if parts["steps"] or parts["committed"]:
            return Target(_climb(tx, repository, named.commit, expression, parts["steps"]), None)
    return named


def _named(tx: Transaction, repository: str, name: str) -> Target | None:
    fetch = commits.fetching(tx, repository)
    found = tx.one(f"{SELECT_BRANCH} AND name = ?", repository, name)
    if found is not None:
        on = _branch(tx, found)
        return Target(fetch(on.head), on)
    tag = tx.one("SELECT target FROM tags WHERE repository = ? AND name = ?", repository, name)
    if tag is not None:
        return Target(fetch(tag[0]), None)
    if len(name) < SHORTEST_ID or not re.fullmatch("[0-9a-f]{1,64}", name):
        return None
    ids = commits.by_prefix(tx, repository, name)
    if len(ids) > 1:
        raise InvalidRef(name, "more than one commit begins so")
    return Target(fetch(ids[0]), None) if ids else None


def _climb(tx: Transaction, repository: str, commit: Commit, expression: str, steps: str) -> Commit:
    fetch = commits.fetching(tx, repository)
    for kind, digits in STEP.findall(steps):
        number = int(digits) if digits else 1
        for _ in range(number if kind == "~" else 1):
            nth = 1 if kind == "~" else number
            if kind == "^" and number == 0:
                continue
            if len(commit.parents) < nth:
                raise NotFound("commit", expression, f"{commit.id[:12]} has {len(commit.parents)} parents")
            commit = fetch(commit.parents[nth - 1])
    return commit


SELECT_BRANCH = "SELECT name, uid, head, token, created_at FROM branches WHERE repository = ?"


def _branch(tx: Transaction, row: Row) -> LakeBranch:
    name, uid, head, token, created_at = row
    below = tx.rows("SELECT token FROM sealed WHERE branch = ? ORDER BY position DESC", uid)
    return LakeBranch(name, uid, head, moment(created_at), token, tuple(str(older[0]) for older in below))


def _next(tx: Transaction, of: LakeBranch) -> int:
    row = tx.one("SELECT COALESCE(MAX(position), 0) + 1 FROM sealed WHERE branch = ?", of.uid)
    assert row is not None
    return int(row[0])
