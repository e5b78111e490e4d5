"""Tags and lifecycle rules on a real S3 server, SeaweedFS; what S3 itself does otherwise is said where it matters.

SeaweedFS has no rules that move objects between storage classes, so none of those is seen to be kept here; and where a
delete marker is the newest version it answers 404, S3 405.
"""

import http.client
import threading
import uuid
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from desilt.errors import NotFound, StorageFailed
from desilt.objects import Outcome, Result, bucket_rules, open_store
from desilt.objects.bucket_rules import BucketRules, covering, expiry_rule, merged
from desilt.objects.opening import dated
from desilt.objects.s3_client import s3_client
from desilt.objects.tags import EXPIRE_NOW, ObjectTag, TagOutcome, TagResult

TAGGED, UNTAGGED, BARE, GONE, FAILED = TagResult
ODD_KEYS = ["a b", "a+b", "a%20b", "a%2Fb", "ünï/çødé", "日本/𝄞", "a#b", "a?b=c&d", "a&amp;b", "a'\"b", "a,b", "…/.x"]
THEIRS = [
    {"ID": "old", "Prefix": "logs/", "Status": "Enabled", "Expiration": {"Days": 3}},
    {"ID": "off", "Filter": {"Prefix": "x/"}, "Status": "Disabled", "Expiration": {"Days": 9}},
    {
        "ID": "uploads",
        "Filter": {"Prefix": ""},
        "Status": "Enabled",
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
    },
    {
        "ID": "odd",
        "Filter": {"And": {"Prefix": "y/", "ObjectSizeGreaterThan": 5, "Tags": [{"Key": "q", "Value": "r"}]}},
        "Status": "Enabled",
        "Expiration": {"Date": datetime(2030, 1, 1, tzinfo=UTC)},
    },
]


@pytest.fixture
def bucket(s3_server, monkeypatch):
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    return s3_server.create_bucket(f"tags-{uuid.uuid4().hex}").removeprefix("s3://")


@pytest.fixture
def s3(bucket):
    return s3_client(bucket)


@pytest.fixture
def store(bucket):
    return open_store(f"s3://{bucket}/root")


@pytest.fixture
def tags(s3, bucket):
    """The tags of one object, as the server tells them."""

    def read(key):
        return {tag["Key"]: tag["Value"] for tag in s3.get_object_tagging(Bucket=bucket, Key=f"root/{key}")["TagSet"]}

    return read


@pytest.fixture
def put_tagged(s3, bucket):
    def put(key, tagging="", **more):
        s3.put_object(Bucket=bucket, Key=f"root/{key}", Body=key.encode(), Tagging=tagging, **more)

    return put


def results(outcomes):
    return [(each.key, each.result) for each in outcomes]


def test_tags_of_others_are_kept(store, tags, put_tagged):
    put_tagged("a", "owner=them&cost=7")
    put_tagged("b")
    assert store.tagging.tag_many(["b", "a"], EXPIRE_NOW) == [TagOutcome("b", TAGGED), TagOutcome("a", TAGGED)]
    assert tags("a") == {"owner": "them", "cost": "7", "lakefs-expire-now": "1"}
    assert tags("b") == {"lakefs-expire-now": "1"}
    assert results(store.tagging.untag_many(["a", "b"], EXPIRE_NOW)) == [("a", UNTAGGED), ("b", UNTAGGED)]
    assert (tags("a"), tags("b")) == ({"owner": "them", "cost": "7"}, {})
    assert store.get("a") == b"a"


def test_done_again_it_ends_the_same(store, tags, put_tagged):
    put_tagged("a", "owner=them")
    for _ in range(2):
        assert results(store.tagging.tag_many(["a", "a"], EXPIRE_NOW)) == [("a", TAGGED), ("a", TAGGED)]
        assert tags("a") == {"owner": "them", "lakefs-expire-now": "1"}
    assert results(store.tagging.untag_many(["a", "a"], EXPIRE_NOW)) == [("a", UNTAGGED), ("a", BARE)]
    assert results(store.tagging.untag_many(["a"], EXPIRE_NOW)) == [("a", BARE)]
    assert tags("a") == {"owner": "them"}


