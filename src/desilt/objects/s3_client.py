"""S3 by boto3, for what obstore cannot do: tags, versions, rules of buckets, batch jobs, careful copies and deletes.

Settings and keys are those that obstore is given: see :mod:`desilt.objects.aws`.
"""

import base64
import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from desilt.clock import elapsed
from desilt.errors import DesiltError, NotFound, StorageFailed
from desilt.objects import aws, s3_bulk
from desilt.objects.aws import is_set
from desilt.objects.buckets import ANSWER, CONNECT, first_line
from desilt.objects.s3_refusals import explained

ATTEMPTS = 8
REMOVALS = 4  # attempts at what takes objects away
SENT_UNTIL = 430.0  # seconds after the first, when none is begun any more: by IN_FLIGHT others take it for over
CONNECTIONS = 32
MISSING = frozenset({"NoSuchKey", "NoSuchVersion"})
LOCKS: dict[int, threading.Lock] = {}  # by process: one that was held as it forked is held for good
AMAZON = (".amazonaws.com", ".amazonaws.com.cn")


def s3_client(bucket: str, *, attempts: int = ATTEMPTS) -> Any:
    """A client for ``bucket``, which threads may share; the same one for as long as the environment is."""
    return shared("s3", bucket, attempts)


def s3control_client() -> Any:
    """A client for batch jobs: where ``AWS_ENDPOINT_URL_S3_CONTROL`` says, else where S3 itself is."""
    return shared("s3control", "")


def shared(service: str, bucket: str, attempts: int = ATTEMPTS) -> Any:
    """Made once, whoever comes first; never shared with a forked child, where two would read each other's answers."""
    process = os.getpid()
    with LOCKS.setdefault(process, threading.Lock()):
        return made(service, bucket, attempts, process, aws.environment())


@lru_cache(maxsize=16)
def made(service: str, bucket: str, attempts: int, _process: int, _environment: tuple[tuple[str, str], ...]) -> Any:
    import boto3  # takes a while, and most never tag anything
    from botocore import UNSIGNED
    from botocore.config import Config

    server, virtual = aws.endpoint(), aws.is_virtual(bucket)
    if server and virtual:
        server = aws.without_bucket(server, bucket)
    if service == "s3control":
        server = os.environ.get("AWS_ENDPOINT_URL_S3_CONTROL") or server
    config = Config(
        region_name=aws.region(),
        retries={"mode": "standard", "total_max_attempts": attempts},  # waits longer each time, by chance
        connect_timeout=CONNECT.total_seconds(),
        read_timeout=ANSWER.total_seconds(),
        max_pool_connections=CONNECTIONS,
        s3={"addressing_style": "virtual" if virtual else "path"},
        ignore_configured_endpoint_urls=True,  # those that count are in `server`
        request_checksum_calculation="when_required",  # what else speaks like S3 may not know them
        response_checksum_validation="when_required",
        **({"signature_version": UNSIGNED} if is_set("AWS_SKIP_SIGNATURE") else {}),
    )
    session = boto3.Session(botocore_session=aws.files()) if aws.files() else boto3.Session()
    client = session.client(service, endpoint_url=server, config=config, **keys(), **trusted())
    s3_bulk.quick(client)  # writes what the digest is of
    client.meta.events.register("before-call.s3.DeleteObjects", lambda params, **_: add_digest(params))
    client.meta.events.register("request-created.s3.DeleteObjects", lambda request, **_: in_time(request))
    if service == "s3control" and server and not (urlsplit(server).hostname or "").endswith(AMAZON):
        host = urlsplit(server).netloc
        client.meta.events.register("before-call.s3-control", lambda params, **_: keep_host(params, host))
    return client


def keep_host(request: dict[str, Any], host: str) -> None:
    """Batch jobs are asked of ``<account>.<host>``, a name that only Amazon's own servers have."""
    request["url"] = urlsplit(request["url"])._replace(netloc=host).geturl()


def add_digest(request: dict[str, Any]) -> None:
    """Bulk deletes have boto3's own checksum; servers that do not know it ask for this one."""
    digest = hashlib.md5(request["body"], usedforsecurity=False).digest()
    request["headers"]["Content-MD5"] = base64.b64encode(digest).decode()


