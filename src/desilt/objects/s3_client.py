"""S3 by boto3, for what obstore cannot do: tags, rules of buckets, batch jobs, copies that leave tags behind.

Settings come from the environment variables that obstore reads. Where boto3 reads files
of the user's too, those count only if the environment names no keys.
"""

import base64
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from desilt.errors import DesiltError, NotFound, StorageFailed
from desilt.objects.buckets import ANSWER, CONNECT, endpoint, first_line

ATTEMPTS = 8
CONNECTIONS = 32
MISSING = frozenset({"NoSuchKey", "NoSuchVersion"})
LOCKS: dict[int, threading.Lock] = {}  # by process: one that was held as it forked is held for good
AMAZON = (".amazonaws.com", ".amazonaws.com.cn")


def s3_client(bucket: str) -> Any:
    """A client for ``bucket``, which threads may share; the same one for as long as the environment is."""
    return shared("s3", bucket)


def s3control_client() -> Any:
    """A client for batch jobs: where ``AWS_ENDPOINT_URL_S3_CONTROL`` says, else where S3 itself is."""
    return shared("s3control", "")


def shared(service: str, bucket: str) -> Any:
    """Made once, whoever comes first; never shared with a forked child, where two would read each other's answers."""
    process = os.getpid()
    environment = tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_")))
    with LOCKS.setdefault(process, threading.Lock()):
        return made(service, bucket, process, environment)


@lru_cache(maxsize=16)
def made(service: str, bucket: str, _process: int, _environment: tuple[tuple[str, str], ...]) -> Any:
    import boto3  # takes a while, and most never tag anything
    from botocore import UNSIGNED
    from botocore.config import Config

    server = endpoint("s3")
    style = "path" if server else "auto"
    if server and is_set("AWS_VIRTUAL_HOSTED_STYLE_REQUEST"):  # obstore wants the bucket in the endpoint then
        server, style = server.replace(f"://{bucket}.", "://", 1), "virtual"
    if service == "s3control":
        server = os.environ.get("AWS_ENDPOINT_URL_S3_CONTROL") or server
    config = Config(
        region_name=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1",
        retries={"mode": "standard", "total_max_attempts": ATTEMPTS},  # waits longer each time, by chance
        connect_timeout=CONNECT.total_seconds(),
        read_timeout=ANSWER.total_seconds(),
        max_pool_connections=CONNECTIONS,
        s3={"addressing_style": style},
        request_checksum_calculation="when_required",  # what else speaks like S3 may not know them
        response_checksum_validation="when_required",
        **({"signature_version": UNSIGNED} if is_set("AWS_SKIP_SIGNATURE") else {}),
    )
    client = boto3.Session().client(service, endpoint_url=server, config=config, **keys())
    if service == "s3control" and server and not (urlsplit(server).hostname or "").endswith(AMAZON):
        host = urlsplit(server).netloc
        client.meta.events.register("before-call.s3-control", lambda params, **_: keep_host(params, host))
    return client


def keep_host(request: dict[str, Any], host: str) -> None:
    """Batch jobs are asked of ``<account>.<host>``, a name that only Amazon's own servers have."""
    request["url"] = urlsplit(request["url"])._replace(netloc=host).geturl()


def keys() -> dict[str, str]:
    """The keys that the environment names; without any, boto3 looks where else there may be some."""
    if not os.environ.get("AWS_ACCESS_KEY_ID"):
        return {}
    found = {
        "aws_access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
        "aws_secret_access_key": os.environ.get("AWS_SECRET_ACCESS_KEY", ""),
        "aws_session_token": os.environ.get("AWS_SESSION_TOKEN") or os.environ.get("AWS_TOKEN") or "",
    }
    return {name: value for name, value in found.items() if value}


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


def is_set(name: str) -> bool:
    return os.environ.get(name, "").lower() in ("1", "true", "on", "yes", "y")


@contextmanager
def failures(uri: str, doing: str, key: str) -> Iterator[None]:
    """What boto3 raises inside, as an error of ours."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise failure(uri, doing, key, error) from error


def failure(uri: str, doing: str, key: str, error: Exception) -> DesiltError:
    """What the server's answer means to whoever asked for ``key``."""
    code, status = answer(error)
    if code == "NoSuchBucket":
        return StorageFailed(f"there is no bucket for {uri}; create it, or mend the URI")
    if code in MISSING:
        return NotFound("object", key)
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
    """Whether boto3 gave up on the server: it is not there, out of order, or has no time for us."""
    from botocore.exceptions import BotoCoreError, ClientError

    if isinstance(error, ClientError):
        status = answer(error)[1]
        return status >= 500 or status == 429
    return isinstance(error, BotoCoreError)
