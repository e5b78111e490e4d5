"""One repository of a lake: the Python face of everything `desilt lake` does."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from desilt.clock import ManualClock
from desilt.domain.entry import Entry
from desilt.domain.history import Commit
from desilt.domain.modes import Mode
from desilt.domain.names import check_text
from desilt.domain.times import check_date
from desilt.errors import BadRequest
from desilt.executors.executor import Executor
from desilt.lake import commit_time, links, manifest, ref_changes, refs, repositories, views
from desilt.lake.core import Core
from desilt.lake.editor import LakeEditor
from desilt.lake.gate import LakeGate
from desilt.lake.hard_delete import LakeHardDelete
from desilt.lake.heads import Committer
from desilt.lake.layout import LAYOUT
from desilt.lake.listing import PAGE, CommonPrefix
from desilt.lake.manifest import StagingManifest
from desilt.lake.merge import Strategy
from desilt.lake.orders import LakeOrders
from desilt.lake.partitions import Partitions
from desilt.lake.refs import LakeBranch, Target
from desilt.lake.said import Metadata, about, signature
from desilt.lake.source import LakeSource
from desilt.lake.views import PathChange
from desilt.lake.witness import LakeWitness
from desilt.lake.writes import Writer
from desilt.objects import store_clock
from desilt.records import removals as tombstones
from desilt.records.passwords import without_password
from desilt.records.removals import Tombstone
from desilt.repository.findings import Findings, Progress
from desilt.repository.snapshot import Tag


class LakeRepository:
    """Branches, tags, commits and objects under one name."""

    refuses: Mapping[str, str] = MappingProxyType({})
    assets = None
    modes: Sequence[Mode] = ("design",)
    reports = ""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.name, self.uid, self.default_branch, self.prefix = core.name, core.uid, core.default_branch, core.prefix
        self.database, self.store, self.ranges, self.clock = core.database, core.store, core.ranges, core.clock
        self._partitions = Partitions(core.database, core.clock, self._check_clock)
        self._committer = Committer(core)
        self._writer = Writer(core, self._partitions)
        # as the engine sees it
        self.uri, self.secret, self.grace, self.records = core.uri, core.secret, core.ticket_life, core.database
        self.argument = core.argument
        self.layout, self.gate, self.editor = LAYOUT, LakeGate(core), LakeEditor(core)
        self.orders, self.witness, self.hard_delete = LakeOrders(core), LakeWitness(core), LakeHardDelete(core)

    def source(self, executor: Executor) -> LakeSource:
        """The read side, with work done by ``executor``."""
        return LakeSource(self.core, executor)

    def fsck(self, *, deep: bool, progress: Progress) -> Findings:
        from desilt.lake.fsck import check  # which looks at what is defined here

        return check(self, deep=deep, progress=progress)

    @property
    def handle(self) -> "LakeHandle":
        return LakeHandle(without_password(self.database.url), self.store.uri, self.name)

    def _check_clock(self) -> None:
        commit_time.check(self.clock(), store_clock.store_time(self.store))

    # ---- refs

    def branches(self) -> list[LakeBranch]:
        with self.database.read() as tx:
            return refs.branches(tx, self.uid)

    def create_branch(self, name: str, source: str) -> LakeBranch:
        """A branch at the commit ``source`` points to; what is staged there stays there."""
        return ref_changes.create_branch(self.core, name, source)

    def delete_branch(self, name: str, *, force: bool = False) -> None:
        """The branch goes; its commits and objects stay until a job takes them."""
        ref_changes.delete_branch(self.core, name, force=force)

    def tags(self) -> list[Tag]:
        with self.database.read() as tx:
            return list(refs.tags(tx, self.uid))

    def create_tag(self, name: str, source: str) -> Tag:
        """A name for a commit, for good."""
        return ref_changes.create_tag(self.core, name, source)

    def delete_tag(self, name: str) -> None:
        ref_changes.delete_tag(self.core, name)

    def resolve(self, ref: str) -> Target:
        with self.database.read() as tx:
            return refs.resolve(tx, self.uid, ref)

    def generation(self) -> int:
        """How often refs have moved: equal numbers, equal refs."""
        with self.database.read() as tx:
            return repositories.generation(tx, self.uid)

    # ---- history

    def log(self, *tips: str) -> Iterator[Commit]:
        """Commits that ``tips`` (refs) descend from, children before parents."""
        return views.log(self.core, *tips)

    def commit(
        self, branch: str, message: str, *, committer: str = "", metadata: Metadata = None, allow_empty: bool = False
    ) -> Commit:
        """What is staged on ``branch``, made a commit."""
        return self._committer.commit(branch, signature(message, committer, metadata), allow_empty=allow_empty)

    def merge(
        self,
        source: str,
        destination: str,
        *,
        message: str = "",
        committer: str = "",
        metadata: Metadata = None,
        strategy: Strategy | None = None,
        base: str | None = None,
    ) -> Commit | None:
        """``source`` (any ref) merged into branch ``destination``; None where there is nothing to bring.

        With ``base``, what changed since that ref is brought; else, since the two histories met.
        """
        target = self.resolve(source)
        since = None if base is None else self.resolve(base).commit
        signed = signature(message or f"Merge {source} into {destination}", committer, metadata)
        return self._committer.merge(target.commit, destination, (source, destination), signed, strategy, base=since)

    def revert(
        self, branch: str, ref: str, *, parent: int | None = None, message: str = "", committer: str = ""
    ) -> Commit:
        """Take back one commit, by a new one on ``branch``."""
        commit = self.resolve(ref).commit
        signed = signature(message or f"Revert {commit.message!r} ({commit.id[:12]})", committer, None)
        return self._committer.revert(commit, branch, signed, parent=parent)

    def diff(self, left: str, right: str, *, since_base: bool = False, gone: bool = False) -> Iterator[PathChange]:
        """What turns the commit ``left`` into ``right``; or only what ``right`` did ``since_base``.

        An entry whose object a run has marked counts as absent, unless ``gone``.
        """
        return views.differences(self.core, left, right, since_base=since_base, gone=gone)

    def uncommitted(self, branch: str, *, prefix: str = "", gone: bool = False) -> Iterator[PathChange]:
        """What a commit of ``branch`` would change; what a run has marked counts as absent, unless ``gone``."""
        return views.uncommitted(self.core, branch, prefix=prefix, gone=gone)

    # ---- objects

    def stat(self, ref: str, path: str) -> Entry:
        """What ``path`` is at ``ref``."""
        return views.stat(self.core, ref, path)

    def get(self, ref: str, path: str, *, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """The bytes of an object, or ``length`` of them from ``start``, as they come."""
        return views.get(self.core, ref, path, start=start, length=length)

    def list(
        self, ref: str, prefix: str = "", *, delimiter: str = "", after: str = "", gone: bool = False
    ) -> Iterator[Entry | CommonPrefix]:
        """Entries below ``prefix`` in path order; with a delimiter, deeper ones folded.

        Those whose objects a run has removed are among them; where one has marked them, only with ``gone``.
        """
        return views.entries(self.core, ref, prefix, delimiter=delimiter, after=after, gone=gone)

    def put(
        self,
        branch: str,
        path: str,
        body: bytes | Iterable[bytes],
        *,
        content_type: str = "",
        metadata: Metadata = None,
    ) -> Entry:
        """Upload ``body`` and stage it at ``path``."""
        chunks = [body] if isinstance(body, bytes) else body
        return self._writer.put(branch, path, chunks, about(content_type, metadata))

    def copy(self, source_ref: str, source: str, branch: str, destination: str) -> Entry:
        """Inside a branch, a second entry on the same object; from elsewhere, a copy of the bytes."""
        if source_ref == branch:
            return self._writer.copy(branch, source, destination)
        return self._writer.copy_in(self.stat(source_ref, source), branch, destination)

    def move(self, branch: str, source: str, destination: str) -> Entry:
        return self._writer.copy(branch, source, destination, move=True)

    def remove(self, branch: str, path: str) -> None:
        self._writer.remove(branch, [path])

    def remove_below(self, branch: str, prefix: str) -> Iterator[str]:
        """Remove everything below ``prefix``, hidden entries too, page by page; the paths, as they go."""
        found = [entry.path for entry in self.list(branch, prefix, gone=True)]
        for at in range(0, len(found), PAGE):
            page = found[at : at + PAGE]
            self._writer.remove(branch, page)
            yield from page

    def reset(self, branch: str, *, path: str | None = None, prefix: str | None = None) -> int:
        """Forget staged changes: all, at ``path``, or below ``prefix``; how many."""
        return self._writer.reset(branch, path=path, prefix=prefix)

    # ---- objects that others upload

    def physical_address(self, branch: str, path: str) -> links.PhysicalAddress:
        """An address for a direct upload, and the token that links it."""
        return links.physical_address(self.core, self._partitions, branch, path)

    def link(
        self,
        branch: str,
        path: str,
        token: str,
        *,
        checksum: str | None = None,
        content_type: str = "",
        metadata: Metadata = None,
    ) -> Entry:
        """Stage what was uploaded to the address of ``token``; without a checksum, the object is read for it."""
        return links.link(self.core, branch, path, token, about(content_type, metadata), checksum=checksum)

    def stage(
        self,
        branch: str,
        path: str,
        uri: str,
        *,
        size: int,
        checksum: str,
        content_type: str = "",
        metadata: Metadata = None,
    ) -> Entry:
        """Stage an object that lies outside of the lake."""
        said = about(content_type, metadata)
        return links.stage_elsewhere(
            self.core, branch, path, uri, said, size=size, checksum=check_text("a checksum", checksum)
        )

    # ---- what collectors rely on

    def prepare_uncommitted(self, branch: str | None = None) -> StagingManifest:
        """Write down what is staged on ``branch``, or everywhere: one snapshot, as ranges and a metarange."""
        return manifest.prepare(self.core, branch)

    def tombstones(self, addresses: Iterable[str]) -> dict[str, Tombstone]:
        """Which of ``addresses`` a run has condemned."""
        with self.database.read() as tx:
            return tombstones.found_in(tx, self.uid, list(addresses))

    def count_gone(self, ref: str) -> int:
        """How many committed entries of ``ref`` point to objects that a run removed."""
        return views.count_gone(self.core, ref)

    def set_clock(self, now: datetime) -> None:
        """Move the clock of a repository that was made with a manual one; never back."""
        if not isinstance(self.clock, ManualClock):
            raise BadRequest(f"{self.name!r} goes by the system's clock, which is not ours to set")
        check_date(now)
        with self.database.write() as tx:
            if not repositories.set_clock(tx, self.uid, now):
                raise BadRequest(f"the clock of {self.name!r} stands later than {now}; it does not go back")
        self.clock.now = now


@dataclass(frozen=True, slots=True)
class LakeHandle:
    """Where a repository is, in words that can be sent to another process."""

    database: str  # without its password, which whoever opens it must know
    store: str
    name: str

    def __call__(self) -> LakeRepository:
        from desilt.lake.opening import opened  # which opens what is defined here

        return opened(self)
