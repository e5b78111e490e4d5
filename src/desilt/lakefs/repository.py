"""A repository of a lakeFS server, as the engine sees one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from desilt.domain.modes import Mode
from desilt.executors.executor import Executor
from desilt.lakefs import fsck, history
from desilt.lakefs.core import PREFIX, LakefsCore
from desilt.lakefs.editor import LakefsEditor
from desilt.lakefs.gate import LakefsGate
from desilt.lakefs.layout import LAYOUT
from desilt.lakefs.orders import LakefsOrders
from desilt.lakefs.settings import Settings
from desilt.lakefs.source import LakefsSource
from desilt.lakefs.witness import LakefsWitness
from desilt.records.locks import Lock
from desilt.records.passwords import without_password
from desilt.repository.findings import Findings, Progress
from desilt.repository.graced import keeper
from desilt.repository.hard_delete import HardDelete
from desilt.repository.lease import Keeper

REFUSED = {
    "expire": "a lakeFS server lets nobody change its commits, so its history cannot be made shorter; "
    "`desilt gc run --rules server` frees what its rules let go",
    "collect": "a lakeFS server lets nobody take its commits away; `desilt gc run --rules server` frees what only old "
    "commits have",
    "retention": "a lakeFS server has no marks that would hide an object before it goes; use `desilt lifecycle`, "
    "which moves to the trash",
    "harddelete": "a lakeFS server does not tell when the last that pointed to an object goes; use `desilt gc`",
    "lake": "`desilt lake` works with lakes of desilt's own; branches, commits and objects of a lakeFS server are for "
    "`lakectl`, and `desilt lakefs import` copies them into a lake",
}
"""Jobs, and other commands, that cannot be done there, and why."""


class LakefsRepository:
    """One repository of a server, its objects where the server keeps them, its records in a database of ours."""

    hard_delete: HardDelete | None = None
    refuses: Mapping[str, str] = REFUSED
    assets = None
    modes: Sequence[Mode] = ("design",)
    reports = "_lakefs/retention/gc/"
    prefix = PREFIX
    layout = LAYOUT

    def __init__(self, core: LakefsCore, settings: Settings) -> None:
        self._core, self._settings = core, settings
        self.name, self.uid, self.default_branch = core.name, core.uid, core.default_branch
        self.store, self.clock, self.records = core.store, core.clock, core.records
        self.secret, self.grace = core.secret, core.grace
        self.uri = _shown(core)
        self.gate, self.editor, self.orders = LakefsGate(core), LakefsEditor(core), LakefsOrders(core)
        self.witness = LakefsWitness(core)

    @property
    def argument(self) -> str:
        scheme, _, rest = self._settings.endpoint.partition("://")
        return f"lakefs+{scheme}://{rest}/{self.name}"

    def source(self, executor: Executor) -> LakefsSource:
        return LakefsSource(self._core, executor)

    def fsck(self, *, deep: bool, progress: Progress) -> Findings:  # noqa: ARG002
        return fsck.check(self._core, deep=deep)

    def commits_lost(self) -> int:
        """How many commits that were seen before the server has no longer."""
        return len(history.lost(self._core))

    def accept_history(self) -> None:
        """Let what the server has now be what it should have."""
        history.accept(self._core)

    def keeper(self, lock: Lock | None = None) -> Keeper:
        """The records of it, to whoever asks whether they count."""
        return keeper(self._core, lock)

    @property
    def handle(self) -> "LakefsHandle":
        return LakefsHandle(self._settings, self.store.uri, without_password(self.records.url))


def _shown(core: LakefsCore) -> str:
    """Where it is, as people can open it: of a local blockstore, the directory."""
    there = core.store.uri.partition("?")[0]
    return (there if there.startswith("file://") else core.place.uri).rstrip("/") + "/"


@dataclass(frozen=True, slots=True)
class LakefsHandle:
    """Where a repository is, in words that can be sent to another process; it finds secrets for itself."""

    settings: Settings
    store: str
    records: str

    def __call__(self) -> LakefsRepository:
        from desilt.lakefs.opening import opened  # which opens what is defined here

        return opened(self)