def test_a_tag_is_known_by_its_key(store, tags, put_tagged):
    put_tagged("a", "lakefs-expire-now=no")
    put_tagged("b", "lakefs-expire-now=no")
    assert results(store.tagging.tag_many(["a"], EXPIRE_NOW)) == [("a", TAGGED)]
    assert tags("a") == {"lakefs-expire-now": "1"}
    assert results(store.tagging.untag_many(["b"], EXPIRE_NOW)) == [("b", UNTAGGED)]
    assert tags("b") == {}


def test_an_object_with_ten_tags_of_others_takes_no_more(store, tags, put_tagged):
    ten = {f"k{number}": "v" for number in range(10)}
    put_tagged("full", "&".join(f"{key}={value}" for key, value in ten.items()))
    put_tagged("nine", "&".join(f"k{number}=v" for number in range(9)))
    full, nine = store.tagging.tag_many(["full", "nine"], EXPIRE_NOW)
    assert (full.result, nine.result) == (FAILED, TAGGED)
    assert "has 10 other tags, and S3 allows no more; remove one" in full.detail
    assert (tags("full"), len(tags("nine"))) == (ten, 10)
    assert results(store.tagging.tag_many(["nine"], ObjectTag(EXPIRE_NOW.key, "2"))) == [("nine", TAGGED)]


def test_what_is_not_there_is_gone(store, put_tagged):
    put_tagged("a")
    for ask in (
        lambda keys: store.tagging.tag_many(keys, EXPIRE_NOW),
        lambda keys: store.tagging.untag_many(keys, EXPIRE_NOW),
        store.tagging.tagless,
    ):
        assert [each.result for each in ask(["none", "a", "no/such"])][::2] == [GONE, GONE]


def test_what_is_only_an_old_version_is_gone(store, s3, bucket, put_tagged):
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    put_tagged("a")
    store.delete_many(["a"])
    assert store.tagging.tag_many(["a"], EXPIRE_NOW) == [TagOutcome("a", GONE)]


def test_whoever_has_no_tags_at_all_is_told(store, put_tagged):
    put_tagged("bare")
    put_tagged("theirs", "k=v")
    put_tagged("ours", "lakefs-expire-now=1")
    found = store.tagging.tagless(["bare", "theirs", "ours", "none"])
    assert results(found) == [("bare", BARE), ("theirs", TAGGED), ("ours", TAGGED), ("none", GONE)]


def test_odd_names_are_tagged_exactly(store, tags):
    for key in ODD_KEYS:
        store.put(key, [b"x"])
    store.put("a%2520b", [b"x"])
    assert store.tagging.tag_many(ODD_KEYS, EXPIRE_NOW) == [TagOutcome(key, TAGGED) for key in ODD_KEYS]
    assert all(tags(key) == {"lakefs-expire-now": "1"} for key in ODD_KEYS)
    assert tags("a%2520b") == {}


def test_an_odd_tag_is_kept_exactly(store, tags, put_tagged):
    put_tagged("a")
    tag = ObjectTag.parse("grün +-._:/@=x = y ")
    assert results(store.tagging.tag_many(["a"], tag)) == [("a", TAGGED)]
    assert tags("a") == {tag.key: tag.value}


def test_many_objects_and_a_call_before_each_few(store):
    keys = [f"data/{number:03}" for number in range(100)]
    for key in keys:
        store.put(key, [b"x"])
    calls = Counter()
    outcomes = store.tagging.tag_many(keys, EXPIRE_NOW, between=lambda: calls.update(["call"]))
    assert outcomes == [TagOutcome(key, TAGGED) for key in keys]
    assert calls["call"] == 7
    assert {each.result for each in store.tagging.tagless(keys)} == {TAGGED}


def test_no_keys_have_no_outcomes(store):
    assert store.tagging.tag_many([], EXPIRE_NOW) == store.tagging.untag_many([], EXPIRE_NOW) == []


def test_a_bucket_that_is_not_there_and_keys_that_are_not_ours_fail_for_each_key(store, monkeypatch):
    store.put("a", [b"x"])
    elsewhere = open_store(f"s3://{uuid.uuid4().hex}/root").tagging.tag_many(["a", "b"], EXPIRE_NOW)
    assert [each.result for each in elsewhere] == [FAILED, FAILED]
    assert all("there is no bucket" in each.detail for each in elsewhere)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    (refused,) = store.tagging.tag_many(["a"], EXPIRE_NOW)
    assert (refused.result, "was not allowed; check the keys" in refused.detail) == (FAILED, True)


