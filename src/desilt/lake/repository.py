"""One repository of a lake: the Python face of everything `desilt lake` does."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from desilt.clock import Clock
from desilt.domain.address import repository_prefix
from desilt.domain.entry import AddressType, Entry, encode_path
from desilt.domain.history import Commit, merge_base, walk
from desilt.domain.names import check_branch, check_tag, check_text
from desilt.errors import AlreadyExists, BadRequest, Dirty, NotFound
from desilt.lake import commits, refs, staging
from desilt.lake.committing import Committer, Signature
from desilt.lake.database import Database, Transaction
from desilt.lake.diff import diff
from desilt.lake.listing import PAGE, CommonPrefix, View, listing, lookup
from desilt.lake.merge import Strategy
from desilt.lake.partitions import Partitions, new_uid
from desilt.lake.ranges import EMPTY, RAGGEDNESS, Ranges
from desilt.lake.refs import Branch, Tag, Target
from desilt.lake.writing import Writer
from desilt.objects.store import ObjectStore
from desilt.sstable.values import decode_entry


@dataclass(frozen=True, slots=True)
class Change:
    """A path that differs between two states."""

    path: str
    before: Entry | None
    after: Entry | None

    @property
    def kind(self) -> Literal["added", "removed", "changed"]:
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


class Repository:
    """Branches, tags, commits and objects under one name."""

    def __init__(
        self,
        database: Database,
        store: ObjectStore,
        *,
        name: str,
        uid: str,
        default_branch: str,
        clock: Clock,
        raggedness: int = RAGGEDNESS,
    ) -> None:
        self.name, self.uid, self.default_branch = name, uid, default_branch
        self.prefix = repository_prefix(uid)
        self.database, self.store, self.clock = database, store, clock
        self.ranges = Ranges(store, self.prefix, raggedness=raggedness)
        self._committer = Committer(database, uid, self.ranges, clock)
        self._writer = Writer(database, store, uid, self.ranges, Partitions(database, clock), clock)

    # ---- refs

    def branches(self) -> list[Branch]:
        with self.database.read() as tx:
            return refs.branches(tx, self.uid)

    def create_branch(self, name: str, source: str) -> Branch:
        """A branch at the commit ``source`` points to; what is staged there stays there."""
        check_branch(name)
        with self.database.write() as tx:
            target = refs.resolve(tx, self.uid, source)
            if any(tag.name == name for tag in refs.tags(tx, self.uid)):
                raise AlreadyExists("tag", name)
            now = self.clock()
            made = Branch(name, new_uid(now), target.commit.id, new_uid(now), (), now)
            refs.create_branch(tx, self.uid, made)
            return made

    def delete_branch(self, name: str, *, force: bool = False) -> None:
        """The branch goes; its commits and objects stay until a job takes them."""
        if name == self.default_branch:
            raise BadRequest(f"{name!r} is the default branch of {self.name!r} and cannot be deleted")
        with self.database.write() as tx:
            old = refs.branch(tx, self.uid, name, lock=tx.for_update)
            if not force and not staging.is_empty(tx, old.tokens):
                raise Dirty(name)
            for token in old.tokens:
                staging.drop(tx, token)
            refs.delete_branch(tx, old)

    def tags(self) -> list[Tag]:
        with self.database.read() as tx:
            return list(refs.tags(tx, self.uid))

    def create_tag(self, name: str, source: str) -> Tag:
        """A name for a commit, for good."""
        check_tag(name)
        with self.database.write() as tx:
            if any(branch.name == name for branch in refs.branches(tx, self.uid)):
                raise AlreadyExists("branch", name)
            made = Tag(name, refs.resolve(tx, self.uid, source).commit.id, self.clock())
            refs.create_tag(tx, self.uid, made)
            return made

    def delete_tag(self, name: str) -> None:
        with self.database.write() as tx:
            refs.delete_tag(tx, self.uid, name)

    def resolve(self, ref: str) -> Target:
        with self.database.read() as tx:
            return refs.resolve(tx, self.uid, ref)

    # ---- history

    def log(self, *tips: str) -> Iterator[Commit]:
        """Commits that ``tips`` (refs) descend from, children before parents."""
        with self.database.read() as tx:
            ids = [refs.resolve(tx, self.uid, tip).commit.id for tip in tips]
            yield from walk(commits.fetching(tx, self.uid), *ids)

    def commit(
        self,
        branch: str,
        message: str,
        *,
        committer: str = "",
        metadata: Mapping[str, str] | None = None,
        allow_empty: bool = False,
    ) -> Commit:
        return self._committer.commit(branch, signature(message, committer, metadata), allow_empty=allow_empty)

    def merge(
        self,
        source: str,
        destination: str,
        *,
        message: str = "",
        committer: str = "",
        metadata: Mapping[str, str] | None = None,
        strategy: Strategy | None = None,
    ) -> Commit | None:
        """``source`` (any ref) merged into branch ``destination``; None where there is nothing to bring."""
        target = self.resolve(source)
        signed = signature(message or f"Merge {source} into {destination}", committer, metadata)
        return self._committer.merge(target.commit, destination, (source, destination), signed, strategy)

    def revert(
        self, branch: str, ref: str, *, parent: int | None = None, message: str = "", committer: str = ""
    ) -> Commit:
        """Take back one commit, by a new one on ``branch``."""
        commit = self.resolve(ref).commit
        signed = signature(message or f"Revert {commit.message!r} ({commit.id[:12]})", committer, None)
        return self._committer.revert(commit, branch, signed, parent=parent)

    def diff(self, left: str, right: str, *, since_base: bool = False) -> Iterator[Change]:
        """What turns the commit ``left`` into ``right``; or only what ``right`` did ``since_base``."""
        with self.database.read() as tx:
            ours, theirs = (refs.resolve(tx, self.uid, ref).commit for ref in (left, right))
            base: Commit | None = ours
            if since_base:
                base = merge_base(commits.fetching(tx, self.uid), ours.id, theirs.id)
        for batch in diff(self.ranges, base.metarange if base else EMPTY, theirs.metarange):
            for key, before, after in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield change(key, before, after)

    def uncommitted(self, branch: str, *, prefix: str = "") -> Iterator[Change]:
        """What a commit of ``branch`` would change."""
        with self.database.read() as tx:
            seen = refs.branch(tx, self.uid, branch)
            metarange = commits.fetching(tx, self.uid)(seen.head).metarange
            staged = staging.scan(tx, seen.tokens, prefix=prefix.encode())
            while page := list(islice(staged, PAGE)):
                committed = self.ranges.get_many(metarange, [key for key, _ in page])
                for (key, value), before in zip(page, committed, strict=True):
                    if value != before:
                        yield change(key, before, value)

    # ---- objects

    def stat(self, ref: str, path: str) -> Entry:
        key = encode_path(path)
        with self._view(ref) as (tx, view):
            value = lookup(tx, self.ranges, view, key)
        if value is None:
            raise NotFound("object", path, f"see `desilt lake ls` on {ref!r}")
        return decode_entry(key, value)

    def get(self, ref: str, path: str, *, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """The bytes of an object, or ``length`` of them from ``start``, as they come."""
        entry = self.stat(ref, path)
        if entry.address_type is not AddressType.RELATIVE:
            raise BadRequest(f"{path!r} points outside the lake, to {entry.address}; read it there")
        return self.store.stream(self.prefix + entry.address, start=start, length=length)

    def list(
        self, ref: str, prefix: str = "", *, delimiter: str = "", after: str = ""
    ) -> Iterator[Entry | CommonPrefix]:
        """Entries below ``prefix`` in path order; with a delimiter, deeper ones folded."""
        with self._view(ref) as (tx, view):
            yield from listing(
                tx, self.ranges, view, prefix=prefix.encode(), delimiter=delimiter.encode(), after=after.encode()
            )

    def put(
        self,
        branch: str,
        path: str,
        body: bytes | Iterable[bytes],
        *,
        content_type: str = "",
        metadata: Mapping[str, str] | None = None,
    ) -> Entry:
        """Upload ``body`` and stage it at ``path``."""
        chunks = [body] if isinstance(body, bytes) else body
        checked = check_metadata(metadata)
        return self._writer.put(
            branch, path, chunks, content_type=check_text("a content type", content_type), metadata=checked
        )

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
        """Remove everything below ``prefix``, page by page; the paths, as they go."""
        found = [entry.path for entry in self.list(branch, prefix)]
        for at in range(0, len(found), PAGE):
            page = found[at : at + PAGE]
            self._writer.remove(branch, page)
            yield from page

    def reset(self, branch: str, *, path: str | None = None, prefix: str | None = None) -> int:
        """Forget staged changes: all, at ``path``, or below ``prefix``; how many."""
        return self._writer.reset(branch, path=path, prefix=prefix)

    @contextmanager
    def _view(self, ref: str) -> Iterator[tuple[Transaction, View]]:
        with self.database.read() as tx:
            target = refs.resolve(tx, self.uid, ref)
            yield tx, View(target.commit.metarange, target.branch.tokens if target.branch else ())


def change(key: bytes, before: bytes | None, after: bytes | None) -> Change:
    sides = (None if value is None else decode_entry(key, value) for value in (before, after))
    return Change(key.decode(), *sides)


def signature(message: str, committer: str, metadata: Mapping[str, str] | None) -> Signature:
    return Signature(check_text("a message", message), check_text("a committer", committer), check_metadata(metadata))


def check_metadata(metadata: Mapping[str, str] | None) -> dict[str, str]:
    return {check_text("metadata", key): check_text("metadata", value) for key, value in (metadata or {}).items()}
