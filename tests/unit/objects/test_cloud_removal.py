"""What a bucket answers to removals, from a server that answers what the test says."""

import re
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape, unescape

import pytest

from desilt.domain.times import IN_FLIGHT
from desilt.objects import Outcome, Result, buckets, open_store, s3_client, s3_removal
from desilt.objects.cloud_removal import AT_ONCE
from desilt.objects.versions import Version

REMOVED, GONE, FAILED = Result


class Bucket:
    """Objects by key; ``refuse`` maps what a key ends with to the status and code of its refusal."""

    def __init__(self):
        self.objects, self.refuse, self.bulk, self.out_of_order = {}, {}, True, False
        self.asked = []

    def answer(self, method, path, body, copied):
        self.asked.append((method, path))
        if method == "POST":
            return self.delete(re.findall("<Key>(.*?)</Key>", body))
        key = path.removeprefix("/bucket/")
        if refusal := self.refusal(key):
            status, code = refusal
            return status, f"<Error><Code>{code}</Code></Error>"
        if method == "DELETE":
            self.objects.pop(key, None)
            return 204, ""
        if method == "PUT":
            self.objects[key] = self.cut(self.objects[copied.removeprefix("/").removeprefix("bucket/")])
            return 200, "<CopyObjectResult><ETag>x</ETag></CopyObjectResult>"
        return (200, self.objects[key]) if key in self.objects else (404, "<Error><Code>NoSuchKey</Code></Error>")

    def delete(self, keys):
        if not self.bulk:
            return 404, "<html>no such page</html>"
        if self.out_of_order:
            return 500, "<Error><Code>InternalError</Code></Error>"
        rows = []
        for key in (unescape(key, {"&apos;": "'", "&quot;": '"'}) for key in keys):
            if refusal := self.refusal(key):
                rows.append(
                    f"<Error><Key>{escape(key)}</Key><Code>{refusal[1]}</Code><Message>no,\nno</Message></Error>"
                )
            else:
                self.objects.pop(key, None)
                rows.append(f"<Deleted><Key>{escape(key)}</Key></Deleted>")
        return 200, f"<DeleteResult>{''.join(rows)}</DeleteResult>"

    def refusal(self, key):
        return next((answer for end, answer in self.refuse.items() if key.endswith(end)), None)

    def cut(self, body):
        return body


@pytest.fixture
def bucket(monkeypatch):
    served = Bucket()

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            status, text = served.answer(self.command, self.path, body, self.headers.get("x-amz-copy-source"))
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.send_header("Last-Modified", "Tue, 20 Jan 1998 12:00:00 GMT")
            self.send_header("ETag", '"x"')
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text.encode())

        def log_message(self, *_):
            pass

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - as the server asks

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
            monkeypatch.setenv(name, "x")
        monkeypatch.setattr(buckets, "RETRY", {"max_retries": 0})
        monkeypatch.setattr(s3_removal, "REMOVALS", 1)
        yield served
        server.shutdown()
        thread.join()


@pytest.fixture
def store(bucket):
    bucket.objects = {f"r/{name}": name for name in ("a", "b", "c", "d")}
    return open_store("s3://bucket/r")


def results(outcomes):
    return {each.key: each.result for each in outcomes}


def test_one_request_removes_all(bucket, store):
    assert results(store.delete_many(["a", "b", "d"])) == {"a": REMOVED, "b": REMOVED, "d": REMOVED}
    assert bucket.asked == [("POST", "/bucket?delete")]
    assert list(bucket.objects) == ["r/c"]


@pytest.mark.parametrize(
    ("status", "code", "result", "detail"),
    [
        (403, "AccessDenied", FAILED, "removing 'b' in s3://bucket/r was not allowed; check the keys"),
        (500, "InternalError", FAILED, "removing 'b' in s3://bucket/r failed: InternalError"),
        (503, "SlowDown", FAILED, "removing 'b' in s3://bucket/r failed: SlowDown; the store has no time"),
        (409, "OperationAborted", FAILED, "removing 'b' in s3://bucket/r failed"),
        (404, "NoSuchKey", GONE, ""),
        (404, "NoSuchBucket", FAILED, "there is no bucket for s3://bucket/r; create it"),
    ],
)
def test_one_refused_key_among_many_fails_alone(bucket, store, status, code, result, detail):
    bucket.refuse["/b"] = status, code
    outcomes = store.delete_many(["a", "b", "c", "b"])
    assert [each.key for each in outcomes] == ["a", "b", "c", "b"]
    assert [each.result for each in outcomes] == [REMOVED, result, REMOVED, result]
    assert detail in outcomes[1].detail
    assert "\n" not in outcomes[1].detail
    assert sorted(bucket.objects) == ["r/b", "r/d"]


