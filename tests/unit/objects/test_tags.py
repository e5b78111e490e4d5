"""What a tag may be, and what a bucket's answers about tags mean, from a server that answers what the test says."""

import pickle
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import pytest

from desilt.errors import BadRequest, StorageFailed
from desilt.objects import open_store
from desilt.objects.cloud_removal import AT_ONCE
from desilt.objects.cloud_tags import CloudTags
from desilt.objects.s3_client import ATTEMPTS
from desilt.objects.tags import EXPIRE_NOW, ObjectTag, TagOutcome, TagResult

TAGGED, UNTAGGED, BARE, GONE, FAILED = TagResult
NONE = "<TagSet></TagSet>"


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("lakefs-expire-now=1", "lakefs-expire-now", "1"),
        ("k=", "k", ""),
        ("k=a=b", "k", "a=b"),
        ("a +-._:/@b=x y", "a +-._:/@b", "x y"),
        ("grün=日本", "grün", "日本"),
        ("k" * 128 + "=" + "v" * 256, "k" * 128, "v" * 256),
        ("aws=1", "aws", "1"),
    ],
)
def test_a_tag_is_read_and_written_as_key_and_value(text, key, value):
    tag = ObjectTag.parse(text)
    assert (tag.key, tag.value, str(tag)) == (key, value, text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no '='"),
        ("expire", "no '='"),
        ("=1", "its key has 0 characters"),
        ("k" * 129 + "=1", "its key has 129 characters"),
        ("k=" + "v" * 257, "its value has 257 characters"),
        ("aws:x=1", "for AWS alone"),
        ("AWS:x=1", "for AWS alone"),
        ("a,b=1", "holds ','"),
        ("a=<1>", "holds '<'"),
        ("a=1\n", r"holds '\\n'"),
        ("a\tb=1", r"holds '\\t'"),
        ("a=\ud800", "holds"),
    ],
)
def test_what_cannot_be_a_tag_is_refused_with_what_can(text, reason):
    with pytest.raises(BadRequest, match=f"cannot be a tag: .*{reason}.*; write KEY=VALUE"):
        ObjectTag.parse(text)


def test_the_tag_is_the_one_that_lakefs_has():
    assert ObjectTag.parse("lakefs-expire-now=1") == EXPIRE_NOW


@pytest.mark.parametrize(("uri", "has"), [("s3://bucket/r", True), ("az://container", False), ("memory://m", False)])
def test_only_s3_has_tags(monkeypatch, uri, has):
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")
    assert (open_store(uri).tagging is not None) is has


def test_a_directory_has_no_tags(tmp_path):
    assert open_store(str(tmp_path)).tagging is None


class Bucket:
    """Tags by key; ``refuse`` maps a method and key to answers, the last of which stays."""

    def __init__(self):
        self.tags, self.refuse, self.asked = {}, {}, []

    def answer(self, method, path, body):
        key, _, query = path.removeprefix("/bucket/").partition("?")
        key = unquote(key)
        self.asked.append((method, key, query))
        if answers := self.refuse.get((method, key)) or self.refuse.get((method, "")):
            status, code = answers.pop(0) if len(answers) > 1 else answers[0]
            if code != "go on":
                return status, f"<Error><Code>{code}</Code><Message>no,\nno</Message></Error>" if code else ""
        if key not in self.tags:
            return 404, "<Error><Code>NoSuchKey</Code></Error>"
        if query != "tagging":
            return 200, "x"
        if method == "PUT":
            self.tags[key] = body[body.index("<TagSet>") : body.index("</Tagging>")]
        if method == "DELETE":
            self.tags[key] = NONE
        return (204 if method == "DELETE" else 200), f"<Tagging>{self.tags[key]}</Tagging>" if method == "GET" else ""


@pytest.fixture
def bucket(monkeypatch):
    served = Bucket()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            status, text = served.answer(self.command, self.path, body)
            self.send_response(status)
            if status != 204:
                self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_):
            pass

        do_GET = do_PUT = do_DELETE = answer  # noqa: N815 - as the server asks

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
            monkeypatch.setenv(name, "x")
        monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0)
        yield served
        server.shutdown()
        thread.join()


@pytest.fixture
def tagging(bucket):
    bucket.tags = {f"r/{name}": NONE for name in ("a", "b", "c")}
    return CloudTags("bucket", "r/")


def results(outcomes):
    return [(each.key, each.result) for each in outcomes]


def test_a_tag_that_is_there_is_not_written_again(bucket, tagging):
    assert results(tagging.tag_many(["a", "b"], EXPIRE_NOW)) == [("a", TAGGED), ("b", TAGGED)]
    bucket.asked.clear()
    assert results(tagging.tag_many(["a", "b"], EXPIRE_NOW)) == [("a", TAGGED), ("b", TAGGED)]
    assert {method for method, _, _ in bucket.asked} == {"GET"}
    assert tagging.tag_many(["a"], ObjectTag(EXPIRE_NOW.key, "2")) == [TagOutcome("a", TAGGED)]
    assert "<Value>2</Value>" in bucket.tags["r/a"]
    assert "<Value>1</Value>" not in bucket.tags["r/a"]


