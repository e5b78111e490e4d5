"""Versions of objects on a real S3 server, SeaweedFS: of the keys that are asked about, and of no others."""

import uuid

import pytest

from desilt.errors import BadRequest, StorageFailed
from desilt.objects import open_store
from desilt.objects.versions import KeyVersions, Versioning
from versioned_bucket import VersionedBucket


@pytest.fixture
def server(s3_server, monkeypatch):
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    return s3_server


@pytest.fixture
def bucket(server):
    return VersionedBucket(server, f"versions-{uuid.uuid4().hex}")


@pytest.fixture
def versions(bucket):
    return open_store(f"{bucket.uri}/lake").versions


def names(found: KeyVersions):
    assert found.error == ""
    assert all(one.key == found.key for one in found.versions)
    return {"-" * one.is_marker + one.id for one in found.versions}


def test_other_stores_keep_none(tmp_path):
    assert open_store(tmp_path.as_uri()).versions is None
    assert open_store(f"memory://{uuid.uuid4().hex}").versions is None


def test_a_bucket_says_whether_it_keeps_versions(server):
    made = VersionedBucket(server, f"states-{uuid.uuid4().hex}", status=None)
    versions = open_store(made.uri).versions
    assert versions.versioning() is Versioning.OFF
    for status in ("Enabled", "Suspended"):
        made.versioning(status)
        assert versions.versioning() == status


def test_whoever_may_not_ask_does_not_know(versions, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    assert versions.versioning() is Versioning.UNKNOWN
    (refused,) = versions.list_versions(["a"])
    assert "was not allowed; check the keys" in refused.error
    assert refused.versions == ()


def test_versions_and_markers_of_exactly_one_key(bucket, versions):
    mine = bucket.put("lake/a", b"1", b"22")
    marker = bucket.hide("lake/a")
    for other in ("lake/ab", "lake/a.b", "lake/a b", "a", "lake/b", "lake/x/a"):
        bucket.put(other, b"x", b"y")
    (found,) = versions.list_versions(["a"])
    assert names(found) == {*mine, f"-{marker}"}
    assert {one.id: one.size for one in found.versions} == {mine[0]: 1, mine[1]: 2, marker: 0}


def test_many_keys_at_once_each_with_its_own_and_a_missing_one_with_none(bucket, versions):
    keys = [f"p/{number:03d}" for number in range(40)]
    made = {key: set(bucket.put(f"lake/{key}", b"x", b"y")) for key in keys}
    asked = [*keys, "p/0", "p/none", keys[3]]
    assert [names(one) for one in versions.list_versions(asked)] == [
        *(made[key] for key in keys), set(), set(), made[keys[3]],
    ]  # fmt: skip


def test_versions_of_one_key_come_in_several_pages(bucket, versions):
    mine = bucket.put("lake/a", *(b"x" * size for size in range(7)))
    bucket.put("lake/ab", *(b"x" for _ in range(7)))
    bucket.put("lake/b", b"x")
    for size in (1, 2, 3, 7):
        with bucket.pages(size):
            first, second = versions.list_versions(["a", "b"])
            assert names(first) == set(mine)
            assert len(names(second)) == 1


def test_odd_names_are_found_exactly(bucket, versions):
    for key in ("a b", "a+b", "a%20b", "a%2520b", "ünï/çødé", "日本/𝄞", "a&amp;b"):
        made = bucket.put(f"lake/{key}", b"x")
        (found,) = versions.list_versions([key])
        assert names(found) == set(made)
        assert [one.error for one in versions.remove_versions(found.versions)] == [""]
        assert bucket.versions(f"lake/{key}") == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told.update(IsTruncated=True),
        lambda told: told.update(IsTruncated=True, NextKeyMarker="lake/a"),
        lambda told: [row.pop("VersionId") for row in told["Versions"]],
    ],
)
def test_a_server_that_does_not_tell_all_is_not_believed(bucket, versions, change):
    bucket.put("lake/a", b"x")
    with bucket.answering("ListObjectVersions", change):
        (found,) = versions.list_versions(["a"])
    assert "check that the endpoint is of S3" in found.error
    assert found.versions == ()


def test_an_answer_that_says_nothing_is_not_taken_for_no_versions(bucket, versions):
    bucket.put("lake/a", b"x")
    with bucket.answering("ListObjectVersions", lambda told: told.clear()):
        (found,) = versions.list_versions(["a"])
    assert "does not say which versions 'a' has" in found.error


