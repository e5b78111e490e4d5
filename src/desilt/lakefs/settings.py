"""Where a lakeFS server is and what keys it is given: found as lakectl and lakeFS's clients find them.

What the URI says comes first, then ``LAKECTL_*``, then lakectl's own file, then ``LAKEFS_*``. The secret is
in no text and no pickle: another process finds it for itself, or says that it cannot.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from desilt.errors import BadRequest, InvalidUri

URI = re.compile(r"lakefs(?::/|\+(https?)://([^/?#@\s]+))/([^/?#@\s]+)/?")
REPOSITORY = re.compile(r"[a-z0-9][a-z0-9-]{2,62}")
API = "/api/v1"
FILE = "LAKECTL_CONFIG_FILE"
WRITE = "lakefs://REPOSITORY, or lakefs+https://HOST/REPOSITORY"
NAMES = {  # what is looked for: lakectl's variable, the section and key in its file, and the clients' variable
    "endpoint": ("LAKECTL_SERVER_ENDPOINT_URL", ("server", "endpoint_url"), "LAKEFS_ENDPOINT"),
    "key_id": ("LAKECTL_CREDENTIALS_ACCESS_KEY_ID", ("credentials", "access_key_id"), "LAKEFS_ACCESS_KEY_ID"),
    "secret": (
        "LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY",
        ("credentials", "secret_access_key"),
        "LAKEFS_SECRET_ACCESS_KEY",
    ),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """One repository of one server."""

    endpoint: str  # without a slash at its end, and without the API's own path
    repository: str
    key_id: str
    secret: str = field(repr=False)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, ...]]:
        return _found_again, (self.endpoint, self.repository, self.key_id)


def find(uri: str, *, environment: Mapping[str, str] | None = None) -> Settings:
    """The settings for ``uri``, by the environment and lakectl's file; whatever lacks is told with its name."""
    scheme, host, repository = parse(uri)
    known = os.environ if environment is None else environment
    file = _file(known)
    said = {name: _said(known, file, name) for name in NAMES}
    if not said["key_id"][0] and not said["secret"][0]:
        raise BadRequest(
            f"there are no keys for {uri}: run `lakectl config`, or set {NAMES['key_id'][0]} and {NAMES['secret'][0]}"
        )
    for name, other in (("key_id", "secret"), ("secret", "key_id")):
        if not said[name][0]:
            raise BadRequest(
                f"half of the keys for {uri} is missing: {said[other][1]} is set and {NAMES[name][0]} is not; set both"
            )
    endpoint, origin = (f"{scheme}://{host}", "the URI") if host else said["endpoint"]
    if not endpoint:
        raise BadRequest(f"where is the server of {uri}? set {NAMES['endpoint'][0]}, or write lakefs+https://HOST/…")
    url = _endpoint(endpoint, origin)
    theirs = _section(file, *NAMES["endpoint"][1])
    if host and said["secret"][1] == _spelled("secret") and theirs:
        other_host = urlsplit(_endpoint(theirs, _spelled("endpoint"))).netloc
        if other_host != urlsplit(url).netloc:
            raise BadRequest(
                f"the keys in lakectl's file are for {other_host}, and {uri} is elsewhere: they are not sent there; "
                f"set {NAMES['key_id'][0]} and {NAMES['secret'][0]}"
            )
    return Settings(url, repository, said["key_id"][0], said["secret"][0])


def parse(uri: str) -> tuple[str, str, str]:
    """Scheme and host, both "" where the URI leaves them to the settings; and the repository."""
    match = URI.fullmatch(uri)
    if match is None:
        raise InvalidUri(f"{_without_user(uri)!r} is not a repository of a lakeFS server; write {WRITE}")
    if not REPOSITORY.fullmatch(match[3]):
        raise InvalidUri(f"{match[3]!r} cannot be the name of a lakeFS repository; write {WRITE}")
    return match[1] or "", match[2] or "", match[3]


def _said(known: Mapping[str, str], file: Mapping[str, Any], name: str) -> tuple[str, str]:
    """What is said of ``name``, and where: the first that says anything."""
    lakectl, (section, key), client = NAMES[name]
    if known.get(lakectl):
        return known[lakectl], lakectl
    if found := _section(file, section, key):
        return found, _spelled(name)
    return known.get(client, ""), client


def _spelled(name: str) -> str:
    return ".".join(NAMES[name][1]) + " in lakectl's file"


def _section(file: Mapping[str, Any], section: str, key: str) -> str:
    there = file.get(section)
    found = there.get(key) if isinstance(there, dict) else None
    return found if isinstance(found, str) else ""


def _file(known: Mapping[str, str]) -> Mapping[str, Any]:
    """lakectl's file, which need not be there unless somebody names it; what it holds is never quoted."""
    named = known.get(FILE)
    path = Path(named) if named else Path(known.get("HOME") or Path.home()) / ".lakectl.yaml"
    try:
        told = yaml.safe_load(path.read_text())
    except FileNotFoundError:
        if named:
            raise BadRequest(f"{named}, which {FILE} names, is not there; mend the variable, or unset it") from None
        return {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadRequest(f"{path} cannot be read ({type(error).__name__}); see `lakectl config`") from None
    if told is not None and not isinstance(told, dict):
        raise BadRequest(f"{path} is not what lakectl writes; see `lakectl config`")
    return told or {}


def _endpoint(text: str, origin: str) -> str:
    """``text`` as a URL that paths can be added to."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    plain = parts.scheme in ("http", "https") and parts.hostname and port != 0
    if not plain or "@" in parts.netloc or parts.query or parts.fragment:
        raise BadRequest(f"{origin} is no URL of a lakeFS server; write https://HOST[:PORT], without keys in it")
    path = parts.path.rstrip("/").removesuffix(API).rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}"


def _without_user(uri: str) -> str:
    """Somebody may have written keys into it."""
    return re.sub(r"(:/*).*@", r"\1…@", uri)


def _found_again(endpoint: str, repository: str, key_id: str) -> Settings:
    """The same settings in another process, where the secret must be known too."""
    file = _file(os.environ)
    found, secret = (_said(os.environ, file, name)[0] for name in ("key_id", "secret"))
    if found != key_id or not secret:
        raise BadRequest(
            f"the secret of the key {key_id!r} for {endpoint} is not known here, and is not sent; "
            f"set {NAMES['key_id'][0]} and {NAMES['secret'][0]} on workers too"
        )
    return Settings(endpoint, repository, key_id, secret)
