"""Where S3 is and who asks, by the environment: one answer, for obstore and for boto3.

Keys that the environment names count first. Without them, or where ``AWS_PROFILE`` names a
profile, botocore looks where every tool of Amazon's looks: a profile in the user's files (its role, its
sign-on, its program), a web identity, the role of the container or of the machine. obstore by itself
knows no files at all, so what botocore finds is handed to it, and asked for again before it ends.
"""

import os
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from desilt.errors import StorageFailed

if TYPE_CHECKING:
    from obstore.store import S3Credential

ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
USUAL_REGION = "us-east-1"
GOOD_FOR = timedelta(minutes=10)  # botocore replaces what has less than that left; obstore asks at half of it
NO_KEYS = (
    "no keys were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile with AWS_PROFILE, "
    "or give the machine a role"
)


def environment() -> tuple[tuple[str, str], ...]:
    """All that answers here depend on; two that are the same have the same answers."""
    said = ((name, value) for name, value in os.environ.items() if name.startswith("AWS_") or name == "HOME")
    return tuple(sorted(said))


def is_set(name: str) -> bool:
    return os.environ.get(name, "").lower() in ("1", "true", "on", "yes", "y")


def has_keys() -> bool:
    """Whether the environment itself names keys, or that none are wanted."""
    return bool(os.environ.get("AWS_ACCESS_KEY_ID")) or is_set("AWS_SKIP_SIGNATURE")


def files() -> Any | None:
    """A session of botocore's that has read the user's files; None where they do not count."""
    if has_keys() and not os.environ.get("AWS_PROFILE"):
        return None
    return read_files(os.getpid(), environment())


@lru_cache(maxsize=16)
def read_files(_process: int, _environment: tuple[tuple[str, str], ...]) -> Any:
    import botocore.session  # takes a while, and most have keys
    from botocore.exceptions import BotoCoreError

    session = botocore.session.get_session()
    try:
        session.get_scoped_config()
    except BotoCoreError as error:
        raise StorageFailed(f"{error}; mend AWS_PROFILE, or the files that it names a part of") from error
    return session


def endpoint() -> str | None:
    """The server, where it is not Amazon's own."""
    named = next((os.environ[name] for name in ENDPOINTS if os.environ.get(name)), None)
    if named or (session := files()) is None or is_set("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"):
        return named
    profile = session.get_scoped_config()
    services = session.full_config.get("services", {}).get(profile.get("services", ""), {})
    found = services.get("s3", {}).get("endpoint_url") or profile.get("endpoint_url")
    return str(found) if found else None


def region() -> str:
    named = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if named or (session := files()) is None:
        return named or USUAL_REGION
    return str(session.get_scoped_config().get("region") or USUAL_REGION)


def is_virtual(bucket: str) -> bool:
    """Whether the bucket is named by the host that is asked, and not by the path."""
    if os.environ.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST"):
        return is_set("AWS_VIRTUAL_HOSTED_STYLE_REQUEST")
    session = files()
    style = session.get_scoped_config().get("s3", {}) if session is not None else {}
    if isinstance(style, dict) and style.get("addressing_style") in ("path", "virtual"):
        return bool(style["addressing_style"] == "virtual")
    return endpoint() is None and "." not in bucket  # Amazon wants it so; no certificate covers a name with a dot


def host_of(server: str, bucket: str) -> str:
    """``server`` with the bucket in its name, as obstore wants it there."""
    parts = urlsplit(server)
    return (
        server if parts.netloc.startswith(f"{bucket}.") else parts._replace(netloc=f"{bucket}.{parts.netloc}").geturl()
    )


def without_bucket(server: str, bucket: str) -> str:
    """``server`` without it, as boto3 does."""
    return server.replace(f"://{bucket}.", "://", 1)


class Keys:
    """What botocore finds, for obstore: looked for when the first request is made, and whenever that has grown old."""

    def __init__(self) -> None:
        self._session = files()

    def __call__(self) -> "S3Credential":
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            found = None if self._session is None else self._session.get_credentials()
            frozen = None if found is None else found.get_frozen_credentials()
        except (BotoCoreError, ClientError) as error:
            raise StorageFailed(" ".join(str(error).split())) from error
        if frozen is None or not frozen.access_key or not frozen.secret_key:
            raise StorageFailed(NO_KEYS)
        return {
            "access_key_id": frozen.access_key,
            "secret_access_key": frozen.secret_key,
            "token": frozen.token,
            "expires_at": datetime.now(UTC) + GOOD_FOR,
        }
