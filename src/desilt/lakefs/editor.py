"""Branches deleted through the server, each only if it is as it was seen. Commits are not ours to change there."""

from collections.abc import Sequence
from typing import NoReturn

from desilt.errors import BadRequest
from desilt.lakefs import history
from desilt.lakefs.core import LakefsCore
from desilt.records import holds, locks
from desilt.records.holds import HoldKind
from desilt.records.locks import Lock
from desilt.repository.editor import DELETED, GoingRef
from desilt.repository.gate import Reliance
from desilt.repository.policy import check_policy
from desilt.repository.snapshot import Revision

NO_EDITS = "a lakeFS server lets nobody change its commits; see `desilt lakefs export` for a lake where that works"


class LakefsEditor:
    """Of one repository of a server."""

    def __init__(self, core: LakefsCore) -> None:
        self._core = core

    def delete_refs(
        self, lock: Lock, run: str, refs: Sequence[GoingRef], since: Revision, relies_on: Reliance
    ) -> dict[str, str]:
        """What became of each. Between the last look and the deletion a commit may come: then it is held by its id."""
        fates = {}
        for one in refs:
            with self._core.records.write() as tx:
                locks.check(tx, lock)
                check_policy(tx, self._core.uid, run, relies_on)
                held = any(hold.kind is HoldKind.REF for hold in holds.since(tx, self._core.uid, since.number))
            fates[one.name] = "kept: a hold was made since, on a commit that it may reach" if held else self._go(one)
        return fates

    def _go(self, one: GoingRef) -> str:
        server = self._core.server
        if one.kind != "branch":
            return "kept: only branches are deleted there"
        head = server.head_of(one.name)
        if head is None:
            return DELETED
        if head != one.head:
            return "kept: it has moved since"
        if why := history.protects(self._core, one.name):
            return f"kept: {why}"
        server.delete_branch(one.name)
        return DELETED

    def edit(self, *_: object, **__: object) -> NoReturn:
        raise BadRequest(NO_EDITS)

    def take(self, *_: object, **__: object) -> NoReturn:
        raise BadRequest(NO_EDITS)

    def there(self, ids: Sequence[str]) -> set[str]:
        return set(ids) & history.read(self._core, self._core.clock()).commits.keys()