@pytest.mark.parametrize(
    ("status", "code", "result", "detail"),
    [
        (403, "AccessDenied", FAILED, "the tags of 'b' in s3://bucket/r was not allowed; check the keys"),
        (404, "NoSuchKey", GONE, ""),
        (404, "NoSuchBucket", FAILED, "there is no bucket for s3://bucket/r; create it"),
        (404, "", FAILED, "404"),
        (405, "MethodNotAllowed", FAILED, "MethodNotAllowed"),
        (500, "InternalError", FAILED, "InternalError"),
        (503, "SlowDown", FAILED, "SlowDown"),
        (501, "NotImplemented", FAILED, "NotImplemented"),
    ],
)
def test_one_refused_key_among_many_fails_alone(bucket, tagging, status, code, result, detail):
    bucket.refuse["GET", "r/b"] = [(status, code), (200, "go on")] if status in (404, 405) else [(status, code)]
    outcomes = tagging.tag_many(["a", "b", "c"], EXPIRE_NOW)
    assert results(outcomes) == [("a", TAGGED), ("b", result), ("c", TAGGED)]
    assert detail in outcomes[1].detail
    assert "\n" not in outcomes[1].detail


@pytest.mark.parametrize(("status", "code"), [(405, "MethodNotAllowed"), (404, "")])
def test_a_refusal_of_what_is_not_there_means_gone(bucket, tagging, status, code):
    """So S3 answers where a delete marker is the newest version."""
    bucket.refuse["GET", "r/none"] = [(status, code), (404, "NoSuchKey")]
    assert tagging.tagless(["none"]) == [TagOutcome("none", GONE)]
    bucket.refuse["PUT", "r/a"] = [(status, code)]
    bucket.refuse["GET", "r/a"] = [(200, "go on"), (404, "NoSuchKey")]  # its tags were read, then it went
    assert tagging.tag_many(["a"], EXPIRE_NOW) == [TagOutcome("a", GONE)]


@pytest.mark.parametrize(("status", "code"), [(503, "SlowDown"), (503, ""), (500, "InternalError"), (429, "TooMany")])
def test_a_server_that_is_busy_is_asked_again(bucket, tagging, status, code):
    bucket.refuse["GET", "r/a"] = [(status, code)] * 3 + [(200, "go on")]
    bucket.refuse["PUT", "r/a"] = [(status, code)] * 3 + [(200, "go on")]
    assert tagging.tag_many(["a"], EXPIRE_NOW) == [TagOutcome("a", TAGGED)]
    assert "lakefs-expire-now" in bucket.tags["r/a"]


def test_one_that_stays_busy_is_asked_eight_times(bucket, tagging):
    bucket.refuse["PUT", "r/a"] = [(503, "SlowDown")]
    (outcome,) = tagging.tag_many(["a"], EXPIRE_NOW)
    assert outcome.result is FAILED
    assert [method for method, _, _ in bucket.asked] == ["GET"] + ["PUT"] * ATTEMPTS


def test_a_server_out_of_order_is_not_asked_a_thousand_times(bucket, tagging):
    bucket.refuse["GET", ""] = [(500, "InternalError")]
    keys = [f"{number}" for number in range(1000)]
    for ask in (tagging.tagless, lambda keys: tagging.untag_many(keys, EXPIRE_NOW)):
        outcomes = ask(keys)
        assert results(outcomes) == [(key, FAILED) for key in keys]
        assert outcomes[-1].detail.startswith("not tried, since the store did not answer before: ")
    assert len({key for _, key, _ in bucket.asked}) == AT_ONCE


def test_a_refusal_does_not_keep_the_rest_from_being_asked(bucket, tagging):
    refused = [f"{number}" for number in range(2 * AT_ONCE)]
    bucket.refuse |= {("GET", f"r/{key}"): [(403, "AccessDenied")] for key in refused}
    assert results(tagging.tag_many([*refused, "a"], EXPIRE_NOW))[-1] == ("a", TAGGED)


def test_a_server_that_is_not_there_fails_for_each_key(tagging, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    outcomes = tagging.tag_many(["a", "b"], EXPIRE_NOW)
    assert results(outcomes) == [("a", FAILED), ("b", FAILED)]
    assert all(each.detail.endswith("check the network and the endpoint") for each in outcomes)


def test_what_is_raised_between_leaves_the_rest(bucket, tagging):
    keys = [f"{number}" for number in range(3 * AT_ONCE)]
    bucket.tags |= {f"r/{key}": NONE for key in keys}
    calls = iter([None, StorageFailed("enough")])

    def between():
        if error := next(calls):
            raise error

    with pytest.raises(StorageFailed, match="enough"):
        tagging.tag_many(keys, EXPIRE_NOW, between=between)
    assert {key for key, tags in bucket.tags.items() if tags != NONE} == {f"r/{key}" for key in keys[:AT_ONCE]}


def test_an_answer_without_tags_is_not_taken_for_none(bucket, tagging):
    bucket.tags["r/a"] = ""
    (outcome,) = tagging.tag_many(["a"], EXPIRE_NOW)
    assert (outcome.result, "does not say what tags" in outcome.detail) == (FAILED, True)
    assert bucket.tags["r/a"] == ""


def test_a_bad_key_among_good_ones_tags_nothing(bucket, tagging):
    with pytest.raises(BadRequest):
        tagging.tag_many(["a", "../b"], EXPIRE_NOW)
    assert bucket.asked == []


def test_tagging_goes_where_the_work_goes(bucket, tagging):
    assert pickle.loads(pickle.dumps(tagging)).tag_many(["a"], EXPIRE_NOW) == [TagOutcome("a", TAGGED)]
    assert "lakefs-expire-now" in bucket.tags["r/a"]
