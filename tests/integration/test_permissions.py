"""What keys must be allowed to do, as docs/permissions.md has it: its policies are given to a real server, and used.

Each role runs all of its commands with keys that may do what its policy says. All that they ask is recorded on the way:
nothing may be asked that the policy does not allow, and nothing may be allowed that is not asked.
"""

import http.client
import json
import re
import threading
import xml.etree.ElementTree as ET
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from batch_operations import batch_operations
from desilt.cache import metaranges
from desilt.objects.cloud import PART_BYTES, CloudStore
from desilt.objects.cloud_dated import QUERY, DatedCloudStore
from desilt.objects.s3_client import s3_client
from desilt.repository.opening import repository_at
from desilt.sweep import batch_tags
from desilt.testing.servers import seaweedfs

GUIDE = Path(__file__).parents[2] / "docs" / "permissions.md"
POLICY = re.compile(r"^##+ ([^\n]+)\n(?:(?!#)[^\n]*\n)*?```json\n(.*?)^```", re.MULTILINE | re.DOTALL)
BUCKET, ACCOUNT, ROLE = "permissions", "123456789012", "tagger"
SURE = ("--confirm", "--max-share", "100%")
BATCH = ("--batch", "--account-id", ACCOUNT, "--role-arn", f"arn:aws:iam::{ACCOUNT}:role/{ROLE}")
UNSEEN = {"iam:PassRole"}  # S3 asks for it when a job is made, and nobody sees that


# ---- policies


def documented():
    """The policies of the guide by their headings, as they are written there."""
    return {name.lower(): text for name, text in POLICY.findall(GUIDE.read_text())}


def policy(*names, prefix, without=()):
    """What one or several of them allow below a prefix, without some of their statements."""
    rows = []
    for name in names:
        text = documented()[name]
        for placeholder, value in (("BUCKET", BUCKET), ("PREFIX", prefix), ("ACCOUNT", ACCOUNT), ("ROLE", ROLE)):
            text = text.replace(placeholder, value)
        rows += json.loads(text)["Statement"]
    return {"Version": "2012-10-17", "Statement": [row for row in rows if row.get("Sid") not in without]}


IDENTITIES = {  # by the prefix of the lake that each works on: who it is, and what of that it may not do
    "reader": ("reader",),
    "reader-alone": ("reader",),
    "reader-without-cache": ("reader", "Cache"),
    "writer": ("writer",),
    "writer-alone": ("writer",),
    "keeper": ("keeper",),
    "planner": ("keeper", "Restore", "Remove"),
    "deleter": ("keeper", "Restore"),
    "purger": ("keeper+versions", "Restore"),
    "hider": ("keeper+versions", "RemoveVersions"),
    "blind": ("keeper", "Look"),
    "retention": ("retention",),
    "tagless": ("retention", "Tag"),
    "batch": ("retention",),
    "batch-role": ("role of the batch job",),
    "owner": ("bucket owner",),
    "checker": ("bucket owner", "Apply", "WholeBucket"),
    "nobody": ("reader", "List"),
    "quoted": ("reader", "List"),
}


def of(name):
    role, *without = IDENTITIES[name]
    return policy(*role.split("+"), prefix="batch" if name == "batch-role" else name, without=without)


@dataclass(frozen=True)
class Need:
    """One thing that somebody has to be allowed."""

    action: str
    resource: str
    prefix: str | None = None  # of a listing


def listed(value):
    return [value] if isinstance(value, str) else value


def like(pattern, text):
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


def grants(document):
    """Each single thing that a policy allows: an action, a resource, and patterns of which the prefix must have one."""
    for row in document["Statement"]:
        assert row["Effect"] == "Allow"
        prefixes = row.get("Condition", {}).get("StringLike", {}).get("s3:prefix", "*")
        for action in listed(row["Action"]):
            for resource in listed(row["Resource"]):
                yield action, resource, tuple(listed(prefixes))


def meets(grant, need):
    action, resource, prefixes = grant
    prefix = need.prefix is None or any(like(one, need.prefix) for one in prefixes)
    return action == need.action and like(resource, need.resource) and prefix


# ---- what is asked