def test_a_copy_has_the_metadata_and_no_tags(store, s3, bucket, tags, put_tagged):
    put_tagged(
        "a", "lakefs-expire-now=1&k=v", Metadata={"desilt-date": "1998", "m": "ü".encode().hex()}, ContentType="x/y"
    )
    store.copy("a", "b")
    assert store.get("b") == b"a"
    assert (tags("a"), tags("b")) == ({"lakefs-expire-now": "1", "k": "v"}, {})
    there = s3.head_object(Bucket=bucket, Key="root/b")
    assert (there["Metadata"], there["ContentType"]) == ({"desilt-date": "1998", "m": "c3bc"}, "x/y")


def test_a_copy_over_a_tagged_object_has_no_tags_either(store, tags, put_tagged):
    put_tagged("a")
    put_tagged("b", "lakefs-expire-now=1")
    store.copy("a", "b")
    assert (store.get("b"), tags("b")) == (b"a", {})


def test_what_is_moved_has_the_metadata_and_no_tags(store, s3, bucket, tags, put_tagged):
    for key in ("a", "b"):
        put_tagged(key, "lakefs-expire-now=1", Metadata={"m": key})
    assert store.move_many([("a", "away/a"), ("b", "away/b")]) == [
        Outcome("a", Result.REMOVED),
        Outcome("b", Result.REMOVED),
    ]
    for key in ("a", "b"):
        assert tags(f"away/{key}") == {}
        assert s3.head_object(Bucket=bucket, Key=f"root/away/{key}")["Metadata"] == {"m": key}


def test_what_has_a_date_of_a_story_is_copied_and_tagged_too(store, tags):
    then = datetime(1998, 1, 20, tzinfo=UTC)
    story = dated(store, lambda: then)
    story.put("a", [b"x"])
    assert results(story.tagging.tag_many(["a"], EXPIRE_NOW)) == [("a", TAGGED)]
    assert story.head("a").modified_at == then
    story.copy("a", "b")
    assert (story.head("b").modified_at, tags("b")) == (then, {})
    story.move_many([("a", "c")])
    assert (story.head("c").modified_at, tags("c")) == (then, {})


def test_an_object_too_large_to_copy_leaves_its_tags_too(store, tags, put_tagged, monkeypatch):
    monkeypatch.setattr("desilt.objects.cloud.COPY_LIMIT", {"s3": 0})
    put_tagged("a", "lakefs-expire-now=1")
    store.copy("a", "b")
    assert (store.get("b"), tags("b")) == (b"a", {})


def test_a_copy_of_nothing_or_in_no_bucket_is_said(store, bucket):
    with pytest.raises(NotFound, match="there is no object 'none'"):
        store.copy("none", "b")
    with pytest.raises(StorageFailed, match="there is no bucket"):
        open_store(f"s3://{bucket}x/root").copy("a", "b")


class Proxy:
    """Passes requests on; of some it says 503, and the answers to some it loses once the server has done them."""

    def __init__(self, to):
        self.to, self.busy, self.loses, self.asked = to, Counter(), Counter(), []
        self._lock = threading.Lock()

    def due(self, counter, what):
        with self._lock:
            counter[what] -= (is_due := counter[what] > 0)
            return is_due

    def pass_on(self, request):
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        self.asked.append(request.command)
        if self.due(self.busy, request.command):
            said = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
            return 503, {}, said
        server = http.client.HTTPConnection(self.to)
        server.putrequest(request.command, request.path, skip_host=True, skip_accept_encoding=True)
        for name, value in request.headers.items():
            if name.lower() != "expect":
                server.putheader(name, value)
        server.endheaders(body)
        answer = server.getresponse()
        told = answer.status, dict(answer.getheaders()), answer.read()
        server.close()
        return None if self.due(self.loses, request.command) else told


