"""One upload on its way: its address, its ticket, and the bytes as they pass."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from desilt.domain.ticket import Ticket
from desilt.domain.times import microseconds
from desilt.errors import BranchMoved
from desilt.lake import refs, repositories, tickets
from desilt.lake.core import Core
from desilt.lake.refs import LakeBranch
from desilt.records import removals as tombstones
from desilt.records.database import Transaction


@dataclass(frozen=True, slots=True)
class About:
    """What people say of an object."""

    content_type: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


class Upload:
    """An object that is being written to ``address`` and will be staged on ``branch`` at ``path``."""

    def __init__(self, core: Core, branch: LakeBranch, path: str, address: str) -> None:
        self._core, self._branch, self._path, self.address = core, branch, path, address
        self.key = core.prefix + address
        self._renewed_at: datetime = core.clock()

    def metered(self, body: Iterable[bytes]) -> "Metered":
        """``body``, measured as it passes; its ticket is renewed while it does."""
        return Metered(self._renewing(body))

    def finish(self, tx: Transaction) -> LakeBranch:
        """In the staging transaction: the ticket still holds, nothing condemned the address, the branch is the same."""
        repositories.writing(tx, self._core.uid)
        on = refs.branch(tx, self._core.uid, self._branch.name, lock="shared")
        if on.uid != self._branch.uid:
            raise BranchMoved(on.name, "uploading: it was deleted and made anew")
        now, life = self._core.clock(), self._core.ticket_life
        tombstones.refuse_gone(tx, self._core.uid, self.address, self._path)
        tickets.settle(tx, self._core.uid, self.address, self._path, now=now, life=life)
        return on

    def _renewing(self, body: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in body:
            if self._core.clock() - self._renewed_at > self._core.ticket_life / 4:
                self._renew()
            yield chunk

    def _renew(self) -> None:
        now = self._core.clock()
        expires = microseconds(now + self._core.ticket_life)
        with self._core.database.write() as tx:
            repositories.writing(tx, self._core.uid)
            tombstones.refuse_gone(tx, self._core.uid, self.address, self._path)
            tickets.check(tx, self._core.uid, self.address, self._path, now=now, life=self._core.ticket_life)
            tickets.hold(tx, Ticket(self._core.uid, self._branch.uid, self._path, self.address, expires))
        self._renewed_at = now


class Metered:
    """Bytes on their way through, measured: size and MD5 (what lakeFS calls an etag)."""

    def __init__(self, body: Iterable[bytes]) -> None:
        self._body = body
        self.size = 0
        self.md5 = hashlib.md5(usedforsecurity=False)

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._body:
            self.size += len(chunk)
            self.md5.update(chunk)
            yield chunk
