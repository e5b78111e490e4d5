"""Batch jobs: what is asked of S3, and what its reports mean. The jobs are run by a stand-in: see its docstring."""

import csv
import io
import uuid
from urllib.parse import unquote

import pytest

from batch_operations import batch_operations
from desilt.errors import BadRequest, NotFound, StorageFailed
from desilt.objects import open_store
from desilt.objects.batch_tagging import BatchJobs, JobStatus, job_request, lines, manifest, outcome
from desilt.objects.tags import EXPIRE_NOW, TagOutcome, TagResult

TAGGED, UNTAGGED, BARE, GONE, FAILED = TagResult
ROLE = "arn:aws:iam::123456789012:role/tagger"
ODD_KEYS = ["a b", "a,b", 'a"b', "a+b", "a%20b", "ünï/çødé", "日本/𝄞", "a'b", "a&b=c", "plain/key-1_2.3~"]


def test_a_manifest_is_a_line_for_each_key_and_needs_no_quotes():
    assert manifest("lake", ["a/b", "a b", "a,b"]) == b"lake,a/b\nlake,a%20b\nlake,a%2Cb\n"
    assert manifest("lake", []) == b""


def test_every_key_is_read_back_from_a_manifest():
    rows = list(csv.reader(io.StringIO(manifest("lake", ODD_KEYS).decode())))
    assert [(bucket, unquote(key)) for bucket, key in rows] == [("lake", key) for key in ODD_KEYS]
    assert manifest("lake", ODD_KEYS).isascii()


def request(**changes):
    asked = {"manifest_key": "r/list.csv", "etag": '"e"', "tag": EXPIRE_NOW, "report_prefix": "r/reports/"}
    return job_request("lake", **{**asked, "role_arn": ROLE, "token": "run-1", **changes})


def test_a_job_is_asked_for_as_documented():
    assert request() == {
        "ConfirmationRequired": False,
        "Operation": {"S3PutObjectTagging": {"TagSet": [{"Key": "lakefs-expire-now", "Value": "1"}]}},
        "Manifest": {
            "Spec": {"Format": "S3BatchOperations_CSV_20180820", "Fields": ["Bucket", "Key"]},
            "Location": {"ObjectArn": "arn:aws:s3:::lake/r/list.csv", "ETag": "e"},
        },
        "Report": {
            "Bucket": "arn:aws:s3:::lake",
            "Format": "Report_CSV_20180820",
            "Enabled": True,
            "Prefix": "r/reports",
            "ReportScope": "AllTasks",
        },
        "Priority": 10,
        "RoleArn": ROLE,
        "ClientRequestToken": "run-1",
    }


def test_a_bucket_is_in_the_same_world_as_the_role():
    assert request(role_arn="arn:aws-cn:iam::123456789012:role/t")["Report"]["Bucket"] == "arn:aws-cn:s3:::lake"


def test_what_is_no_role_or_account_is_refused():
    with pytest.raises(BadRequest, match="'tagger' is not a role; write arn:aws"):
        request(role_arn="tagger")
    with pytest.raises(BadRequest, match="twelve digits"):
        BatchJobs(open_store("s3://bucket"), "12345", ROLE)
    with pytest.raises(BadRequest, match="is not a role"):
        BatchJobs(open_store("s3://bucket"), "123456789012", "tagger")


@pytest.mark.parametrize(
    ("status", "code", "http", "expected"),
    [
        ("succeeded", "", "200", TagOutcome("k", TAGGED)),
        ("succeeded", "200", "", TagOutcome("k", TAGGED)),
        ("failed", "NoSuchKey", "404", TagOutcome("k", GONE)),
        ("failed", "404", "NoSuchKey", TagOutcome("k", GONE)),
        ("failed", "", "404", TagOutcome("k", GONE)),
        ("failed", "NoSuchBucket", "404", TagOutcome("k", FAILED, "404 NoSuchBucket no, no")),
        ("failed", "AccessDenied", "403", TagOutcome("k", FAILED, "403 AccessDenied no, no")),
        ("failed", "", "", TagOutcome("k", FAILED, "no, no")),
    ],
)
def test_a_line_of_a_report(status, code, http, expected):
    row = {"TaskStatus": status, "ErrorCode": code, "HTTPStatusCode": http, "ResultMessage": "no,\nno"}
    assert outcome("k", row) == expected


@pytest.mark.parametrize("size", [1, 3, 100])
def test_lines_are_whole_wherever_chunks_are_cut(size):
    text = 'a,"b\nc"\nü,d\ne'.encode()
    found = csv.reader(lines(text[at : at + size] for at in range(0, len(text), size)))
    assert list(found) == [["a", "b\nc"], ["ü", "d"], ["e"]]