@dataclass(frozen=True)
class Asked:
    """A request of S3, as far as it matters to what it needs."""

    method: str
    path: str
    query: dict
    copied: str | None
    tagged: bool
    body: bytes

    def needs(self):
        bucket, _, key = unquote(self.path).lstrip("/").partition("/")
        of_bucket = f"arn:aws:s3:::{bucket}"
        if not bucket:
            return []  # what kind of server is it? Asked without keys, and never of Amazon's
        if key:
            return [Need(f"s3:{name}", f"{of_bucket}/{at}") for name, at in self._of_object(key)]
        if self.method == "POST" and "delete" in self.query:
            asked = [{part.tag.rpartition("}")[2]: part.text for part in one} for one in ET.fromstring(self.body)]
            return [Need(removing(one), f"{of_bucket}/{one['Key']}") for one in asked if "Key" in one]
        if self.method == "GET" and "versions" in self.query:
            return [Need("s3:ListBucketVersions", of_bucket, self.query["prefix"])]
        if (self.method, self.query.get("list-type")) == ("GET", "2"):
            return [Need("s3:ListBucket", of_bucket, self.query.get("prefix", ""))]
        about = {"lifecycle": "LifecycleConfiguration", "versioning": "BucketVersioning"}
        (what,) = about.keys() & self.query.keys()
        return [Need(f"s3:{ {'GET': 'Get', 'PUT': 'Put'}[self.method] }{about[what]}", of_bucket)]

    def _of_object(self, key):
        if "tagging" in self.query:
            yield {"GET": "Get", "PUT": "Put", "DELETE": "Delete"}[self.method] + "ObjectTagging", key
        elif self.method in ("GET", "HEAD"):
            yield "GetObject", key
        elif self.method == "DELETE":
            yield "AbortMultipartUpload" if "uploadId" in self.query else "DeleteObject", key
        else:
            assert self.method == "PUT" or {"uploads", "uploadId"} & self.query.keys()
            yield "PutObject", key
            if self.tagged:
                yield "PutObjectTagging", key
            if self.copied:
                yield "GetObject", unquote(self.copied).lstrip("/").partition("/")[2]


def removing(one):
    return "s3:DeleteObjectVersion" if "VersionId" in one else "s3:DeleteObject"


class Recorder:
    """Between desilt and the server: what was asked, and whether an upload is to fail at its first part."""

    def __init__(self, to):
        self.to, self.endpoint, self.asked, self.refuses_parts = to, "", [], False

    def answer(self, request):
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        about = request.headers
        parts = urlsplit(request.path)
        asked = Asked(
            request.command,
            parts.path,
            dict(parse_qsl(parts.query, keep_blank_values=True)),
            about.get("x-amz-copy-source"),
            "x-amz-tagging" in about,
            body,
        )
        self.asked.append(asked)
        if self.refuses_parts and "partNumber" in asked.query:
            return 400, {}, b"<Error><Code>InvalidPart</Code></Error>"
        server = http.client.HTTPConnection(self.to)
        server.putrequest(request.command, request.path, skip_host=True, skip_accept_encoding=True)
        for name, value in about.items():
            if name.lower() != "expect":
                server.putheader(name, value)
        server.endheaders(body)
        answer = server.getresponse()
        told = answer.status, dict(answer.getheaders()), answer.read()
        server.close()
        return told

    def needs(self):
        return {need for asked in self.asked for need in asked.needs()}


@contextmanager
def recorder(endpoint):
    made = Recorder(urlsplit(endpoint).netloc)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            status, headers, body = made.answer(self)
            length = headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(body))
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                    self.send_header(name, value)
            self.send_header("Content-Length", length)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def handle(self):
            with suppress(ConnectionError):
                super().handle()

        def log_message(self, *_):
            pass

        do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = answer  # noqa: N815 - as the server asks

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        made.endpoint = f"http://127.0.0.1:{server.server_port}"
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()


# ---- lakes


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    policies = {name: of(name) for name in IDENTITIES}
    with seaweedfs(tmp_path_factory.mktemp("permissions"), policies=policies) as made:
        made.create_bucket(BUCKET)
        yield made


