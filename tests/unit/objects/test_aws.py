"""Who asks, and whom: the same for obstore and for boto3, wherever keys come from."""

import json
import os
import re
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import obstore
import pytest
from botocore.credentials import RefreshableCredentials

from desilt.errors import StorageFailed
from desilt.objects import aws, buckets, open_store
from desilt.objects.s3_client import failures, s3_client
from patience import until

STATIC = {"AWS_ACCESS_KEY_ID": "static", "AWS_SECRET_ACCESS_KEY": "s"}
ROLE = {"AccessKeyId": "container", "SecretAccessKey": "s", "Token": "its-token", "Expiration": "2999-01-01T00:00:00Z"}
STS = """<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>
<AccessKeyId>web</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>web-token</SessionToken>
<Expiration>2999-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"""
PROGRAM = """
import itertools, json, pathlib, sys
from datetime import UTC, datetime, timedelta
file = pathlib.Path(sys.argv[1])
number = int(file.read_text()) + 1 if file.exists() else 1
file.write_text(str(number))
soon = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()
print(json.dumps({"Version": 1, "AccessKeyId": f"key{number}", "SecretAccessKey": "s", "SessionToken": f"t{number}",
                  "Expiration": soon}))
"""


class Amazon:
    """A bucket that says who asked; beside it the role of a container, of a machine, and of a web identity."""

    def __init__(self):
        self.asked, self.refuses = [], None

    def answer(self, method, path, headers):
        if path == "/role":
            return 200, json.dumps(ROLE)
        if path.startswith("/latest/"):
            return self.machine(path)
        if method == "POST" and path == "/":
            return 200, STS
        key = re.search("Credential=([^/]+)/[0-9]+/([^/]+)/", headers.get("Authorization", "Credential=nobody/1/-/"))
        self.asked.append((key[1], headers.get("x-amz-security-token"), key[2], f"{headers['Host']}{path}"))
        return self.refuses or (200, "")

    def machine(self, path):
        if path.endswith("/api/token"):
            return 200, "token"
        if path.endswith("security-credentials/"):
            return 200, "my-role"
        told = {**ROLE, "AccessKeyId": "machine", "Token": "machine-token", "Code": "Success", "Type": "AWS-HMAC"}
        return 200, json.dumps({**told, "LastUpdated": datetime.now(UTC).isoformat()})


@pytest.fixture
def amazon():
    made = Amazon()

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, text = made.answer(self.command, self.path, self.headers)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
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
        made.url = f"http://127.0.0.1:{server.server_port}"
        yield made
        server.shutdown()
        thread.join()


