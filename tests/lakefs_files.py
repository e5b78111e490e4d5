"""What the model of a lakeFS server writes into a repository's namespace: the very files that a real one writes.

Tables of entries come from our own writer, which is checked byte for byte elsewhere. Dumps of refs are the same tables
with three properties more, which are taken from the capture.
"""

import base64
import hashlib
import io
import itertools
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache

import pyarrow as pa
import pyarrow.parquet as pq

from desilt.domain.identity import hash_map
from desilt.domain.times import microseconds, seconds
from desilt.errors import NotFound
from desilt.objects.store import ObjectStore
from desilt.sstable.blocks import (
    FOOTER,
    TRAILER,
    BlockHandle,
    Footer,
    build,
    decode_footer,
    decode_handle,
    entries,
    seal,
    unseal,
)
from desilt.sstable.table import RAW, Table
from desilt.sstable.values import RangeData, encode_range
from desilt.sstable.wire import bytes_field, message_field, number_field, pack, text, unpack
from desilt.sstable.writer import RangeWriter, write_table
from lakefs_server import ROOT

YEAR_4000 = 64_060_588_800
PARTITION_AGE, PARTITION_PATHS = timedelta(hours=1), 50_000
PROPERTIES = b"rocksdb.properties"
SAID = ("entity", "schema_name", "schema_definition")
STAGED = pa.schema(
    [
        pa.field("physical_address", pa.string(), nullable=False),
        pa.field("creation_date", pa.int64(), nullable=False),
    ]
)
RULES = "_lakefs/retention/gc/rules/config.json"
MANIFEST = "_lakefs/refs_manifest.json"


class Names:
    """Names that say when they were given; those of one server process."""

    def __init__(self, clock):
        self._clock, self._count = clock, itertools.count(0x5E5000)
        self._partition, self._opened, self._left = "", None, 0

    def rising(self):
        """Of objects, and of files: later ones sort later."""
        return self._named(seconds(self._clock()))

    def falling(self):
        """Of partitions and of runs: later ones sort first."""
        return self._named(YEAR_4000 - seconds(self._clock()))

    def address(self):
        """Where the next object goes."""
        now = self._clock()
        if not self._left or abs(now - self._opened) >= PARTITION_AGE:
            self._partition, self._opened, self._left = self.falling(), now, PARTITION_PATHS
        self._left -= 1
        return f"data/{self._partition}/{self.rising()}"

    def _named(self, time):
        raw = (time % 2**32).to_bytes(4) + b"model" + next(self._count).to_bytes(3)
        return base64.b32hexencode(raw).decode().rstrip("=").lower()


@dataclass(frozen=True)
class Place:
    """Where a repository's files are."""

    namespace: str  # as the repository was made with it
    shown: str  # what addresses begin with in answers: a local blockstore tells its own directory
    store: ObjectStore

    def put(self, key, data):
        self.store.put(key, [data])

    def there(self, key):
        try:
            return bool(self.store.head(key))
        except NotFound:
            return False


# tables of entries


def put_entries(place, values, raggedness):
    """The metarange of ``values`` by path; as real servers do, one without ranges where there are none."""
    writer = RangeWriter(raggedness=raggedness)
    return _put_all(place, [*writer.add(_records(values)), *writer.finish()], _plain)


def read_values(place, metarange):
    """The ranges that a metarange lists, and all values by path."""
    names, values = [], {}
    for listed in _table(place, metarange)["value"].to_pylist():
        names.append(text(unpack(listed)[0]))
        records = _table(place, names[-1])
        values |= zip(records["key"].to_pylist(), records["value"].to_pylist(), strict=True)
    return names, values


# dumps of refs


def put_dump(place, entity, messages, raggedness):
    """The metarange of a dump: a message by name, each under the identity that a server gives it."""
    values = {name.encode(): pack(identity.encode(), message) for name, (identity, message) in messages.items()}
    writer = RangeWriter(raggedness=raggedness)
    parts = [*writer.add(_records(values)), *writer.finish()]
    return _put_all(place, parts, lambda written, kind: entitled(written, kind, entity))


