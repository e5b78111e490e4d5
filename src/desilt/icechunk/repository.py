"""An Icechunk repository, as the engine sees one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from desilt.domain.modes import Mode
from desilt.executors.executor import Executor
from desilt.icechunk import fsck, seen
from desilt.icechunk.assets import IcechunkAssets
from desilt.icechunk.core import PREFIX, IcechunkCore
from desilt.icechunk.edits.editor import IcechunkEditor
from desilt.icechunk.gate import IcechunkGate
from desilt.icechunk.history import MAIN
from desilt.icechunk.layout import LAYOUT
from desilt.icechunk.orders import IcechunkOrders
from desilt.icechunk.source import IcechunkSource
from desilt.icechunk.witness import IcechunkWitness
from desilt.records.locks import Lock
from desilt.records.passwords import without_password
from desilt.repository.findings import Findings, Progress
from desilt.repository.graced import keeper
from desilt.repository.hard_delete import HardDelete
from desilt.repository.lease import Keeper

REFUSED = {
    "gc": "an Icechunk repository does not tell what sessions have written and not committed yet; `desilt collect run` "
    "frees that too, once it is old enough",
    "lifecycle": "a policy by paths would take chunks that snapshots still have; shorten history with `desilt expire` "
    "instead, and `desilt collect` frees what only old snapshots had",
    "retention": "an Icechunk repository has no marks that would hide a chunk before it goes; use `desilt expire` and "
    "`desilt collect`",
    "harddelete": "an Icechunk repository does not tell when the last that pointed to a chunk goes; use "
    "`desilt collect`",
    "lake": "`desilt lake` works with lakes of desilt's own; branches, tags and arrays of an Icechunk repository are "
    "for its own library",
}
"""Jobs, and other commands, that cannot be done there, why, and what to do instead."""


class IcechunkRepository:
    """One repository, in the place where its library keeps it, its records in a database of ours."""

    hard_delete: HardDelete | None = None
    refuses: Mapping[str, str] = REFUSED
    reports = ""
    prefix = PREFIX
    layout = LAYOUT
    default_branch = MAIN

    def __init__(self, core: IcechunkCore) -> None:
        self._core = core
        self.uid, self.secret, self.grace = core.uid, core.secret, core.grace
        self.store, self.clock, self.records = core.store, core.clock, core.records
        place = core.store.uri.partition("?")[0].rstrip("/")
        self.name, self.uri, self.argument = place.rpartition("/")[2], f"{place}/", f"icechunk+{place}"
        self.assets = IcechunkAssets(core)
        self.gate, self.orders, self.witness = IcechunkGate(core), IcechunkOrders(core), IcechunkWitness(core)
        self.editor = IcechunkEditor(core)

    @property
    def modes(self) -> Sequence[Mode]:
        """What the library of its format does, and the design document."""
        return ("v1", "design") if self.format == 1 else ("v2", "design")

    @property
    def format(self) -> int:
        """1 or 2, as it was when it was opened."""
        return self._core.format

    def source(self, executor: Executor) -> IcechunkSource:
        return IcechunkSource(self._core, executor)

    def fsck(self, *, deep: bool, progress: Progress) -> Findings:
        return fsck.check(self._core, deep=deep, progress=progress)

    def commits_lost(self) -> int:
        """None that anybody could know of: the library expires them, too."""
        return 0

    def accept_history(self) -> None:
        """What is there now is seen, if it is whole."""
        seen.read(self._core, self.clock())

    def keeper(self, lock: Lock | None = None) -> Keeper:
        """The records of it, to whoever asks whether they count."""
        return keeper(self._core, lock)

    @property
    def handle(self) -> "IcechunkHandle":
        return IcechunkHandle(self.store.uri, without_password(self.records.url))


@dataclass(frozen=True, slots=True)
class IcechunkHandle:
    """Where a repository is, in words that can be sent to another process; it finds secrets for itself."""

    store: str
    records: str

    def __call__(self) -> IcechunkRepository:
        from desilt.icechunk.opening import opened_there  # which opens what is defined here

        return opened_there(self)