@contextmanager
def proxy(endpoint):
    passing = Proxy(urlsplit(endpoint).netloc)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # else whoever asks whether to go on is left waiting

        def answer(self):
            told = passing.pass_on(self)
            if told is None:
                self.close_connection = True
                return
            status, headers, body = told
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_):
            pass

        do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = answer  # noqa: N815 - as the server asks

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            passing.endpoint = f"http://127.0.0.1:{server.server_port}"
            yield passing
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def unsteady(bucket, s3_server, monkeypatch):  # noqa: ARG001 - made before the proxy is between
    """A proxy before the server, through which all go from here on."""
    with proxy(s3_server.endpoint) as passing:
        monkeypatch.setenv("AWS_ENDPOINT_URL", passing.endpoint)
        monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0)
        yield passing


def test_a_server_that_says_slow_down_is_asked_again(store, unsteady, tags, put_tagged):
    put_tagged("a", "owner=them")
    unsteady.busy.update({"GET": 3, "PUT": 3})
    assert results(store.tagging.tag_many(["a"], EXPIRE_NOW)) == [("a", TAGGED)]
    assert tags("a") == {"owner": "them", "lakefs-expire-now": "1"}
    unsteady.busy.update({"GET": 8, "PUT": 8, "DELETE": 8})
    assert results(store.tagging.untag_many(["a"], EXPIRE_NOW)) == [("a", FAILED)]


def test_many_at_a_server_that_is_often_busy_are_all_tagged(store, unsteady):
    keys = [f"data/{number:03}" for number in range(48)]
    for key in keys:
        store.put(key, [b"x"])
    unsteady.busy.update({"GET": 7, "PUT": 7})  # fewer than any one of them is asked again
    assert store.tagging.tag_many(keys, EXPIRE_NOW) == [TagOutcome(key, TAGGED) for key in keys]
    assert {each.result for each in store.tagging.tagless(keys)} == {TAGGED}


def test_an_answer_that_is_lost_is_asked_for_again(store, unsteady, tags, put_tagged):
    put_tagged("a", "owner=them")
    unsteady.loses.update({"GET": 1, "PUT": 2})
    assert results(store.tagging.tag_many(["a"], EXPIRE_NOW)) == [("a", TAGGED)]
    assert tags("a") == {"owner": "them", "lakefs-expire-now": "1"}
    unsteady.loses.update({"PUT": 1})
    assert results(store.tagging.untag_many(["a"], EXPIRE_NOW)) == [("a", UNTAGGED)]
    assert tags("a") == {"owner": "them"}
    put_tagged("b", "lakefs-expire-now=1")
    unsteady.loses.update({"DELETE": 1})
    assert results(store.tagging.untag_many(["b"], EXPIRE_NOW)) == [("b", UNTAGGED)]
    assert tags("b") == {}


def test_a_copy_whose_answer_is_lost_is_there_once_and_bare(store, unsteady, tags, put_tagged):
    put_tagged("a", "lakefs-expire-now=1")
    unsteady.busy.update({"PUT": 2})
    unsteady.loses.update({"PUT": 1})
    store.copy("a", "b")
    assert (store.get("b"), tags("b")) == (b"a", {})


@pytest.fixture
def rules(store):
    return BucketRules(store)


def ours(days=1, *, versioned=False):
    return expiry_rule("desilt", "root/", EXPIRE_NOW, days, versioned)


def test_a_bucket_has_no_rules_at_first(rules):
    assert rules.read() == []
    assert covering(rules.read(), "root/", EXPIRE_NOW).why == "the bucket has no lifecycle rules"


def test_our_rule_is_written_beside_those_of_others(rules, s3, bucket):
    s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": THEIRS})
    theirs = rules.read()
    assert theirs == THEIRS
    rules.write(merged(theirs, ours()))
    assert rules.read() == [*THEIRS, ours()]
    assert covering(rules.read(), "root/", EXPIRE_NOW).rule == "desilt"
    rules.write(merged(rules.read(), ours(9, versioned=True)))
    assert rules.read() == [*THEIRS, ours(9, versioned=True)]


def test_a_rule_for_a_whole_bucket(bucket):
    rules = BucketRules(open_store(f"s3://{bucket}"))
    rules.write([expiry_rule("desilt", "", EXPIRE_NOW, 1, False)])
    assert covering(rules.read(), "", EXPIRE_NOW).days == 1


