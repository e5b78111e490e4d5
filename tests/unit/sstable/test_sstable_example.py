"""One range and its metarange, known to the last byte: lakeFS wrote both, in 2021.

The range is as lakeFS would write it today. Its metarange says another size of
it: that of the file and eight bytes, where lakeFS now says what the range itself
does, the size before its last block was closed.
"""

import hashlib
from dataclasses import replace

from desilt.sstable.table import Table
from desilt.sstable.values import RangeData, entry_identity, read_metarange, write_metarange
from sstable_records import DESCRIBED, NO, RANGE_ID, YES, the_range


def test_entries_have_the_identities_lakefs_gave_them():
    assert entry_identity(NO).hex() == "56fef3921aa6e7fd62bbe23b2f69db3f9049a54b6f2c7bd886b7eb1a6ca3ab3e"
    assert entry_identity(YES).hex() == "6039b184d29379328b5364bb041b9926b4b388dbc326b7dd57f70cefd77b961e"


def test_the_range_comes_out_byte_for_byte():
    written = the_range()
    assert (written.id, len(written.data)) == (RANGE_ID, 1182)
    assert hashlib.sha256(written.data).hexdigest() == (
        "5e01c5dcd938d5c90d97632bd9ebd2b847f012afb737648c558ed5fc4a36db57"
    )


def test_the_range_is_described_as_its_metarange_describes_it_but_for_its_size():
    written = the_range()
    found = RangeData(written.id, written.min_key, written.max_key, written.estimated_size, written.count)
    assert found == replace(DESCRIBED, estimated_size=287)
    assert len(written.data) + 8 == DESCRIBED.estimated_size  # the older rule


def test_the_range_says_of_itself_what_lakefs_had_it_say():
    table = Table.from_bytes(the_range().data, "example")
    said = {name: table.properties[name] for name in ("type", "min_key", "max_key", "count", "estimated_size_bytes")}
    assert said == {
        "type": b"ranges",
        "min_key": b"a/b/c/no",
        "max_key": b"a/b/c/yes",
        "count": b"2",
        "estimated_size_bytes": b"287",
    }


def test_the_metarange_with_the_size_it_says_comes_out_byte_for_byte():
    written = write_metarange([DESCRIBED])
    assert len(written.data) == 1022
    assert hashlib.sha256(written.data).hexdigest() == (
        "caa2f483daa2db86d2f85318daa61d407c83970b614fa8f34dcbbf0ee1b76d43"
    )
    assert read_metarange(Table.from_bytes(written.data, "example")) == [DESCRIBED]