def in_time(request: Any) -> None:
    """Refuse an attempt at a bulk delete so long after the first that somebody may have what it removes back by now.

    Boto3 repeats what was not answered, and looks at no lock: not after an answer that came byte by byte for minutes,
    and not in a machine that was asleep meanwhile.
    """
    from botocore.exceptions import ReadTimeoutError

    if elapsed() - request.context.setdefault("desilt_began", elapsed()) > SENT_UNTIL:
        raise ReadTimeoutError(endpoint_url=request.url)


def keys() -> dict[str, str]:
    """The keys that the environment names; without any, boto3 looks where :class:`aws.Keys` does."""
    if not os.environ.get("AWS_ACCESS_KEY_ID"):
        return {}
    found = {
        "aws_access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
        "aws_secret_access_key": os.environ.get("AWS_SECRET_ACCESS_KEY", ""),
        "aws_session_token": os.environ.get("AWS_SESSION_TOKEN") or os.environ.get("AWS_TOKEN") or "",
    }
    return {name: value for name, value in found.items() if value}


def trusted() -> dict[str, Any]:
    """Whose certificates are: an empty variable says nothing about it, but boto3 takes it for the name of a file."""
    named = [os.environ.get(name) for name in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE")]
    if not any(one is not None and not one.strip() for one in named):
        return {}
    return {"verify": next((one for one in named if one and one.strip()), True)}


def encryption() -> dict[str, Any]:
    """How a copy is to be encrypted, where the environment says so."""
    kind = os.environ.get("AWS_SERVER_SIDE_ENCRYPTION", "")
    if kind == "sse-c":
        key = base64.b64decode(os.environ.get("AWS_SSE_CUSTOMER_KEY_BASE64", ""))
        given = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": key}
        return {**given, **{f"CopySource{name}": value for name, value in given.items()}}
    told: dict[str, Any] = {"ServerSideEncryption": kind} if kind else {}
    if name := os.environ.get("AWS_SSE_KMS_KEY_ID"):
        told["SSEKMSKeyId"] = name
    if is_set("AWS_SSE_BUCKET_KEY_ENABLED"):
        told["BucketKeyEnabled"] = True
    return told


@contextmanager
def failures(uri: str, doing: str, key: str) -> Iterator[None]:
    """What boto3 raises inside, as an error of ours."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    try:
        yield
    except (BotoCoreError, ClientError, ResponseParserError) as error:
        raise failure(uri, doing, key, error) from error


def failure(uri: str, doing: str, key: str, error: Exception) -> DesiltError:
    """What the server's answer means to whoever asked for ``key``."""
    code, status = answer(error)
    if code == "NoSuchBucket":
        return StorageFailed(f"there is no bucket for {uri}; create it, or mend the URI")
    if code in MISSING:
        return NotFound("object", key)
    if told := explained(uri, f"{code} {error}"):
        return StorageFailed(told)
    if "NoCredentials" in type(error).__name__:
        return StorageFailed(f"{uri} cannot be asked: {aws.NO_KEYS}")
    if status in (401, 403) or "Credential" in type(error).__name__:
        return StorageFailed(f"{doing} {key!r} in {uri} was not allowed; check the keys and what they may do")
    return StorageFailed(f"{doing} {key!r} in {uri} failed: {first_line(error)}; check the network and the endpoint")


def answer(error: BaseException | None) -> tuple[str, int]:
    """The code and the status that a server answered with; nothing and 0 if it did not."""
    told = getattr(error, "response", None)
    if not isinstance(told, dict):
        return "", 0
    status = told.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return str(told.get("Error", {}).get("Code", "")), int(status)


def unanswered(error: BaseException | None) -> bool:
    """Whether boto3 gave up on the server: it is not there, out of order, unreadable, or has no time for us."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    if isinstance(error, ClientError):
        status = answer(error)[1]
        return status >= 500 or status == 429
    return isinstance(error, (BotoCoreError, ResponseParserError))
