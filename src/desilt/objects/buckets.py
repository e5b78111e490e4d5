"""How a bucket is reached, and what its refusals mean.

Settings come from the environment: for S3 as :mod:`desilt.objects.aws` reads it, for others by the variables
that `obstore` knows. An endpoint that begins with ``http://`` is taken at its word.
"""

import os
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

from obstore.exceptions import PermissionDeniedError, UnauthenticatedError
from obstore.store import AzureStore, GCSStore, S3Store

from desilt.errors import BadRequest, DesiltError, NotFound, StorageFailed
from desilt.objects import aws
from desilt.objects.s3_refusals import explained

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config

Client: TypeAlias = S3Store | AzureStore | GCSStore

RETRY: "RetryConfig" = {"max_retries": 8, "retry_timeout": timedelta(minutes=2)}
CONNECT, ANSWER = timedelta(seconds=10), timedelta(minutes=2)
TIMES: "ClientConfig" = {"connect_timeout": CONNECT, "timeout": ANSWER}
ENDPOINTS = {
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT", "AZURITE_BLOB_STORAGE_URL"),
    "gs": ("GOOGLE_BASE_URL",),
}


def connect(scheme: str, bucket: str, *, bulk: bool = True) -> Client:
    """A client for ``bucket``; nothing is asked of the server yet.

    Without ``bulk``, S3 is asked to delete one object by a request for that object.
    """
    options: ClientConfig = {**TIMES}
    if (endpoint(scheme) or "").startswith("http://"):
        options["allow_http"] = True
    if scheme == "s3":
        settings = s3_settings(bucket)
        if not bulk:  # else as the environment says
            settings["disable_bulk_delete"] = True
        keys = None if aws.has_keys() else aws.Keys()
        return S3Store(bucket, config=settings, client_options=options, retry_config=RETRY, credential_provider=keys)
    if scheme == "az":
        return AzureStore(bucket, client_options=options, retry_config=RETRY)
    return GCSStore(bucket, client_options=options, retry_config=RETRY)


def s3_settings(bucket: str) -> "S3Config":
    """What obstore is told in place of what it would read: by the same variables, in another order."""
    server, virtual = aws.endpoint(), aws.is_virtual(bucket)
    found: S3Config = {"region": aws.region(), "virtual_hosted_style_request": virtual}
    if server is not None:
        found["aws_endpoint_url_s3"] = aws.host_of(server, bucket) if virtual else server
    return found


def endpoint(scheme: str) -> str | None:
    """The server named in the environment, if it is not the provider's own."""
    if scheme == "s3":
        return aws.endpoint()
    return next((os.environ[name] for name in ENDPOINTS[scheme] if os.environ.get(name)), None)


def failure(uri: str, doing: str, key: str, error: Exception) -> DesiltError:
    """What the server's answer means to whoever asked for ``key``."""
    fact = str(error)
    if "NoSuchBucket" in fact or "ContainerNotFound" in fact:
        return StorageFailed(f"there is no bucket for {uri}; create it, or mend the URI")
    if isinstance(error, FileNotFoundError):
        return NotFound("object", key)
    if told := explained(uri, fact):
        return StorageFailed(told)
    refused = "403 Forbidden" in fact or "401 Unauthorized" in fact  # a listing's refusal has no type of its own
    if refused or isinstance(error, (PermissionDeniedError, UnauthenticatedError)):
        return StorageFailed(f"{doing} {key!r} in {uri} was not allowed; check the keys and what they may do")
    if isinstance(error, ValueError):
        return BadRequest(f"{key!r} cannot be a key in {uri}: {first_line(error)}")
    return StorageFailed(f"{doing} {key!r} in {uri} failed: {first_line(error)}; check the network and the endpoint")


def first_line(error: Exception) -> str:
    """The readable part of obstore's message, which goes on for a page."""
    line = str(error).partition("\n")[0].partition(": <?xml")[0]
    return line if len(line) <= 300 else line[:299] + "…"