def test_only_the_versions_that_are_named_go(bucket, versions):
    old, middle, new = bucket.put("lake/a", b"1", b"2", b"3")
    bucket.put("lake/ab", b"1", b"2")
    (found,) = versions.list_versions(["a"])
    chosen = [one for one in found.versions if one.id != middle]
    before = bucket.versions()
    assert [one.error for one in versions.remove_versions(chosen)] == ["", ""]
    assert bucket.versions() == {**before, "lake/a": {middle}}
    assert [one.error for one in versions.remove_versions(chosen)] == ["", ""]  # sweeping twice is sweeping once
    assert bucket.versions() == {**before, "lake/a": {middle}}
    assert {one.version.id for one in versions.remove_versions(chosen)} == {old, new}


def test_a_version_that_is_not_removed_is_told_and_the_others_go(bucket, versions):
    old, new = bucket.put("lake/a", b"1", b"2")
    other = bucket.put("lake/b", b"1")[0]
    rows = [version for one in versions.list_versions(["a", "b"]) for version in one.versions]
    with bucket.refusing(old):
        told = {one.version.id: one.error for one in versions.remove_versions(rows)}
    assert told == {old: "AccessDenied: not this one", new: "", other: ""}
    assert bucket.versions() == {"lake/a": {old}}


def test_a_refusal_that_names_no_version_is_of_all_of_its_key(bucket, versions):
    bucket.put("lake/a", b"1", b"2")
    rows = versions.list_versions(["a"])[0].versions
    whole = {"Errors": [{"Key": "lake/a", "Code": "InternalError", "Message": "try again"}]}
    with bucket.answering("DeleteObjects", lambda told: told.update(whole)):
        assert [one.error for one in versions.remove_versions(rows)] == ["InternalError: try again"] * 2


@pytest.mark.parametrize("named", [{}, {"Key": ""}, {"Key": "a"}, {"Key": "lake/none", "VersionId": "1"}])
def test_a_refusal_that_names_none_of_them_is_of_all(bucket, versions, named):
    bucket.put("lake/a", b"1")
    bucket.put("lake/b", b"1")
    found = [one.versions[0] for one in versions.list_versions(["a", "b"])]
    stray = {"Errors": [{**named, "Code": "AccessDenied", "Message": "not all of it"}]}
    with bucket.answering("DeleteObjects", lambda told: told.update(stray)):
        assert [one.error for one in versions.remove_versions(found)] == ["AccessDenied: not all of it"] * 2


def test_a_version_that_the_answer_leaves_out_is_not_taken_for_removed(bucket, versions):
    old, new = bucket.put("lake/a", b"1", b"2")
    rows = versions.list_versions(["a"])[0].versions
    with bucket.answering("DeleteObjects", lambda told: told.clear()):
        assert ["does not say" in one.error for one in versions.remove_versions(rows)] == [True, True]
    with bucket.answering("DeleteObjects", lambda told: told.update(Deleted=[{"Key": "lake/a", "VersionId": new}])):
        assert {one.version.id: bool(one.error) for one in versions.remove_versions(rows)} == {old: True, new: False}


def test_a_server_that_refuses_everything_is_told_of_each(bucket, versions, monkeypatch):
    bucket.put("lake/a", b"1", b"2")
    rows = versions.list_versions(["a"])[0].versions
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    assert ["was not allowed" in one.error for one in versions.remove_versions(rows)] == [True, True]
    assert len(bucket.versions()["lake/a"]) == 2


def test_more_than_one_request_takes_are_cut_up_and_somebody_looks_before_each(bucket, versions, monkeypatch):
    monkeypatch.setattr("desilt.objects.cloud_versions.REMOVED_AT_ONCE", 2)
    made = bucket.put("lake/a", *(b"x" for _ in range(5)))
    looked = []

    def look():
        looked.append(len(bucket.versions().get("lake/a", ())))
        if len(looked) == 3:
            raise StorageFailed("not ours any more")

    rows = versions.list_versions(["a"])[0].versions
    with pytest.raises(StorageFailed, match="not ours"):
        versions.remove_versions(rows, between=look)
    assert (looked, len(made)) == ([5, 3, 1], 5)
    assert len(bucket.versions()["lake/a"]) == 1


def test_a_key_that_cannot_be_one_is_refused_before_anything_is_asked(bucket, versions):
    bucket.put("lake/a", b"x")
    with pytest.raises(BadRequest):
        versions.list_versions(["a", "../a"])
