"""Commits, branches and tags as the tables that a server dumps and takes back; :mod:`desilt.lakefs.dump` reads them."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa

from desilt.domain.history import Commit
from desilt.domain.times import microseconds
from desilt.lakefs.dump import PARENT_SWITCH
from desilt.lakefs.server import DumpedRefs
from desilt.sstable.table import RAW
from desilt.sstable.values import RangeData, encode_range
from desilt.sstable.wire import bytes_field, message_field, number_field, pack
from desilt.sstable.writer import RangeWriter, write_table

Put = Callable[[str, bytes], None]  # stores a table under its id
PACKAGE = "io.treeverse.lakefs.graveler"
TEXT, NUMBER, FLAG, MESSAGE = "TYPE_STRING", "TYPE_INT32", "TYPE_BOOL", "TYPE_MESSAGE"
OPTIONAL, REPEATED = "LABEL_OPTIONAL", "LABEL_REPEATED"
FIELDS: dict[str, list[tuple[str, str, str, str]]] = {  # name, label, type, and which message
    "branch": [
        ("id", OPTIONAL, TEXT, ""),
        ("commit_id", OPTIONAL, TEXT, ""),
        ("staging_token", OPTIONAL, TEXT, ""),
        ("sealed_tokens", REPEATED, TEXT, ""),
        ("hidden", OPTIONAL, FLAG, ""),
    ],
    "tag": [("id", OPTIONAL, TEXT, ""), ("commit_id", OPTIONAL, TEXT, "")],
    "commit": [
        ("id", OPTIONAL, TEXT, ""),
        ("committer", OPTIONAL, TEXT, ""),
        ("message", OPTIONAL, TEXT, ""),
        ("creation_date", OPTIONAL, MESSAGE, ".google.protobuf.Timestamp"),
        ("meta_range_id", OPTIONAL, TEXT, ""),
        ("metadata", REPEATED, MESSAGE, f".{PACKAGE}.CommitData.MetadataEntry"),
        ("parents", REPEATED, TEXT, ""),
        ("version", OPTIONAL, NUMBER, ""),
        ("generation", OPTIONAL, NUMBER, ""),
    ],
}
"""What the messages of a dump have, by entity; their numbers are their places."""
PAIR = [("key", OPTIONAL, TEXT, ""), ("value", OPTIONAL, TEXT, "")]


def write(put: Put, commits: Iterable[Commit], branches: Mapping[str, str], tags: Mapping[str, str]) -> DumpedRefs:
    """The three tables, stored; branches and tags are names and the commits that they have."""
    return DumpedRefs(
        write_entity(put, "commit", {one.id: (one.id, commit_message(one)) for one in commits}),
        write_entity(put, "branch", {name: (head, _ref(name, head)) for name, head in branches.items()}),
        write_entity(put, "tag", {name: (target, _ref(name, target)) for name, target in tags.items()}),
    )


def write_entity(put: Put, entity: str, messages: Mapping[str, tuple[str, bytes]]) -> str:
    """The metarange of one dump: messages by name, each with its identity."""
    said = described(entity)
    values = {name.encode(): pack(identity.encode(), message) for name, (identity, message) in messages.items()}
    writer, listed = RangeWriter(said=said), []
    for one in [*writer.add(_records(sorted(values.items()))), *writer.finish()]:
        put(one.id, one.data)
        listed.append(RangeData(one.id, one.min_key, one.max_key, one.estimated_size, one.count))
    rows = _records([(one.max_key, encode_range(one)) for one in listed])
    metarange = write_table(rows, kind="metaranges", said=said)
    put(metarange.id, metarange.data)
    return metarange.id


def commit_message(commit: Commit) -> bytes:
    seconds, rest = divmod(microseconds(commit.created_at), 1_000_000)
    pairs = sorted((key.encode(), value.encode()) for key, value in commit.metadata.items())
    return b"".join(
        [
            bytes_field(1, commit.id.encode()),
            bytes_field(2, commit.committer.encode()),
            bytes_field(3, commit.message.encode()),
            message_field(4, number_field(1, seconds) + number_field(2, rest * 1000)),
            bytes_field(5, commit.metarange.encode()),
            *(message_field(6, message_field(1, key) + message_field(2, value)) for key, value in pairs),
            *(bytes_field(7, parent.encode()) for parent in commit.parents),
            number_field(8, PARENT_SWITCH),
            number_field(9, commit.generation),
        ]
    )


def described(entity: str) -> dict[str, str]:
    """What tables of a dump say of themselves."""
    name = f"{entity.capitalize()}Data"
    schema: dict[str, object] = {"name": name, "field": _fields(FIELDS[entity])}
    if entity == "commit":
        schema["nestedType"] = [{"name": "MetadataEntry", "field": _fields(PAIR), "options": {"mapEntry": True}}]
    definition = json.dumps(schema, separators=(", ", ":"))
    return {"entity": entity, "schema_name": f"{PACKAGE}.{name}", "schema_definition": definition}


def _fields(rows: Sequence[tuple[str, str, str, str]]) -> list[dict[str, object]]:
    found = []
    for number, (name, label, kind, message) in enumerate(rows, 1):
        first, *rest = name.split("_")
        camel = first + "".join(part.capitalize() for part in rest)
        of_type = {"typeName": message} if message else {}
        found.append({"name": name, "number": number, "label": label, "type": kind, **of_type, "jsonName": camel})
    return found


def _ref(name: str, commit: str) -> bytes:
    return bytes_field(1, name.encode()) + bytes_field(2, commit.encode())


def _records(pairs: Sequence[tuple[bytes, bytes]]) -> pa.RecordBatch:
    columns = [pa.array([pair[n] for pair in pairs], pa.binary()) for n in (0, 1)]
    return pa.RecordBatch.from_arrays(columns, schema=RAW)