@pytest.fixture
def env(monkeypatch, tmp_path, amazon):
    """Sets the variables of AWS to those that are given, and the files of a user whose home is new."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(buckets, "RETRY", {"max_retries": 0})
    (tmp_path / ".aws").mkdir()

    def put(config="", credentials="", **values):
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            monkeypatch.delenv(name)
        usual = {"AWS_ENDPOINT_URL_S3": amazon.url, "AWS_EC2_METADATA_DISABLED": "true"}
        for name, value in {**usual, **values}.items():
            if value:
                monkeypatch.setenv(name, value.format(server=amazon.url, home=tmp_path))
        (tmp_path / ".aws/config").write_text(config.format(server=amazon.url, home=tmp_path, python=sys.executable))
        (tmp_path / ".aws/credentials").write_text(credentials)

    return put


def both(amazon, bucket="bucket"):
    """What obstore and boto3 were seen to say: key, token and region."""
    amazon.asked.clear()
    open_store(f"s3://{bucket}").head("key")
    s3_client(bucket).head_object(Bucket=bucket, Key="key")
    first, second = amazon.asked
    return first, second


PROFILES = "[default]\naws_access_key_id = mine\naws_secret_access_key = s\n[work]\naws_access_key_id = work\naws_secret_access_key = s\naws_session_token = work-token\n"  # noqa: E501
REGIONS = "[default]\nregion = eu-west-1\n[profile work]\nregion = eu-west-3\n"


@pytest.mark.parametrize(
    ("given", "key", "token", "region"),
    [
        (STATIC, "static", None, "us-east-1"),
        ({**STATIC, "AWS_SESSION_TOKEN": "t", "AWS_REGION": "eu-west-2"}, "static", "t", "eu-west-2"),
        ({**STATIC, "config": REGIONS, "credentials": PROFILES}, "static", None, "us-east-1"),
        ({**STATIC, "AWS_PROFILE": "work", "config": REGIONS, "credentials": PROFILES}, "static", None, "eu-west-3"),
        ({"config": REGIONS, "credentials": PROFILES}, "mine", None, "eu-west-1"),
        ({"AWS_PROFILE": "work", "config": REGIONS, "credentials": PROFILES}, "work", "work-token", "eu-west-3"),
        ({"AWS_PROFILE": "work", "credentials": PROFILES, "AWS_DEFAULT_REGION": "r-1"}, "work", "work-token", "r-1"),
        ({"AWS_CONTAINER_CREDENTIALS_FULL_URI": "{server}/role"}, "container", "its-token", "us-east-1"),
        (
            {"AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": "{server}/"},
            *("machine", "machine-token", "us-east-1"),
        ),
        (
            {
                "AWS_WEB_IDENTITY_TOKEN_FILE": "{home}/token",
                "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/mine",
                "AWS_ENDPOINT_URL_STS": "{server}",
                "AWS_REGION": "us-east-1",
            },
            *("web", "web-token", "us-east-1"),
        ),
    ],
    ids=[
        *("keys", "token", "keys-before-files", "keys-and-the-region-of-a-profile", "files", "profile"),
        *("profile-and-region", "container", "machine", "web-identity"),
    ],
)
def test_both_ask_in_the_same_name(amazon, env, tmp_path, given, key, token, region):
    env(**given)
    (tmp_path / "token").write_text("who I am")
    seen = both(amazon)
    assert [one[:3] for one in seen] == [(key, token, region)] * 2


def test_both_ask_the_server_that_a_profile_names(amazon, env):
    other = "[profile there]\nservices = mine\n[services mine]\ns3 =\n  endpoint_url = {server}\n"
    keys = "[there]\naws_access_key_id = k\naws_secret_access_key = s\n"
    env(AWS_ENDPOINT_URL_S3="", AWS_PROFILE="there", config=other, credentials=keys)
    assert {one[3] for one in both(amazon)} == {f"{urlsplit(amazon.url).netloc}/bucket/key"}
    env(
        AWS_ENDPOINT_URL_S3="", AWS_PROFILE="there", config="[profile there]\nendpoint_url = {server}", credentials=keys
    )
    assert {one[3] for one in both(amazon)} == {f"{urlsplit(amazon.url).netloc}/bucket/key"}


def test_neither_asks_a_server_that_files_name_which_do_not_count(env):
    env(AWS_ENDPOINT_URL_S3="", AWS_REGION="r-1", config="[default]\nendpoint_url = {server}", **STATIC)
    assert signed("bucket") == asked("bucket") == "https://bucket.s3.r-1.amazonaws.com/key"


def signed(bucket):
    """Where obstore would ask."""
    url = obstore.sign(buckets.connect("s3", bucket), "GET", "key", timedelta(minutes=1))
    return url.partition("?")[0]


def asked(bucket):
    """Where boto3 would ask."""
    return s3_client(bucket).generate_presigned_url("get_object", {"Bucket": bucket, "Key": "key"}).partition("?")[0]


HOSTED = {"AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true"}
IN_PATH = {"AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false"}


@pytest.mark.parametrize(
    ("bucket", "given", "expected"),
    [
        ("bucket", {"AWS_REGION": "eu-west-3"}, "https://bucket.s3.eu-west-3.amazonaws.com/key"),
        ("a.bucket", {"AWS_REGION": "eu-west-3"}, "https://s3.eu-west-3.amazonaws.com/a.bucket/key"),
        ("bucket", {"AWS_REGION": "eu-west-3", **IN_PATH}, "https://s3.eu-west-3.amazonaws.com/bucket/key"),
        ("bucket", {"AWS_ENDPOINT_URL": "https://h:1"}, "https://h:1/bucket/key"),
        ("bucket", {"AWS_ENDPOINT_URL": "https://h:1", "AWS_ENDPOINT": "https://other:2"}, "https://h:1/bucket/key"),
        ("bucket", {"AWS_ENDPOINT_URL_S3": "https://h:1", "AWS_ENDPOINT_URL": "https://o"}, "https://h:1/bucket/key"),
        ("bucket", {"AWS_ENDPOINT_URL": "https://h:1", **HOSTED}, "https://bucket.h:1/key"),
        ("bucket", {"AWS_ENDPOINT_URL": "https://bucket.h:1", **HOSTED}, "https://bucket.h:1/key"),
        ("bucket", {"AWS_ENDPOINT_URL": "https://h:1", **IN_PATH}, "https://h:1/bucket/key"),
    ],
)
def test_both_name_a_bucket_in_the_same_place(env, bucket, given, expected):
    env(**{"AWS_ENDPOINT_URL_S3": "", **STATIC, **given})
    assert (signed(bucket), asked(bucket)) == (expected, expected)


def test_a_profile_may_say_where_buckets_are_named(env):
    keys = "[there]\naws_access_key_id = k\naws_secret_access_key = s\n"
    style = "[profile there]\nendpoint_url = https://h\ns3 =\n  addressing_style = virtual\n"
    env(AWS_ENDPOINT_URL_S3="", AWS_PROFILE="there", config=style, credentials=keys)
    assert (signed("bucket"), asked("bucket")) == ("https://bucket.h/key", "https://bucket.h/key")


def test_nobody_signs_where_nobody_should(amazon, env):
    env(AWS_SKIP_SIGNATURE="true")
    assert [one[0] for one in both(amazon)] == ["nobody", "nobody"]


# ---- for as long as it takes


def test_keys_that_end_are_asked_for_again_while_a_store_is_open(amazon, env, monkeypatch, tmp_path):
    monkeypatch.setattr(aws, "GOOD_FOR", timedelta(0))
    (tmp_path / "program.py").write_text(PROGRAM)
    env(config="[default]\ncredential_process = {python} {home}/program.py {home}/number\n")
    store, client = open_store("s3://bucket"), s3_client("bucket")

    def seen(ask):
        amazon.asked.clear()
        ask()
        return amazon.asked[0][:2]

    for ask in (lambda: store.head("key"), lambda: client.head_object(Bucket="bucket", Key="key")):
        first, token = seen(ask)
        assert token == first.replace("key", "t")
        until(lambda first=first, ask=ask: seen(ask)[0] != first)


def test_obstore_never_keeps_what_botocore_would_have_replaced():
    replaced_at = timedelta(seconds=RefreshableCredentials._mandatory_refresh_timeout)
    assert replaced_at >= aws.GOOD_FOR


def test_who_has_keys_does_not_wait_for_botocore():
    code = (
        "import sys; from desilt.objects import open_store; open_store('s3://b'); assert 'botocore' not in sys.modules"
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    subprocess.run([sys.executable, "-c", code], check=True, env={**env, **STATIC})


# ---- what is said when it does not work


def refusals(doing):
    """What obstore's way says, and boto3's."""
    found = []
    with pytest.raises(StorageFailed) as raised:
        open_store("s3://bucket/lake").get("key")
    found.append(str(raised.value))
    with pytest.raises(StorageFailed) as raised, failures("s3://bucket/lake", doing, "key"):
        s3_client("bucket").get_object(Bucket="bucket", Key="key")
    return [*found, str(raised.value)]


def test_without_keys_it_says_where_they_may_be(env):
    env()
    for told in refusals("reading"):
        assert re.fullmatch("s3://bucket/lake cannot be asked: no keys were found: set AWS_ACCESS_KEY_ID .*", told)


def test_a_profile_that_is_not_there_is_told_by_its_name(env):
    env(AWS_PROFILE="nowhere")
    with pytest.raises(StorageFailed, match=r"profile \(nowhere\) could not be found; mend AWS_PROFILE"):
        open_store("s3://bucket/lake")


def test_a_program_that_gives_no_keys_is_told_in_one_line(env):
    env(config="[default]\ncredential_process = {python} -c 'raise SystemExit(1)'\n")
    with pytest.raises(StorageFailed, match="cannot be asked: Error when retrieving credentials") as raised:
        open_store("s3://bucket/lake").head("key")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (400, "<Code>ExpiredToken</Code>", "the keys for s3://bucket/lake have expired; get new ones"),
        (
            400,
            "<Code>AuthorizationHeaderMalformed</Code><Message>wrong; expecting 'eu-west-1'</Message>",
            "the bucket of s3://bucket/lake is not in r-1; set AWS_REGION to eu-west-1",
        ),
        (403, "<Code>RequestTimeTooSkewed</Code>", "the clock of this machine is not that of s3://bucket/lake"),
        (403, "<Code>AccessDenied</Code>", "was not allowed; check the keys"),
    ],
)
def test_what_amazon_means_is_said(amazon, env, status, body, told):
    env(AWS_REGION="r-1", **STATIC)
    amazon.refuses = status, f"<?xml version='1.0'?><Error>{body}</Error>"
    for said in refusals("reading"):
        assert told in said
        assert "\n" not in said


def test_an_answer_without_a_body_is_asked_for_its_reason(amazon, env):
    env(**STATIC)
    amazon.refuses = 400, "<?xml version='1.0'?><Error><Code>ExpiredToken</Code></Error>"
    with pytest.raises(StorageFailed, match="the keys for s3://bucket/lake have expired"):
        open_store("s3://bucket/lake").head("key")


def test_a_bucket_of_another_region_is_told_by_obstore_too(amazon, env):
    """boto3 goes there by itself; what obstore is told has no address."""
    env(AWS_REGION="r-1", **STATIC)
    amazon.refuses = 301, "<?xml version='1.0'?><Error><Code>PermanentRedirect</Code></Error>"
    with pytest.raises(StorageFailed, match="is not in r-1; set AWS_REGION to the region of the bucket"):
        list(open_store("s3://bucket/lake").list())
