"""Records to put into tables: by hand, and by Hypothesis."""

import random

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st

from desilt.domain.entry import AddressType, Entry
from desilt.sstable.table import RAW
from desilt.sstable.values import RangeData, encode_entry
from desilt.sstable.writer import write_table

unhurried = settings(deadline=None)  # a busy machine is no finding


def raw(pairs):
    """``pairs`` of key and value as a batch."""
    keys = pa.array([key for key, _ in pairs], pa.binary())
    values = pa.array([value for _, value in pairs], pa.binary())
    return pa.RecordBatch.from_arrays([keys, values], schema=RAW)


def pairs_of(*batches):
    return [pair for batch in batches for pair in zip(*(column.to_pylist() for column in batch.columns), strict=True)]


# one real range, known to the last byte
NO = Entry(
    path="a/b/c/no",
    address="b0c968736d8f42a2b1c6284835f08226",
    size=11,
    checksum="664c688b4ea9c56730daacfc3d70aeed",
    modified_ns=1628163584_471124555,
)
YES = Entry(
    path="a/b/c/yes",
    address="fdf87fcf9ec849f98514ddb7e041ad56",
    size=4,
    checksum="eb4585ad9fe0426781ed7c49252f8225",
    modified_ns=1628163573_589644914,
)
RANGE_ID = "a83af763ba098c15369d9d6d723731eb9ce18b8dfac4f88c6f1287e772393d0e"
DESCRIBED = RangeData(RANGE_ID, b"a/b/c/no", b"a/b/c/yes", estimated_size=1190, count=2)


def the_range():
    return write_table(raw([(entry.path.encode(), encode_entry(entry)) for entry in (NO, YES)]), kind="ranges")


def two_levels():
    """Enough blocks, with separators long enough, for an index of two levels."""
    noise = random.Random(7)
    return [(b"long/" * 60 + b"%04d" % n + b"\xff" * 20, noise.randbytes(400)) for n in range(400)]


# Bytes that meet at the edges: the key's own suffix begins with 01 and goes on with 00; ff cannot be raised.
_piece = st.sampled_from([b"\0", b"\1", b"\1" + bytes(7), b"\xff", b"a", b"b", b"ab/", "é/ü".encode(), b"x" * 130])
_key = st.one_of(
    st.lists(_piece, max_size=6).map(b"".join),
    st.binary(max_size=12),
    st.integers(0, 300).map(lambda n: b"common/prefix/%03d" % n),
    st.integers(1, 1024).map(lambda n: b"k" * n),
)
_value = st.one_of(
    st.binary(max_size=40),
    st.integers(0, 400).map(lambda n: b"v" * n),
    st.integers(3000, 9000).map(random.Random(3).randbytes),
)
pairs = st.one_of(
    st.dictionaries(_key, _value, max_size=60),
    st.dictionaries(st.integers(0, 4000).map(lambda n: b"dense/%d" % n), st.binary(max_size=200), max_size=200),
).map(lambda found: sorted(found.items()))

_text = st.text(st.characters(codec="utf-8"), max_size=12)
_number = st.one_of(st.integers(0, 300), st.integers(-(2**63), 2**63 - 1))
entries = st.builds(
    Entry,
    path=_text,
    address=_text,
    size=_number,
    checksum=_text,
    modified_ns=st.one_of(st.integers(0, 2**61), st.integers(-(2**90), 2**90)).map(
        lambda n: max(-(2**63) * 10**9, min(n, (2**63 - 1) * 10**9))
    ),
    metadata=st.dictionaries(_text, _text, max_size=3),
    address_type=st.sampled_from(AddressType),
    content_type=_text,
)