def test_a_server_without_the_bulk_call_is_asked_for_each_key(bucket, store):
    bucket.bulk = False  # its 404 says nothing about the objects
    assert results(store.delete_many(["a", "none", "b"])) == {"a": REMOVED, "none": REMOVED, "b": REMOVED}
    assert sorted(bucket.objects) == ["r/c", "r/d"]
    assert sorted(bucket.asked[1:]) == [
        ("DELETE", "/bucket/r/a"),
        ("DELETE", "/bucket/r/b"),
        ("DELETE", "/bucket/r/none"),
    ]


@pytest.mark.parametrize(
    ("there", "result", "detail"),
    [
        ((404, "NoSuchKey"), GONE, ""),
        ((404, "NoSuchBucket"), FAILED, "there is no bucket"),
        (None, FAILED, "was said to be gone, but is there"),
    ],
)
def test_a_404_without_a_reason_is_looked_into(bucket, store, there, result, detail):
    def asked(method, path, body, copied, real=bucket.answer):
        return (404, "") if method in ("POST", "DELETE") else real(method, path, body, copied)

    bucket.answer = asked
    bucket.refuse = {"/b": there} if there else {}
    (outcome,) = store.delete_many(["b"])
    assert outcome.result is result
    assert detail in outcome.detail


def test_a_refusal_does_not_keep_the_rest_from_being_asked(bucket, store):
    bucket.refuse["-no"] = 403, "AccessDenied"
    refused = [f"{number}-no" for number in range(3 * AT_ONCE)]
    assert results(store.delete_many([*refused, "a"])) == {**dict.fromkeys(refused, FAILED), "a": REMOVED}


def test_a_server_out_of_order_is_not_asked_a_thousand_times(bucket, store):
    bucket.refuse[""] = 500, "InternalError"
    bucket.out_of_order = True
    keys = [f"{number}" for number in range(1001)]
    for outcomes in (store.delete_many(keys), store.move_many([(key, f"to/{key}") for key in keys])):
        assert [(each.key, each.result) for each in outcomes] == [(key, FAILED) for key in keys]
        assert all("Internal" in each.detail for each in outcomes)
        assert outcomes[-1].detail.startswith("not tried, since the store did not answer before: ")
        assert (outcomes[0].tried, outcomes[-1].tried) == (True, False)  # what was not is not ours, if it is gone
    assert [method for method, _ in bucket.asked].count("POST") == 1
    assert len(bucket.asked) <= 3 * AT_ONCE


def test_keys_that_the_server_has_no_time_for_are_not_asked_for_one_by_one(bucket, store):
    bucket.refuse["-busy"] = 503, "SlowDown"
    busy = [f"{number}-busy" for number in range(500)]
    assert results(store.delete_many([*busy, "a", "b"])) == {**dict.fromkeys(busy, FAILED), "a": REMOVED, "b": REMOVED}
    assert bucket.asked == [("POST", "/bucket?delete")]
    assert sorted(bucket.objects) == ["r/c", "r/d"]


def test_keys_are_told_apart_whatever_is_in_them(bucket, store):
    names = ["a&b", "<Error>", "</DeleteResult>", "ä ö", "'\""]
    bucket.objects = {f"r/{name}": name for name in names}
    bucket.refuse["Error>"] = 503, "SlowDown"
    assert results(store.delete_many(names)) == {**dict.fromkeys(names, REMOVED), "<Error>": FAILED}
    assert list(bucket.objects) == ["r/<Error>"]


@pytest.mark.parametrize("answer", ["", "<DeleteResult>", "<DeleteResult><Error><Key>", "what?"])
def test_an_answer_that_is_cut_off_is_no_answer(bucket, store, answer):
    def asked(method, path, body, copied, real=bucket.answer):
        return (200, answer) if method == "POST" else real(method, path, body, copied)

    bucket.answer = asked
    assert results(store.delete_many(["a", "b"])) == {"a": FAILED, "b": FAILED}


def test_a_key_that_the_answer_leaves_out_is_asked_for_alone(bucket, store):
    def asked(method, path, body, copied, real=bucket.answer):
        status, text = real(method, path, body, copied)
        if method == "POST":
            bucket.objects["r/b"] = "b"
        return status, text.replace("<Deleted><Key>r/b</Key></Deleted>", "")

    bucket.answer = asked
    bucket.refuse["/c"] = 503, "SlowDown"
    assert results(store.delete_many(["a", "b", "c"])) == {"a": REMOVED, "b": REMOVED, "c": FAILED}
    assert ("DELETE", "/bucket/r/b") in bucket.asked
    assert sorted(bucket.objects) == ["r/c", "r/d"]


