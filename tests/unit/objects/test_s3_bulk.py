"""A bulk delete asks for what boto3 would ask for, byte for byte, and hears what boto3 would hear."""

from types import SimpleNamespace
from xml.sax.saxutils import escape

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError, ParamValidationError
from botocore.parsers import ResponseParserError
from hypothesis import given
from hypothesis import strategies as st

from desilt.objects import s3_bulk
from desilt.objects.s3_bulk import SPACE
from desilt.objects.s3_client import add_digest
from desilt.objects.store import flaw

BY_CHANCE = {"amz-sdk-invocation-id", "X-Amz-Date", "Authorization"}
KEYS = st.text(min_size=1, max_size=12).filter(lambda key: not flaw(key))
ODD = ["a&b", "<a>", "a]]>b", "\"q\" 'p'", "å/\U0001f4be", " a ", "%2F+", "&amp;"]


def client(*, quick):
    config = Config(
        signature_version="s3v4", request_checksum_calculation="when_required", retries={"total_max_attempts": 1}
    )
    made = boto3.client(
        "s3", "eu-west-3", config=config, aws_access_key_id="k", aws_secret_access_key="s", endpoint_url="http://h:1"
    )
    if quick:
        s3_bulk.quick(made)
    made.meta.events.register("before-call.s3.DeleteObjects", lambda params, **_: add_digest(params))
    return made


OURS, BOTOS = client(quick=True), client(quick=False)


def told(asked, objects, answer, status=200):
    """What a client sends, and what it says of an answer."""
    sent = []

    def answered(request, **_):
        sent.append(request)
        raw = SimpleNamespace(stream=lambda **_: iter([answer]))
        return AWSResponse(request.url, status, {}, raw)

    asked.meta.events.register("before-send.s3.DeleteObjects", answered)
    try:
        found = asked.delete_objects(Bucket="bucket", Delete={"Objects": objects})
    except ClientError as error:
        found = error.response
    except ResponseParserError:
        found = {"no answer": True}
    finally:
        asked.meta.events.unregister("before-send.s3.DeleteObjects", answered)
    (request,) = sent
    headers = {name: value for name, value in request.headers.items() if name not in BY_CHANCE}
    found.pop("ResponseMetadata", None)
    return found, (request.method, request.url, headers, request.body)


def same(keys, answer, status=200):
    ours = told(OURS, keys, answer, status)
    assert ours == told(BOTOS, [{"Key": key} for key in keys], answer, status)
    return ours[0]


def document(*rows, name="DeleteResult", space=f' xmlns="{SPACE}"'):
    return f'<?xml version="1.0" encoding="UTF-8"?><{name}{space}>{"".join(rows)}</{name}>'.encode()


def a_row(kind, **said):
    return f"<{kind}>" + "".join(f"<{name}>{escape(text)}</{name}>" for name, text in said.items()) + f"</{kind}>"


ROWS = st.one_of(
    KEYS.map(lambda key: a_row("Deleted", Key=key)),
    KEYS.map(lambda key: a_row("Error", Key=key, Code="AccessDenied", Message="no")),
    st.sampled_from(
        [
            a_row("Deleted", Key="v", VersionId="1"),
            a_row("Deleted", Key="m", DeleteMarker="true", DeleteMarkerVersionId="2"),
            a_row("Deleted"),
            a_row("Deleted", Key=""),
            a_row("Error", Code="SlowDown"),
            a_row("RequestCharged"),
            "<Deleted><Key>a<b/>c</Key></Deleted>",
            "<Deleted>\n  <Key>spaced</Key>\n</Deleted>\n",
        ]
    ),
)


@given(keys=st.lists(st.one_of(KEYS, st.sampled_from(ODD)), min_size=1, max_size=20))
def test_it_asks_byte_for_byte_as_boto3_does(keys):
    same(keys, document())


@given(rows=st.lists(ROWS, max_size=8), space=st.sampled_from(["", f' xmlns="{SPACE}"']))
def test_it_hears_what_boto3_hears(rows, space):
    same(["a"], document(*rows, space=space))


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (document(a_row("Deleted", Key="a"))[:-9], 200),
        (b"", 200),
        (b"not xml", 200),
        (document("<Code>InternalError</Code>", name="Error", space=""), 200),
        (document(a_row("Deleted", Key="a"), name="Other"), 200),
        (document("<Code>SlowDown</Code><Message>no</Message>", name="Error", space=""), 503),
        (document(a_row("Deleted", Key="a")), 503),
        (document(a_row("Deleted", Key="a")), 204),
    ],
    ids=["cut off", "empty", "no xml", "an error", "another", "busy", "removed, and busy", "another status"],
)
def test_what_is_no_answer_is_none_as_with_boto3(answer, status):
    same(["a"], answer, status)


def test_what_is_removed_is_told_beside_what_is_not():
    found = same(["a", "b"], document(a_row("Deleted", Key="a"), a_row("Error", Key="b", Code="AccessDenied")))
    assert found["Deleted"] == [{"Key": "a"}]
    assert [row["Key"] for row in found["Errors"]] == ["b"]


def test_rows_that_say_more_than_a_key_are_boto3s():
    rows = [{"Key": "a", "VersionId": "1"}, {"Key": "b", "VersionId": "2"}]
    assert told(OURS, rows, document()) == told(BOTOS, rows, document())


@pytest.mark.parametrize("objects", [["a", {"Key": "b"}], ["a", None], [b"a"]])
def test_what_is_neither_is_refused(objects):
    with pytest.raises(ParamValidationError):
        OURS.delete_objects(Bucket="bucket", Delete={"Objects": objects})


def test_a_client_that_was_not_told_refuses_texts():
    with pytest.raises(ParamValidationError):
        BOTOS.delete_objects(Bucket="bucket", Delete={"Objects": ["a"]})
