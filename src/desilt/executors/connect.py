"""A session on a Spark that runs elsewhere, by Spark Connect: `sc://HOST:PORT/;token=…`."""

import os
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from desilt.errors import BadRequest, DesiltError, WorkFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PORT = 15002
REMOTE = "SPARK_CONNECT_MODE_ENABLED"  # by which Spark knows what a process is
ANSWER_SECONDS = 20.0
SECRET_CHARACTERS = 6  # a shorter value is a word of the text
INSTALL = "pip install 'desilt[connect]'"


def connect(url: str) -> "SparkSession":
    """A session of its own on the server at ``url``; what stands behind a semicolon there may be secret."""
    host, port = address(url)
    try:
        socket.create_connection((host, port), timeout=ANSWER_SECONDS).close()
    except OSError as error:  # Spark would try for minutes
        said = error.strerror or str(error)
        raise DesiltError(
            f"no Spark Connect server answers at {host}:{port} ({said}); start one, or mend --remote"
        ) from None
    try:
        import pyspark.sql.connect.session  # noqa: F401
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise DesiltError(f"Spark Connect needs {error.name or 'its packages'}; {INSTALL}") from None
    was_remote = REMOTE in os.environ
    try:
        # This process is of Spark Connect from now on, and classic sessions are none for it any more.
        session: SparkSession = SparkSession.builder.remote(url).create()
        session.conf.set("spark.sql.session.timeZone", "UTC")
    except Exception as error:
        if not was_remote:  # nothing came of it
            os.environ.pop(REMOTE, None)
        line = without_secrets(str(error).partition("\n")[0], url)
        raise WorkFailed(f"Spark Connect at {host}:{port} gives no session: {line}") from None
    return session


def without_secrets(text: str, url: str) -> str:
    """``text`` without what ``url`` says behind a semicolon: Spark repeats a parameter that it cannot read."""
    for one in url.split(";")[1:]:
        name, _, value = one.partition("=")
        text = text.replace(one, name)
        text = text.replace(value, "***") if len(value) >= SECRET_CHARACTERS else text
    return text


def address(url: str) -> tuple[str, int]:
    """Where the server is."""
    parts = urlsplit(url)
    try:
        port = parts.port or PORT
    except ValueError:
        port = 0
    if parts.scheme != "sc" or not parts.hostname or not port:
        raise BadRequest("a Spark Connect server is named sc://HOST:PORT; write --remote so")
    return parts.hostname, port


def named() -> str | None:
    """The server that the environment names, if any."""
    return os.environ.get("SPARK_REMOTE") or None