@pytest.fixture
def batch(s3_server, monkeypatch):
    with batch_operations(s3_server) as found:
        for name, value in {**s3_server.env, **found.env}.items():
            monkeypatch.setenv(name, value)
        found.bucket = s3_server.create_bucket(f"batch-{uuid.uuid4().hex}")
        yield found


@pytest.fixture
def store(batch):
    return open_store(f"{batch.bucket}/root")


@pytest.fixture
def jobs(store):
    return BatchJobs(store, "123456789012", ROLE)


def start(jobs, keys, token="run-1"):
    etag = jobs.write_manifest("list.csv", keys)
    return jobs.create("list.csv", etag, EXPIRE_NOW, "reports", token)


def over(jobs, job):
    while not (found := jobs.status(job)).over:
        pass
    return found


def test_a_job_tags_what_is_listed_and_reports_each(jobs, store, batch):
    for key in [*ODD_KEYS, "not listed", "refused"]:
        store.put(key, [b"x"])
    batch.refuse["root/refused"] = "AccessDenied", "403", "not,\nfor you"
    job = start(jobs, [*ODD_KEYS, "gone", "refused"])
    assert jobs.status(job) == JobStatus("Active")
    assert over(jobs, job) == JobStatus("Complete", len(ODD_KEYS) + 2, len(ODD_KEYS), 2)
    found = {one.key: one for one in jobs.results("reports/", job)}
    assert found == {
        **{key: TagOutcome(key, TAGGED) for key in ODD_KEYS},
        "gone": TagOutcome("gone", GONE),
        "refused": TagOutcome("refused", FAILED, "403 AccessDenied not, for you"),
    }
    tagless = store.tagging.tagless([*ODD_KEYS, "not listed", "refused"])
    assert [one.result for one in tagless] == [TAGGED] * len(ODD_KEYS) + [BARE, BARE]


def test_the_same_token_makes_one_job(jobs, store, batch):
    store.put("a", [b"x"])
    assert start(jobs, ["a"]) == start(jobs, ["a"])
    assert len(batch.jobs) == 1
    assert start(jobs, ["a"], token="run-2") != start(jobs, ["a"])
    with pytest.raises(StorageFailed, match="Idempotency"):
        start(jobs, ["a", "b"])  # of another list


def test_a_list_that_has_changed_is_not_worked_through(jobs, store):
    store.put("a", [b"x"])
    job = start(jobs, ["a"])
    jobs.write_manifest("list.csv", ["b"])
    found = over(jobs, job)
    assert (found.state, found.why) == ("Failed", "ManifestChanged: the ETag is another")
    assert [one.result for one in store.tagging.tagless(["a"])] == [BARE]


def test_a_long_list_is_put_together_in_pieces(jobs, store, monkeypatch):
    monkeypatch.setattr("desilt.objects.batch_tagging.LINES", 2)
    keys = [f"{number}" for number in range(5)]
    jobs.write_manifest("list.csv", iter(keys))
    assert store.get("list.csv") == manifest(store.bucket, [f"root/{key}" for key in keys])


def test_a_job_is_cancelled_and_one_that_is_over_is_left(jobs, store, batch):
    store.put("a", [b"x"])
    batch.waits = True
    job = start(jobs, ["a"])
    jobs.cancel(job)
    assert jobs.status(job).state == "Cancelled"
    jobs.cancel(job)
    batch.waits = False
    done = start(jobs, ["a"], token="run-2")
    over(jobs, done)
    jobs.cancel(done)
    assert jobs.status(done).state == "Complete"


def test_no_such_job_is_said(jobs):
    for ask in (jobs.status, jobs.cancel):
        with pytest.raises(NotFound, match="there is no batch job"):
            ask(str(uuid.uuid4()))


def test_a_job_that_is_not_over_has_no_report(jobs, store):
    store.put("a", [b"x"])
    job = start(jobs, ["a"])
    with pytest.raises(NotFound, match=r"there is no report of batch job .*wait until it is over"):
        list(jobs.results("reports", job))


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (b"{", "cannot be read"),
        (b'{"Results": [{"Key": "root/part.csv"}]}', "cannot be read"),
        (b'{"Results": [{"Key": "elsewhere/part.csv"}]}', "names 'elsewhere/part.csv', which is not below"),
    ],
)
def test_a_report_that_makes_no_sense_is_not_taken_for_an_empty_one(jobs, store, told, said):
    store.put("reports/job-1/manifest.json", [told])
    store.put("part.csv", [b"lake,root/a,,succeeded\n"])
    with pytest.raises(StorageFailed, match=said):
        list(jobs.results("reports", "1"))