class Work:
    """The lake of the demo below the prefix of one identity, whose keys are used for what is asked of it."""

    def __init__(self, name, server, cli, environ, folder):
        self.name, self.server, self.between, self.cli, self.folder = name, server, server.endpoint, cli, folder
        self.at = f"s3://{BUCKET}/{name}"
        self.uri = f"{self.at}#demo"
        self._environ = environ

    def use(self, keys):
        for name, value in keys.env.items():
            self._environ.setenv(name, value)

    @contextmanager
    def owned(self):
        """Done by somebody who may do everything, and not recorded."""
        self.use(self.server)
        yield
        self.use(replace(self.server.only(self.name), endpoint=self.between))

    def build(self):
        with self.owned():
            code, _, err = self.cli("demo", "--no-collect", "--keep", self.at)
            assert (code, err) == (0, "")
            code, out, _ = self.cli("lake", "ls", self.uri, "main", "-r", "--json")
            self.paths = [json.loads(line)["path"] for line in out.splitlines()]

    def later(self, **spans):
        with self.owned(), repository_at(self.uri) as repo:
            repo.set_clock(repo.clock() + timedelta(**spans))

    def file(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def does(self, *words, code=0):
        """A command, that has to end so; what it printed, or its one line."""
        words = [self.uri if word == "REPO" else word for word in words]
        ended, out, err = self.cli(*words)
        assert ended == code, f"{words}: {err or out}"
        if code in (1, 2, 10):
            assert len(err.splitlines()) == 1, err
            return err.strip().replace(f"{self.at}?{QUERY}", "s3://BUCKET/PREFIX").replace(f"'{BUCKET}'", "'BUCKET'")
        return out


@pytest.fixture
def work(request, server, cli, monkeypatch, tmp_path):
    """Copies are made as in any bucket: that of a story would put, and not copy."""
    monkeypatch.setattr(DatedCloudStore, "copy", CloudStore.copy)
    monkeypatch.setenv("DESILT_DB", f"sqlite://{tmp_path}/lake.db")
    made = Work(request.param, server, cli, monkeypatch, tmp_path)
    made.build()
    return made


@contextmanager
def exactly(work, document):
    """All that is asked inside is allowed, and all that is allowed is asked."""
    with recorder(work.server.endpoint) as between:
        with work.owned():
            work.between = between.endpoint
        yield between
        with work.owned():
            work.between = work.server.endpoint
    check(between.needs(), document)


def check(needs, document):
    allowed = check_allowed(needs, document)
    unused = [one for one in allowed if not any(meets(one, need) for need in needs) and one[0] not in UNSEEN]
    assert unused == [], "in the policy, and never asked"


def check_allowed(needs, document):
    allowed = list(grants(document))
    missing = {need for need in needs if not any(meets(grant, need) for grant in allowed)}
    assert missing == set(), "asked, and not in the policy"
    return allowed


def on(*names):
    return pytest.mark.parametrize("work", names, indirect=True)


RULES = "rules: {partners: {prefix: partners/, days: 14}}\n"
UPKEEP = "lifecycle: {policy: {rules: {partners: {prefix: partners/, days: 14}}}, to: trash}\ngc: {to: trash}\n"
RETENTION = "rules:\n- {status: enabled, filter: {}, expiration: {all: {weeks: 1}}}\n"


# ---- what each role is for


@on("reader")
def test_a_reader(work, monkeypatch):
    monkeypatch.setattr(metaranges, "TO_A_FILE", 1)  # as in a lake of many commits
    path, does = work.paths[0], work.does
    with work.owned():
        does("lifecycle", "set", "REPO", work.file("policy", RULES))
    with exactly(work, of("reader")):
        does("lake", "repositories", work.at)
        for words in (("branches",), ("tags",), ("log",)):
            does("lake", *words, "REPO")
        for words in (("show", "REPO", "main"), ("diff", "REPO", "main"), ("diff", "REPO", "main", "main~1")):
            does("lake", *words)
        does("lake", "ls", "REPO", "main", "-r", "--gone")
        does("lake", "stat", "REPO", "main", path)
        does("lake", "get", "REPO", "main", path, "-o", work.folder / "got")
        does("explain", "REPO", path)
        does("stats", "REPO")
        with work.owned():
            does("lifecycle", "run", "REPO", *SURE)
        does("stats", "REPO")
        does("pins", "REPO")
        does("runs", "REPO")
        does("runs", "show", "REPO", "last")
        does("runs", "export", "REPO", "last", work.folder / "plan.csv")
        does("hold", "ls", "REPO")
        does("lifecycle", "get", "REPO")
        does("lifecycle", "lint", "REPO", work.folder / "policy")
        does("fsck", "REPO", "--deep")


@on("writer")
def test_a_writer(work):
    does, small = work.does, work.file("small", "little")
    big = work.folder / "big"
    big.write_bytes(b"x" * (PART_BYTES + 1))
    with exactly(work, of("writer")) as between:
        does("lake", "put", "REPO", "main", "small", small)
        does("lake", "put", "REPO", "main", "big", big)
        does("lake", "commit", "REPO", "main", "-m", "two")
        does("lake", "branch", "REPO", "new", "main")
        does("lake", "cp", "REPO", "main", "small", "new", "copied")
        does("lake", "mv", "REPO", "new", "copied", "moved")
        does("lake", "rm", "REPO", "new", "big")
        does("lake", "commit", "REPO", "new", "-m", "three")
        does("lake", "merge", "REPO", "new", "main")
        does("lake", "revert", "REPO", "main", "main", "--parent", "1")
        does("lake", "put", "REPO", "main", "small", small)
        does("lake", "reset", "REPO", "main", "--all")
        does("lake", "tag", "REPO", "kept", "main")
        does("lake", "delete-tag", "REPO", "kept")
        does("lake", "delete-branch", "REPO", "new")
        does("lake", "address", "REPO", "main", "direct")
        does("hold", "add", "REPO", "--prefix", "a", "--reason", "because")
        does("lifecycle", "set", "REPO", work.file("policy", RULES))
        does("retention", "set", "REPO", work.file("retention", RETENTION), "--confirm")
        does("upkeep", "set", "REPO", work.file("upkeep", UPKEEP))
        does("lake", "recover", "REPO")
        between.refuses_parts = True
        does("lake", "put", "REPO", "main", "big", big, code=1)
        between.refuses_parts = False
        does("lake", "init", f"{work.at}#two")


@pytest.mark.slow
@on("keeper")
def test_a_keeper(work):
    does = work.does
    with work.owned():
        does("lifecycle", "set", "REPO", work.file("policy", RULES))
        does("upkeep", "set", "REPO", work.file("upkeep", UPKEEP))
    with exactly(work, of("keeper")):
        does("gc", "plan", "REPO")
        does("gc", "run", "REPO", "--to", "trash", *SURE)
        does("restore", "REPO", "last")
        work.later(days=3)
        does("gc", "run", "REPO", "--full", "--to", "trash", *SURE)
        work.later(days=9)
        does("purge", "REPO")
        does("lifecycle", "plan", "REPO")
        does("lifecycle", "simulate", "REPO", "--policy", work.folder / "policy", "--from", "2026-02-20")
        does("lifecycle", "run", "REPO", *SURE)
        does("expire", "run", "REPO", "--older-than", "7d", *SURE)
        work.later(days=3)
        does("collect", "plan", "REPO")
        does("sweep", "REPO", "last", *SURE)
        does("upkeep", "plan", "REPO")
        does("upkeep", "run", "REPO", "--confirm", "all")


@contextmanager
def keeping_versions(work):
    """The bucket, which others here share, keeps versions for a while."""
    for status in ("Enabled", "Suspended"):
        with work.owned():
            s3_client(BUCKET).put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": status})
        if status == "Enabled":
            yield


@on("purger")
def test_who_purges_versions(work):
    """What a keeper may do besides, another test asks for."""
    does = work.does
    with keeping_versions(work), recorder(work.server.endpoint) as between:
        with work.owned():
            work.between = between.endpoint
        assert "14 objects" in does("gc", "run", "REPO", "--purge-versions", *SURE)
        does("expire", "run", "REPO", "--older-than", "7d", *SURE)
        work.later(days=3)
        does("collect", "run", "REPO", "--purge-versions", *SURE)
        with work.owned():
            work.between = work.server.endpoint
    needs = between.needs()
    assert not [need for need in needs if need.action == "s3:DeleteObject" and "/branches/" in need.resource]
    check({need for need in needs if "Version" in need.action}, versions_of(of("purger")))
    check_allowed(needs, of("purger"))


def versions_of(document):
    """What of a policy is about versions."""
    return {"Statement": [row for row in document["Statement"] if "Version" in row["Action"]]}


@on("retention")
def test_retention(work):
    does = work.does
    with work.owned():
        does("retention", "set", "REPO", work.file("retention", RETENTION), "--confirm")
    with exactly(work, of("retention")):
        does("retention", "plan", "REPO")
        does("retention", "run", "REPO", *SURE)
        work.later(minutes=11)
        does("retention", "restore", "REPO", "--prefix", "main/partners/")
        work.later(days=2)
        does("retention", "run", "REPO", *SURE)
        does("retention", "vacuum", "REPO", "--older-than", "1d")


class Killed(BaseException):
    """The process is gone."""


@on("batch")
def test_batches_and_the_role_of_their_jobs(work, server, monkeypatch):
    does, asked = work.does, set()
    with work.owned():
        does("retention", "set", "REPO", work.file("retention", RETENTION), "--confirm")
    jobs = {("POST", True): "CreateJob", ("GET", False): "DescribeJob", ("POST", False): "UpdateJobStatus"}
    with recorder(server.endpoint) as of_role:
        role = replace(server.only("batch-role"), endpoint=of_role.endpoint)
        with batch_operations(role) as batch:
            real = batch.answer

            def answer(method, url, *rest):
                made = urlsplit(url).path.endswith("/jobs")
                one = "" if made else urlsplit(url).path.split("/")[3]
                asked.add(Need(f"s3:{jobs[method, made]}", f"arn:aws:s3:us-east-1:{ACCOUNT}:job/{one}"))
                return real(method, url, *rest)

            batch.answer = answer
            for name, value in batch.env.items():
                monkeypatch.setenv(name, value)
            cancelled(work, batch, monkeypatch)
            work.later(days=2)
            does("retention", "run", "REPO", *SURE, *BATCH)
    assert sorted(job.state for job in batch.jobs.values()) == ["Cancelled", "Complete"]
    check(asked, policy("batch", prefix="batch"))
    check(of_role.needs(), of("batch-role"))


def cancelled(work, batch, monkeypatch):
    """A job whose run is killed, and that a restore cancels."""
    batch.waits = True
    with monkeypatch.context() as patch:
        patch.setattr(batch_tags.time, "sleep", lambda _: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            work.cli("retention", "run", work.uri, *SURE, *BATCH)
    work.later(minutes=11)
    run = json.loads(work.does("runs", "REPO", "--json").splitlines()[0])["run"]
    work.does("runs", "give-up", "REPO", run)
    work.later(minutes=11)
    work.does("retention", "restore", "REPO", "--run", run)
    batch.waits = False


@on("owner")
def test_the_owner_of_a_bucket(work):
    with work.owned():
        work.does("lake", "init", f"s3://{BUCKET}/elsewhere#other", "--db", f"sqlite://{work.folder}/other.db")
    with exactly(work, of("owner")):
        work.does("retention", "bucket-rule", "REPO")
        work.does("retention", "bucket-rule", "REPO", "--apply")
        work.does("retention", "check", "REPO")
        line = work.does("retention", "bucket-rule", "REPO", "--whole-bucket", code=10)
    assert "holds more than this lake" in line


# ---- what each may not do


ID = r"(?<=repos/)[0-9a-v]{20}"
NOT_ALLOWED = "was not allowed; check the keys and what they may do"


@on("reader-alone")
def test_a_reader_writes_nothing(work):
    for words in (
        ("lake", "put", "REPO", "main", "x", work.file("small", "x")),
        ("lake", "commit", "REPO", "main", "-m", "x", "--allow-empty"),
        ("lake", "branch", "REPO", "other"),
        ("gc", "plan", "REPO"),
        ("retention", "check", "REPO"),
        ("retention", "bucket-rule", "REPO"),
    ):
        assert NOT_ALLOWED in work.does(*words, code=1)


@on("reader-without-cache")
def test_without_the_caches_a_reader_reads_and_cannot_ask_why(work):
    work.does("lake", "ls", "REPO", "main")
    work.does("fsck", "REPO")
    for words in (("explain", "REPO", work.paths[0]), ("stats", "REPO"), ("pins", "REPO")):
        assert re.search(rf"writing '.*/_desilt/ranges/.* {NOT_ALLOWED}", work.does(*words, code=1))
    with work.owned():
        work.does("stats", "REPO")  # fills them
    work.does("explain", "REPO", work.paths[0])
    work.does("stats", "REPO")


@on("nobody")
def test_without_listing_single_objects_are_read(work):
    work.does("lake", "get", "REPO", "main", work.paths[0], "-o", work.folder / "got")
    for words in (("runs", "REPO"), ("fsck", "REPO")):
        assert re.search(rf"listing '.* {NOT_ALLOWED}", work.does(*words, code=1))


@on("writer-alone")
def test_a_writer_plans_nothing(work):
    assert re.search(rf"writing '.*/_desilt/runs/gc/.* {NOT_ALLOWED}", work.does("gc", "plan", "REPO", code=1))


@on("planner")
def test_a_planner_removes_nothing(work):
    with work.owned():
        work.does("lifecycle", "set", "REPO", work.file("policy", RULES))
    for job in ("gc", "lifecycle", "collect"):
        work.does(job, "plan", "REPO")
    work.does("expire", "run", "REPO", "--older-than", "7d", *SURE)
    before = set(stored(work))
    assert "0 objects of 0 B removed; 14 failed" in work.does("gc", "run", "REPO", *SURE, code=3)
    assert before <= set(stored(work))


def stored(work):
    client = s3_client(BUCKET)
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{work.name}/")
    return [one["Key"] for page in pages for one in page["Contents"] if "/branches/" in one["Key"]]


@on("deleter")
def test_what_may_go_to_the_trash_may_not_come_back(work):
    work.does("gc", "run", "REPO", "--to", "trash", *SURE)
    assert "0 objects of 0 B restored; 14 failed, try again" in work.does("restore", "REPO", "last", code=3)


@on("hider")
def test_without_the_right_to_versions_nothing_goes(work):
    with keeping_versions(work):
        before = set(stored(work))
        assert "0 objects of 0 B removed for good; 14 failed" in work.does(
            "gc", "run", "REPO", "--purge-versions", *SURE, code=3
        )
    assert before <= set(stored(work))


@on("blind")
def test_whoever_may_not_look_does_not_know_of_versions_and_purges_none(work):
    assert "does not say whether it keeps versions (s3:GetBucketVersioning)" in work.does("gc", "plan", "REPO")
    line = work.does("gc", "run", "REPO", "--purge-versions", *SURE, code=1)
    assert line.endswith("--purge-versions needs s3:ListBucketVersions, nothing was removed")


@on("tagless")
def test_without_tags_all_is_marked_and_stays(work):
    with work.owned():
        work.does("retention", "set", "REPO", work.file("retention", RETENTION), "--confirm")
    out = work.does("retention", "run", "REPO", *SURE, code=3)
    assert re.search(r"tagging failed +3 ", out)


@on("checker")
def test_whoever_checks_a_bucket_changes_nothing(work):
    code, out, err = work.cli("retention", "check", work.uri)
    assert (code, err, "nothing removes what is tagged" in out) == (1, "", True)
    work.does("retention", "bucket-rule", "REPO")
    line = work.does("retention", "bucket-rule", "REPO", "--apply", code=1)
    assert "writing the lifecycle rules of 'BUCKET'" in line
    assert f"listing '' in {'s3://BUCKET/PREFIX'}" in work.does(
        "retention", "bucket-rule", "REPO", "--whole-bucket", code=1
    )


@on("quoted")
def test_the_lines_of_the_guide_are_those_of_the_commands(work):
    small = work.file("small", "x")
    asked = (("lake", "put", "REPO", "main", "x", small), ("runs", "REPO"), ("retention", "check", "REPO"))
    said = [re.sub(ID, "ID", work.does(*words, code=1)) for words in asked]
    assert said == re.findall("^error: .*$", re.sub(ID, "ID", GUIDE.read_text()), re.MULTILINE)


def test_every_policy_of_the_guide_is_tried():
    tried = {role for roles, *_ in IDENTITIES.values() for role in roles.split("+")}
    assert documented().keys() == tried | {"batch", "trust of that role"}
