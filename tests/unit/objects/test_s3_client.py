"""How boto3 is set up: by what obstore reads, once, and by nobody who does not need it."""

import os
import subprocess
import sys

import pytest

from desilt.domain.times import IN_FLIGHT
from desilt.objects.buckets import ANSWER, CONNECT, RETRY
from desilt.objects.s3_client import REMOVALS, SENT_UNTIL, encryption, s3_client, s3control_client, trusted
from desilt.sweep.delete import SURE_SECONDS


@pytest.fixture
def env(monkeypatch):
    """Sets the variables of AWS to those that are given."""

    def put(**values):
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            monkeypatch.delenv(name)
        for name, value in {"ACCESS_KEY_ID": "k", "SECRET_ACCESS_KEY": "s", **values}.items():
            monkeypatch.setenv(f"AWS_{name}", value)

    return put


class StopAsking(Exception):
    """The request is known, and need not be sent."""


def url(ask):
    """Where the client that ``ask`` is a method of would send it."""
    seen = []

    def stop(request, **_):
        seen.append(request.url)
        raise StopAsking

    events = ask.__self__.meta.events
    events.register("before-send", stop)
    with pytest.raises(StopAsking):
        ask(**PARAMETERS[ask.__name__])
    events.unregister("before-send", stop)
    return seen[0]


PARAMETERS = {
    "head_object": {"Bucket": "bucket", "Key": "key"},
    "describe_job": {"AccountId": "123456789012", "JobId": "j" * 36},
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"ENDPOINT_URL": "http://h:1"}, "http://h:1/bucket/key"),
        ({"ENDPOINT": "http://h:1"}, "http://h:1/bucket/key"),
        ({"ENDPOINT_URL_S3": "http://h:1", "ENDPOINT_URL": "http://other:2"}, "http://h:1/bucket/key"),
        ({"REGION": "eu-west-3"}, "https://bucket.s3.eu-west-3.amazonaws.com/key"),
        ({"DEFAULT_REGION": "eu-west-3"}, "https://bucket.s3.eu-west-3.amazonaws.com/key"),
        ({"REGION": "eu-west-3", "DEFAULT_REGION": "us-west-2"}, "https://bucket.s3.eu-west-3.amazonaws.com/key"),
        ({"ENDPOINT": "https://bucket.h", "VIRTUAL_HOSTED_STYLE_REQUEST": "true"}, "https://bucket.h/key"),
    ],
)
def test_the_server_is_the_one_that_obstore_asks(env, given, expected):
    env(**given)
    assert url(s3_client("bucket").head_object) == expected


def test_keys_and_limits(env):
    env(SESSION_TOKEN="t", REGION="r-1")
    client = s3_client("bucket")
    keys = client._request_signer._credentials
    assert (keys.access_key, keys.secret_key, keys.token, client.meta.region_name) == ("k", "s", "t", "r-1")
    config = client.meta.config
    assert (config.retries["mode"], config.retries["total_max_attempts"]) == ("standard", 8)
    assert (config.connect_timeout, config.read_timeout) == (10, 120)
    assert config.max_pool_connections >= 32


def test_what_removes_has_arrived_or_never_will_once_others_take_it_for_over(env):
    """Who waits so long lifts tombstones: a request that is tried again later would take a live object."""
    env(REGION="r-1")
    config = s3_client("bucket", attempts=REMOVALS).meta.config
    pauses = sum(min(2**each + 5, 25) for each in range(config.retries["total_max_attempts"] - 1))  # at most
    by_boto = config.retries["total_max_attempts"] * (config.connect_timeout + config.read_timeout) + pauses
    last = SENT_UNTIL + config.connect_timeout + config.read_timeout  # however long each of those before took
    by_obstore = (RETRY["retry_timeout"] + CONNECT + ANSWER).total_seconds()
    assert SURE_SECONDS + max(by_boto, last, by_obstore) < IN_FLIGHT.total_seconds()


def test_one_client_for_as_long_as_the_environment_is_the_same(env):
    env(REGION="r-1")
    first = s3_client("bucket")
    assert s3_client("bucket") is first
    env(REGION="r-1", SECRET_ACCESS_KEY="another")
    assert s3_client("bucket") is not first


def test_a_forked_child_has_its_own(env):
    env(REGION="r-1")
    first = s3_client("bucket")
    child = os.fork()
    if child == 0:
        os._exit(3 if s3_client("bucket") is not first else 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3


def test_a_server_of_ones_own_is_asked_for_jobs_by_its_own_name(env):
    def asked():
        return url(s3control_client().describe_job).partition("/v2018")[0]

    env(ENDPOINT_URL_S3_CONTROL="http://127.0.0.1:9", ENDPOINT_URL="http://127.0.0.1:8")
    assert asked() == "http://127.0.0.1:9"
    env(ENDPOINT_URL="http://127.0.0.1:8")
    assert asked() == "http://127.0.0.1:8"
    env(REGION="eu-west-3")
    assert asked() == "https://123456789012.s3-control.eu-west-3.amazonaws.com"


def test_copies_are_encrypted_as_obstore_would(env):
    env()
    assert encryption() == {}
    env(SERVER_SIDE_ENCRYPTION="aws:kms", SSE_KMS_KEY_ID="arn", SSE_BUCKET_KEY_ENABLED="true")
    assert encryption() == {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "arn", "BucketKeyEnabled": True}
    env(SERVER_SIDE_ENCRYPTION="sse-c", SSE_CUSTOMER_KEY_BASE64="a2V5")
    assert encryption() == {
        "SSECustomerAlgorithm": "AES256",
        "SSECustomerKey": b"key",
        "CopySourceSSECustomerAlgorithm": "AES256",
        "CopySourceSSECustomerKey": b"key",
    }


def test_who_tags_nothing_does_not_wait_for_boto3():
    code = """
import sys
from desilt.objects import open_store, batch_tagging, bucket_rules, cloud_tags, tags
assert open_store("s3://bucket").tagging
assert not {"boto3", "botocore"} & set(sys.modules)
"""
    keys = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **keys})


@pytest.mark.parametrize(
    ("amazon", "others", "said"),
    [
        (None, None, {}),
        ("/a.pem", "/b.pem", {}),  # boto3 finds them itself
        ("", None, {"verify": True}),
        (" ", "/b.pem", {"verify": "/b.pem"}),
        ("/a.pem", "", {"verify": "/a.pem"}),
    ],
)
def test_an_empty_variable_does_not_name_a_file_of_certificates(monkeypatch, amazon, others, said):
    for name, value in {"AWS_CA_BUNDLE": amazon, "REQUESTS_CA_BUNDLE": others}.items():
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert trusted() == said