def test_a_setting_beside_the_rules_is_kept(rules, s3, bucket):
    kept = {"TransitionDefaultMinimumObjectSize": "varies_by_storage_class"}
    s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": THEIRS}, **kept)
    rules.write(merged(rules.read(), ours()))
    found = s3.get_bucket_lifecycle_configuration(Bucket=bucket)
    assert found["TransitionDefaultMinimumObjectSize"] == "varies_by_storage_class"


def test_a_rule_that_was_made_or_changed_meanwhile_is_not_overwritten(rules, s3, bucket):
    wanted = merged(rules.read(), ours())
    s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": THEIRS[:2]})
    with pytest.raises(StorageFailed, match=r"rule 'old' .* would be lost.*; read them again, nothing was written"):
        rules.write(wanted)
    assert rules.read() == THEIRS[:2]
    changed = [{**THEIRS[0], "Status": "Disabled"}, THEIRS[1]]
    wanted = merged(rules.read(), ours())
    s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": changed})
    with pytest.raises(StorageFailed, match="rule 'old'"):
        rules.write(wanted)
    assert rules.read() == changed


@pytest.mark.parametrize("lost", [0, 1])
def test_a_rule_that_is_not_read_back_is_not_taken_for_written(rules, monkeypatch, lost):
    monkeypatch.setattr(bucket_rules, "READ_BACK_SECONDS", (0, 0))
    wanted = [THEIRS[0], ours()]
    monkeypatch.setattr(rules, "read", lambda: [rule for rule in wanted if rule is not wanted[lost]])
    with pytest.raises(StorageFailed, match=f"rule {wanted[lost]['ID']!r} was written .*, but is not there"):
        rules.write(wanted)


def test_rules_that_show_late_are_waited_for(rules, monkeypatch):
    monkeypatch.setattr(bucket_rules, "READ_BACK_SECONDS", (0, 0, 0))
    answers = iter([[], [], [ours()]])
    monkeypatch.setattr(rules, "read", lambda: next(answers))
    rules.write([ours()])


def test_a_rule_that_the_server_does_not_know_is_refused_and_changes_nothing(rules, s3, bucket):
    s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": THEIRS})
    moving = {
        "ID": "cold",
        "Filter": {"Prefix": "z/"},
        "Status": "Enabled",
        "Transitions": [{"Days": 30, "StorageClass": "GLACIER"}],
    }
    with pytest.raises(StorageFailed, match=r"writing the lifecycle rules of .*NotImplemented"):
        rules.write([*THEIRS, moving])
    assert rules.read() == THEIRS


def test_rules_of_no_bucket_are_an_error(bucket):
    rules = BucketRules(open_store(f"s3://{bucket}x"))
    for ask in (rules.read, rules.versioning, rules.strangers, lambda: rules.write([ours()])):
        with pytest.raises(StorageFailed, match="there is no bucket"):
            ask()


def test_whether_a_bucket_keeps_versions(rules, s3, bucket):
    assert rules.versioning() == "Off"
    for status in ("Enabled", "Suspended"):
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})
        assert rules.versioning() == status


def test_what_lies_beside_our_root_is_shown(s3, bucket):
    for key in ("a/in", "a/b/in/deep", "a/b/x", "a/bc/out", "a/b-/out", "a/out", "ab/out", "out", "z/o/u/t"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"")
    rules = BucketRules(open_store(f"s3://{bucket}/a/b"))
    everything = ["a/b-/out", "a/bc/out", "a/in", "a/out", "ab/out", "out", "z/o/u/t"]
    assert sorted(rules.strangers(limit=99)) == everything
    assert len(rules.strangers()) == 3
    assert set(rules.strangers()) <= set(everything)
    assert BucketRules(open_store(f"s3://{bucket}/a")).strangers(9) == ["out", "ab/out", "z/o/u/t"]


def test_at_the_root_of_a_bucket_a_lake_is_no_stranger(s3, bucket):
    for key in ("repos/demo/branches/x", "_desilt/clock"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"")
    rules = BucketRules(open_store(f"s3://{bucket}"))
    assert rules.strangers() == []
    for key in ("repository/x", "notes"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"")
    assert sorted(rules.strangers()) == ["notes", "repository/x"]


def test_an_empty_bucket_has_no_strangers(rules):
    assert rules.strangers() == []