def answering(bucket, text):
    """Bulk deletes do nothing, and are answered with ``text``; what is asked for alone is done."""

    def asked(method, path, body, copied, real=bucket.answer):
        if method != "POST":
            return real(method, path, body, copied)
        bucket.asked.append((method, path))
        return 200, text

    bucket.answer = asked


def a_row(kind, key=None, code=None):
    parts = {"Key": key, "Code": code, "Message": code}
    return f"<{kind}>{''.join(f'<{n}>{v}</{n}>' for n, v in parts.items() if v is not None)}</{kind}>"


@pytest.mark.parametrize("also", ["", a_row("Deleted", "r/none"), a_row("Deleted")])
def test_a_key_that_is_left_out_where_nothing_went_wrong_is_not_taken_for_removed(bucket, store, also):
    answering(bucket, f"<DeleteResult>{a_row('Deleted', 'r/a')}{also}</DeleteResult>")
    bucket.refuse["/c"] = 403, "AccessDenied"
    assert results(store.delete_many(["a", "b", "c"])) == {"a": REMOVED, "b": REMOVED, "c": FAILED}
    assert sorted(bucket.asked[1:]) == [("DELETE", "/bucket/r/b"), ("DELETE", "/bucket/r/c")]


@pytest.mark.parametrize("key", [None, "", "r/none", "b"])
@pytest.mark.parametrize("code", ["AccessDenied", "SlowDown", ""])
def test_an_error_that_names_none_of_the_keys_is_of_those_that_were_left_out(bucket, store, key, code):
    answering(bucket, f"<DeleteResult>{a_row('Deleted', 'r/a')}{a_row('Error', key, code)}</DeleteResult>")
    bucket.refuse["/b"] = 403, "AccessDenied"
    assert results(store.delete_many(["a", "b"])) == {"a": REMOVED, "b": FAILED}
    assert bucket.asked[1:] == ([] if code == "SlowDown" else [("DELETE", "/bucket/r/b")])


@pytest.mark.parametrize("code", ["AccessDenied", "SlowDown"])
def test_where_all_are_said_to_be_removed_and_an_error_names_none_of_them_none_is_taken_for_removed(
    bucket, store, code
):
    said = "".join(a_row("Deleted", f"r/{name}") for name in "ab")
    answering(bucket, f"<DeleteResult>{said}{a_row('Error', None, code)}</DeleteResult>")
    bucket.refuse["/a"] = bucket.refuse["/b"] = 403, "AccessDenied"
    assert results(store.delete_many(["a", "b"])) == {"a": FAILED, "b": FAILED}


def test_of_more_errors_that_name_no_key_than_keys_were_left_out_one_may_be_of_any(bucket, store):
    said = "".join(a_row("Deleted", f"r/{name}") for name in "ab")
    answering(bucket, f"<DeleteResult>{said}{a_row('Error', 'x') + a_row('Error', 'y')}</DeleteResult>")
    bucket.refuse["/a"] = bucket.refuse["/b"] = 403, "AccessDenied"
    assert results(store.delete_many(["a", "b", "c"])) == {"a": FAILED, "b": FAILED, "c": REMOVED}
    assert sorted(bucket.objects) == ["r/a", "r/b", "r/d"]


def test_a_key_that_is_said_to_be_removed_and_refused_is_not_taken_for_removed(bucket, store):
    both = a_row("Deleted", "r/a") + a_row("Error", "r/a", "SlowDown")
    answering(bucket, f"<DeleteResult>{both}{a_row('Deleted', 'r/b')}</DeleteResult>")
    assert results(store.delete_many(["a", "b"])) == {"a": FAILED, "b": REMOVED}


def test_an_error_in_place_of_an_answer_is_none(bucket, store):
    """S3 may have begun to answer with 200 before it failed."""
    answering(bucket, "<Error><Code>InternalError</Code><Message>once more</Message></Error>")
    assert results(store.delete_many(["a", "b"])) == {"a": FAILED, "b": FAILED}
    assert sorted(bucket.objects) == ["r/a", "r/b", "r/c", "r/d"]


@pytest.mark.parametrize(("asleep", "sent"), [(0, 2), (1, 1)])
def test_a_bulk_delete_is_not_sent_again_when_others_take_it_for_over(bucket, store, monkeypatch, asleep, sent):
    """Whoever took the run over may have brought its objects back: the machine was asleep, the lock is another's."""
    clock = [0.0]

    def asked(method, path, body, copied, real=bucket.answer):
        bucket.out_of_order = not bucket.asked
        clock[0] += asleep * IN_FLIGHT.total_seconds()
        return real(method, path, body, copied)

    bucket.answer = asked
    monkeypatch.setattr(s3_client, "elapsed", lambda: clock[0])
    monkeypatch.setattr(s3_removal, "REMOVALS", 2)
    assert results(store.delete_many(["a", "b"])) == dict.fromkeys(["a", "b"], FAILED if asleep else REMOVED)
    assert bucket.asked == [("POST", "/bucket?delete")] * sent
    assert ("r/a" in bucket.objects) == bool(asleep)