def commit_message(commit):
    time = microseconds(commit.created_at)
    moment = number_field(1, time // 1_000_000) + number_field(2, time % 1_000_000 * 1000)
    pairs = [
        message_field(1, key.encode()) + message_field(2, value.encode()) for key, value in commit.metadata.items()
    ]
    texts = (commit.id, commit.committer, commit.message)
    return commit.id, b"".join(
        [
            *(bytes_field(number, told.encode()) for number, told in enumerate(texts, 1)),
            message_field(4, moment),
            bytes_field(5, commit.metarange.encode()),
            *(message_field(6, pair) for pair in pairs),
            *(bytes_field(7, parent.encode()) for parent in commit.parents),
            number_field(8, 1),
            number_field(9, commit.generation),
        ]
    )


def branch_message(branch):
    named = bytes_field(1, branch.name.encode()) + bytes_field(2, branch.head.encode())
    return branch.head, named + number_field(5, int(branch.hidden))


def tag_message(name, target):
    return target, bytes_field(1, name.encode()) + bytes_field(2, target.encode())


def entitled(written, kind, entity):
    """A table that says what it is a dump of: other properties, and by them another id."""
    records = Table.from_bytes(written.data, "made").read()
    extra = _schemas()[entity]
    named = hashlib.sha256()
    for key, value in zip(records["key"].to_pylist(), records["value"].to_pylist(), strict=True):
        named.update(b"%d%s|%d%s|" % (len(key), key, len(value), value))
    named.update(hash_map({"type": kind, **{name: told.decode() for name, told in extra.items()}}))
    view = memoryview(written.data)
    footer = decode_footer(written.data[-FOOTER:])
    [(_, found)] = entries(unseal(view[footer.metaindex.offset : footer.metaindex.end]))
    old, _ = decode_handle(found)
    properties = dict(entries(unseal(view[old.offset : old.end]))) | {k.encode(): v for k, v in extra.items()}
    block = seal(build(sorted(properties.items()), interval=2**31), compress=False)
    handle = BlockHandle(old.offset, len(block) - TRAILER)
    metaindex = seal(build([(PROPERTIES, handle.encode())], interval=1), compress=False)
    last = Footer(BlockHandle(handle.end, len(metaindex) - TRAILER), footer.index)
    return replace(written, id=named.hexdigest(), data=written.data[: old.offset] + block + metaindex + last.encode())


@cache
def _schemas():
    """What tables of a dump say besides: by entity."""
    found = {}
    for path in sorted((ROOT / "namespace" / "_lakefs").iterdir()):
        told = Table.from_bytes(path.read_bytes(), path.name).properties if len(path.name) == 64 else {}
        if "entity" in told:
            found[told["entity"].decode()] = {
                name: told[name] for name in ("entity", "schema_name", "schema_definition")
            }
    return found


# files for collectors


def put_staged(place, run, name, rows):
    """A part of what prepare_uncommited lists."""
    addresses, times = zip(*rows, strict=True)
    out = io.BytesIO()
    pq.write_table(pa.table([pa.array(addresses), pa.array(times)], schema=STAGED), out, compression="gzip")
    place.put(f"_lakefs/retention/gc/uncommitted/{run}/uncommitted/{name}", out.getvalue())


def put_active(place, run, commits):
    """The list that prepare_commits makes; its key."""
    rows = [f"{commit.id},false,{commit.metarange}\n" for commit in commits]
    key = f"_lakefs/retention/gc/commits/run_id={run}/commits.csv"
    place.put(key, "".join(["commit_id,expired,metarange_id\n", *rows]).encode())
    return key


def put_rules(place, default_days, branch_days):
    days = [bytes_field(1, name.encode()) + number_field(2, count) for name, count in branch_days.items()]
    place.put(RULES, number_field(1, default_days) + b"".join(message_field(2, pair) for pair in days))


def _plain(written, _):
    return written


def _put_all(place, ranges, finished):
    listed = []
    for written in (finished(one, "ranges") for one in ranges):
        place.put(f"_lakefs/{written.id}", written.data)
        listed.append(RangeData(written.id, written.min_key, written.max_key, written.estimated_size, written.count))
    rows = _records({one.max_key: encode_range(one) for one in listed})
    metarange = finished(write_table(rows, kind="metaranges"), "metaranges")
    place.put(f"_lakefs/{metarange.id}", metarange.data)
    return metarange.id


def _records(values):
    keys = sorted(values)
    columns = [pa.array(keys, pa.binary()), pa.array([values[key] for key in keys], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=RAW)


def _table(place, name):
    return Table.from_bytes(place.store.get(f"_lakefs/{name}"), name).read()
