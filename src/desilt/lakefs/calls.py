"""One request to a lakeFS server and its answer, by the official client.

Answers are taken as bytes, not as the client's models: a field that is new or missing there is judged here. What fails
on the way, or with 5xx, is asked again; every other bad answer is an error that says what was being done.
"""

import json
import random
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from desilt.errors import BadRequest, MissingRight, NotFound, ServerFailed, ServerTooOld, WrongKeys
from desilt.lakefs.settings import API, Settings

ATTEMPTS = 6
FIRST_PAUSE = 0.2  # seconds; twice as long each time, more or less
TIMEOUT = (10, 180)  # seconds: to connect, and for an answer; a page of prepare_uncommited takes up to a minute
INSTALL = "a lakeFS server is asked by lakeFS's own client; pip install 'desilt[lakefs]'"
BUSY = 429  # asked for too much at once: like 503
NO_ANSWER = {
    "IncompleteRead": "its answer was cut off",
    "RemoteDisconnected": "it hung up",
    "ReadTimeoutError": "nothing came in time",
    "ConnectTimeoutError": "nothing came in time",
}
NO_ROUTE = ("no matching operation", "no matching route", "method not allowed", "invalid api endpoint")


@dataclass(frozen=True, slots=True)
class Call:
    """What is being done, as an error goes on from *may not* and *has no way to*; and the rights it takes."""

    doing: str
    rights: str


class Absent(Exception):
    """The server says 404 or 410 of what was asked for; who asked knows what that means."""

    def __init__(self, status: int, message: str) -> None:
        self.status, self.message = status, message
        super().__init__(message)


class Calls:
    """Requests with one repository's settings."""

    def __init__(self, settings: Settings, *, pause: Callable[[float], None] = time.sleep) -> None:
        self.settings, self._pause = settings, pause
        self._client, self._bad = _client(settings)

    def json(
        self,
        call: Call,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | bytes] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The answer's fields; :class:`Absent` where there is nothing."""
        return self.told(call, self.raw(call, method, path, query=query, body=body))

    def told(self, call: Call, raw: bytes) -> dict[str, Any]:
        """The fields of an answer."""
        try:
            found = json.loads(raw)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise self.failed(call, "answered with something that is no JSON object", "see whether its URL is right")
        return found

    def raw(
        self,
        call: Call,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | bytes] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> bytes:
        for attempt in range(1, ATTEMPTS + 1):
            status, raw = self._ask(method, path + (f"?{urlencode(query)}" if query else ""), body)
            if status and status < 500 and status != BUSY:
                break
            if _no_route(status, _message(raw)):
                raise ServerTooOld(self.settings.endpoint, call.doing)
            if attempt < ATTEMPTS:
                self._pause(FIRST_PAUSE * 2 ** (attempt - 1) * random.uniform(0.5, 1.5))
        if 200 <= status < 300:
            return raw
        raise self._judged(call, status, _message(raw) if status else raw.decode())

    def failed(self, call: Call, fact: str, way_out: str = "run again, nothing was removed") -> ServerFailed:
        return ServerFailed(self.settings.endpoint, f"was asked to {call.doing} and {fact}", way_out)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None) -> tuple[int, bytes]:
        """Status and body; 0 and the reason where there was no answer."""
        status_error, no_answer = self._bad
        headers = {"Accept": "application/json, application/octet-stream"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            answer = self._client.call_api(
                path,
                method,
                header_params=headers,
                body=body,
                response_types_map={"2XX": "bytearray"},
                auth_settings=["basic_auth"],
                _request_timeout=TIMEOUT,
            )
        except status_error as error:
            text = error.body if isinstance(error.body, str) else ""
            return (error.status, text.encode()) if error.status else (0, _why(error.__context__).encode())
        except UnicodeDecodeError:  # of an error's body, which the client takes for UTF-8
            return 0, b"an error that cannot be read"
        except no_answer as error:
            return 0, _why(error).encode()
        return int(answer.status_code), bytes(answer.raw_data)

    def _judged(self, call: Call, status: int, message: str) -> Exception:
        """What a bad answer is."""
        at, key_id = self.settings.endpoint, self.settings.key_id
        said = f"({status}: {message})" if message else f"({status})"
        if status == 401:
            return WrongKeys(at, key_id)
        if status == 403 and "read-only" in message.lower():
            return self.failed(call, "says that the repository is read-only", "ask its owner to lift that")
        if status == 403:
            return MissingRight(at, key_id, call.doing, call.rights)
        if _no_route(status, message):
            return ServerTooOld(at, call.doing)
        if status == 404 and message == "repository not found":
            return NotFound("repository", self.settings.repository, f"see `lakectl repo list` for those at {at}")
        if status in (404, 410):
            return Absent(status, message)
        if not status:
            way_out = "see whether it is up and its URL is right, and run again"
            return self.failed(call, f"did not answer, {ATTEMPTS} times ({message})", way_out)
        if 300 <= status < 400:
            return self.failed(call, f"sent us elsewhere ({status}), where we do not go", "name the server's own URL")
        if status >= 500 or status == BUSY:
            return self.failed(call, f"failed, {ATTEMPTS} times {said}", "see its log, and run again")
        return self.failed(call, f"refused {said}")


def segment(text: str) -> str:
    """One part of a path."""
    return quote(text, safe="")


def _no_route(status: int, message: str) -> bool:
    """Whether the server does not know what was asked for; a thing that is not there has an answer in JSON."""
    return status in (405, 501) or (
        status in (400, 404, 500) and (message.lower().startswith(NO_ROUTE) or (status == 404 and not message))
    )


def _why(error: BaseException | None) -> str:
    """Why there was no answer: in the words of the system, where there are such at the bottom of it."""
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        below = (getattr(error, "reason", None), *error.args, error.__cause__)
        error = next((one for one in below if isinstance(one, BaseException)), None)
    for one in reversed(found):
        if isinstance(one, ssl.SSLError):
            return f"TLS: {(one.reason or type(one).__name__).lower().replace('_', ' ')}"
        if isinstance(one, OSError) and one.strerror:
            return one.strerror.lower()
    name = type(found[-1]).__name__ if found else "no reason known"
    return NO_ANSWER.get(name, name)


def _message(raw: bytes) -> str:
    """What an error says, in one line; "" where it is none of the server's."""
    try:
        told = json.loads(raw)
    except ValueError:
        text = raw[:200].decode(errors="replace")
        return " ".join(text.split()) if text.lower().startswith(NO_ROUTE) or text.isidentifier() else ""
    found = told.get("message") if isinstance(told, dict) else None
    return " ".join(found.split())[:200] if isinstance(found, str) else ""


def _client(settings: Settings) -> tuple[Any, tuple[Any, Any]]:
    """The client, and what it raises: for a bad status, and for no answer. Nothing is followed or tried again by it."""
    try:
        import urllib3
        from lakefs_sdk import ApiClient, Configuration
        from lakefs_sdk.exceptions import ApiException
    except ImportError:
        raise BadRequest(INSTALL) from None
    configuration = Configuration(host=settings.endpoint + API, username=settings.key_id, password=settings.secret)
    configuration.retries = urllib3.Retry(0, redirect=False)
    return ApiClient(configuration), (ApiException, urllib3.exceptions.HTTPError)