def versions_of(*names):
    return [Version(name, "1", 1, datetime(1998, 1, 20, tzinfo=UTC)) for name in names]


def deleted(key, version):
    return f"<Deleted><Key>{key}</Key>{f'<VersionId>{version}</VersionId>' if version else ''}</Deleted>"


def test_versions_that_an_answer_does_not_name_are_not_taken_for_removed(bucket, store):
    """An answer without a body reads like one without errors; the version that a read finds would go next."""
    for told, unsaid in [
        ("", "ab"),
        (deleted("r/a", "1"), "b"),
        (deleted("r/a", "") + deleted("r/b", "1"), "a"),  # a plain delete, which has hidden it
        (deleted("r/a", "2") + deleted("a", "1") + deleted("r/b", "1"), "a"),
        (deleted("r/a", "1") + deleted("r/b", "1"), ""),
    ]:
        answering(bucket, f"<DeleteResult>{told}</DeleteResult>" if told else "")
        found = {one.version.key: one.error for one in store.versions.remove_versions(versions_of("a", "b"))}
        assert found == {name: "the store does not say that it is gone" if name in unsaid else "" for name in "ab"}


@pytest.mark.usefixtures("store")
def test_a_server_said_to_have_no_bulk_call_is_not_asked_for_one(bucket, monkeypatch):
    monkeypatch.setenv("AWS_DISABLE_BULK_DELETE", "true")
    assert results(open_store("s3://bucket/r").delete_many(["a", "b"])) == {"a": REMOVED, "b": REMOVED}
    assert sorted(bucket.asked) == [("DELETE", "/bucket/r/a"), ("DELETE", "/bucket/r/b")]


@pytest.mark.usefixtures("bucket")
def test_a_server_that_is_not_there_fails_for_each_key(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    dead = open_store("s3://bucket/r")
    outcomes = [*dead.delete_many(["a", "b"]), *dead.move_many([("a", "c")])]
    assert [(each.key, each.result) for each in outcomes] == [("a", FAILED), ("b", FAILED), ("a", FAILED)]
    assert all(each.detail.endswith("check the network and the endpoint") for each in outcomes)


def test_a_move_whose_source_stays_has_failed(bucket, store):
    def asked(method, path, body, copied, real=bucket.answer):
        if method == "POST" or (method == "DELETE" and path.endswith("/b")):
            return 403, "<Error><Code>AccessDenied</Code></Error>"
        return real(method, path, body, copied)

    bucket.answer = asked
    assert results(store.move_many([("a", "to/a"), ("b", "to/b")])) == {"a": REMOVED, "b": FAILED}
    assert sorted(bucket.objects) == ["r/b", "r/c", "r/d", "r/to/a", "r/to/b"]


def test_a_source_removed_by_another_after_its_copy_has_moved(bucket, store):
    def asked(method, path, body, copied, real=bucket.answer):
        if method in ("POST", "DELETE"):
            bucket.objects.pop("r/a", None)
            return 404, "<Error><Code>NoSuchKey</Code></Error>"
        return real(method, path, body, copied)

    bucket.answer = asked
    assert store.move_many([("a", "to/a")]) == [Outcome("a", REMOVED)]
    assert bucket.objects["r/to/a"] == "a"


def test_a_copy_that_fails_or_is_cut_off_keeps_the_source(bucket, store):
    bucket.objects["r/long"] = "a longer body"
    bucket.cut = lambda body: body[:5]
    bucket.refuse["to/b"] = 403, "AccessDenied"
    outcomes = store.move_many([("long", "to/long"), ("b", "to/b"), ("c", "to/c")])
    assert results(outcomes) == {"long": FAILED, "b": FAILED, "c": REMOVED}
    assert "is cut off; move it again" in outcomes[0].detail
    assert bucket.objects["r/long"] == "a longer body"
    assert bucket.objects["r/b"] == "b"
    assert "r/c" not in bucket.objects


@pytest.mark.parametrize(("uri", "keys"), [("s3://bucket", 1000), ("az://container", 256)])
def test_one_request_takes_as_many_keys_as_the_provider_allows(monkeypatch, uri, keys):
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")
    store = open_store(uri)
    assert store.delete_batch == keys
    assert not store.moves_cheaply
