"""Names that carry the time they were made."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desilt.domain.address import is_inside, partition, partition_time, uid, uid_time
from desilt.domain.entry import decode_path, encode_path, new_path, shown_path
from desilt.domain.times import EPOCH, nanoseconds
from desilt.errors import InvalidPath

TIMES = st.datetimes(datetime(1998, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@settings(deadline=None)
@given(TIMES, st.binary(min_size=8, max_size=8))
def test_a_uid_tells_its_second(now, entropy):
    name = uid(now, entropy)
    assert len(name) == 20
    assert uid_time(name) == now.replace(microsecond=0)


@settings(deadline=None)
@given(TIMES, TIMES)
def test_newer_partitions_list_first(one, other):
    older, newer = sorted((one, other))
    assert partition(newer, "i") <= partition(older, "i")
    assert abs(partition_time(partition(one, "i_j")) - one) <= timedelta(milliseconds=1)


def test_a_uid_without_enough_chance_is_refused():
    with pytest.raises(ValueError, match="entropy"):
        uid(EPOCH, b"short")


@settings(deadline=None)
@given(TIMES)
def test_nanoseconds_count_from_1970(moment):
    assert EPOCH + timedelta(microseconds=nanoseconds(moment) // 1000) == moment


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=256))
def test_any_text_is_a_path_and_stays_as_it_is(path):
    assert new_path(path).decode() == path
    assert encode_path(path) == new_path(path)
    assert shown_path(path) == path


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=64))
def test_any_bytes_are_one_text_and_that_text_those_bytes(raw):
    assert encode_path(decode_path(raw)) == raw


@settings(deadline=None)
@given(st.binary(max_size=64), st.text(st.characters(codec="utf-8"), max_size=3))
def test_a_stored_path_begins_with_a_text_as_its_bytes_do_and_as_it_is_shown(raw, prefix):
    assert decode_path(raw).startswith(prefix) == raw.startswith(prefix.encode())
    if raw.startswith(prefix.encode()):
        assert shown_path(decode_path(raw)).startswith(prefix)


def test_a_byte_that_is_no_text_is_shown_by_its_number():
    assert shown_path(decode_path(b"bad\xffutf8/\xc3\xa9/\xed\xa0\x80")) == r"bad\xffutf8/é/\xed\xa0\x80"


@pytest.mark.parametrize("path", ["", "\0", "a\0b", "é" * 513, "\udcff"])
def test_what_is_no_path_to_write_to_is_refused(path):
    with pytest.raises(InvalidPath):
        new_path(path)


@pytest.mark.parametrize("path", ["", "\ud800"])
def test_what_no_path_can_be_stored_as_is_no_path(path):
    with pytest.raises(InvalidPath):
        encode_path(path)


@pytest.mark.parametrize(
    ("uri", "inside"),
    [
        ("s3://bucket/lake/repos/r/o", True),
        ("s3a://bucket/lake/repos/r/o", True),
        ("S3N://bucket/lake/repos/r/o", True),
        ("s3://bucket//lake/./x/../repos/r/o", True),
        ("s3://bucket/%6cake/repos/r/o", True),
        ("s3://bucket/%256cake/repos/r/o", True),
        ("s3://bucket/lake/repos/r/o?versionId=1", True),
        ("s3://bucket/lake", True),
        ("s3://bucket/lakeside/o", False),
        ("s3://bucket/other/../lake-2/o", False),
        ("s3://other/lake/repos/r/o", False),
        ("gs://bucket/lake/repos/r/o", False),
    ],
)
def test_whatever_may_be_inside_the_lake_is_inside(uri, inside):
    assert is_inside(uri, "s3://bucket/lake") is inside
