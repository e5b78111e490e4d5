"""Commits, branches and tags of one moment, from the three tables that a server dumps.

All commits are there, those too that no ref reaches any more. What is staged is not, and nothing tells a branch
or a tag from one that was made again under its name: uids are names, and a ref is as old as its commit.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from desilt.domain.history import Commit
from desilt.domain.times import EPOCH
from desilt.errors import CorruptTable
from desilt.lakefs.server import DumpedRefs, TableKind
from desilt.repository.snapshot import Branch, Revision, Snapshot, Tag, checked
from desilt.sstable.records import key_at
from desilt.sstable.table import Table
from desilt.sstable.values import RangeData, decode_range
from desilt.sstable.varint import Malformed, blaming
from desilt.sstable.wire import fields, text, unpack

Tables = Callable[[TableKind, str], bytes]  # the bytes of a range or metarange, or MissingTable
PARENT_SWITCH = 1  # commits of an earlier version have the parent that was committed to last
UNKNOWN = 0  # moves of refs, which a server does not count


@dataclass(frozen=True, slots=True)
class Dumped:
    """What was dumped: whole, as ``checked`` has it."""

    snapshot: Snapshot
    hidden: frozenset[str]  # branches that lists leave out, and that hold all the same


def read(tables: Tables, refs: DumpedRefs, *, default_branch: str) -> Dumped:
    """The history that ``refs`` list; a table that is missing, damaged or of another kind is raised."""
    commits = {one.id: one for one in map(_commit, _messages(tables, refs.commits, "commit"))}
    branches, hidden = [], set[str]()
    for message in _messages(tables, refs.branches, "branch"):
        name, head = message.text(1), message.text(2)
        branches.append(Branch(name, name, head, _time_of(commits, head)))
        if message.number(5):
            hidden.add(name)
    tags = [
        Tag(message.text(1), head := message.text(2), _time_of(commits, head))
        for message in _messages(tables, refs.tags, "tag")
    ]
    mark = hashlib.sha256("\n".join((refs.commits, refs.branches, refs.tags)).encode()).hexdigest()
    seen = Snapshot(
        Revision(UNKNOWN, mark),
        default_branch,
        commits,
        tuple(sorted(branches, key=lambda branch: branch.name)),
        tuple(sorted(tags, key=lambda tag: tag.name)),
        holds=(),
    )
    return Dumped(checked(seen), frozenset(hidden))


def commit_ids(tables: Tables, metarange: str) -> set[str]:
    """The commits that a dump of commits lists."""
    return {message.text(1) for message in _messages(tables, metarange, "commit")}


def heads(tables: Tables, metarange: str) -> dict[str, str]:
    """The branches that a dump of branches lists, and the commit of each."""
    return {message.text(1): message.text(2) for message in _messages(tables, metarange, "branch")}


class _Message:
    """One record's protobuf message, by field."""

    def __init__(self, key: bytes, value: bytes) -> None:
        self._found: dict[int, list[int | bytes]] = {}
        for field, content in fields(unpack(value)[1]):
            self._found.setdefault(field, []).append(content)
        if self.raw(1) != key:
            raise Malformed("a record is kept under another name than its own")

    def raw(self, field: int) -> bytes:
        return next(iter(self.many(field)[-1:]), b"")

    def text(self, field: int) -> str:
        return text(self.raw(field))

    def many(self, field: int) -> list[bytes]:
        return [content for content in self._found.get(field, []) if isinstance(content, bytes)]

    def number(self, field: int) -> int:
        return next((content for content in reversed(self._found.get(field, [])) if isinstance(content, int)), 0)


def _commit(message: _Message) -> Commit:
    parents = tuple(map(text, message.many(7)))
    moment = {1: 0, 2: 0} | {at: number for at, number in fields(message.raw(4)) if isinstance(number, int)}
    pairs = [
        {1: b"", 2: b""} | {at: raw for at, raw in fields(pair) if isinstance(raw, bytes)} for pair in message.many(6)
    ]
    metadata = {text(pair[1]): text(pair[2]) for pair in pairs}
    if len(metadata) != len(pairs):
        raise Malformed("a commit has a metadata key twice")
    return Commit(
        id=message.text(1),
        parents=parents if message.number(8) >= PARENT_SWITCH else parents[::-1],
        metarange=message.text(5),
        created_at=_moment(moment[1], moment[2]),
        committer=message.text(2),
        message=message.text(3),
        metadata=metadata,
        generation=message.number(9),
    )


def _moment(seconds: int, nanos: int) -> datetime:
    """To the microsecond, as the server itself compares commits."""
    try:
        return EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError:
        raise Malformed("a commit was made at no time that there is") from None


def _time_of(commits: dict[str, Commit], head: str) -> datetime:
    return commits[head].created_at if head in commits else EPOCH  # the check that follows names the commit


def _messages(tables: Tables, metarange: str, entity: str) -> Iterator[_Message]:
    """Every record that a dump of ``entity`` lists, in the order of keys; none, where the server had none to dump."""
    if not metarange:
        return
    listed = _records(tables("meta_range", metarange), metarange, "metaranges", entity)
    for key, value in listed:
        described = decode_range(value, metarange)
        if key != described.max_key:
            raise CorruptTable(metarange, "it keeps a range under another key than its last")
        found = _records(tables("range", described.id), described.id, "ranges", entity, described)
        with blaming(described.id):
            for name, content in found:
                yield _Message(name, content)


def _records(
    data: bytes, name: str, kind: str, entity: str, listed: RangeData | None = None
) -> list[tuple[bytes, bytes]]:
    """The records of one table of a dump, as many as its metarange says."""
    table = Table.from_bytes(data, name)
    told = table.properties.get("entity", b"").decode(errors="replace")
    if (table.kind, told) != (kind, entity):
        raise CorruptTable(name, f"it should be a dump of {entity!r} ({kind}) and holds {told!r} ({table.kind})")
    records = table.read()
    if listed and records.num_rows != listed.count:
        raise CorruptTable(name, f"its metarange counts {listed.count} records, it has {records.num_rows}")
    if listed and listed.count and (key_at(records, 0), key_at(records, -1)) != (listed.min_key, listed.max_key):
        raise CorruptTable(name, "it does not begin and end where its metarange says")
    return list(zip(records["key"].to_pylist(), records["value"].to_pylist(), strict=True))
