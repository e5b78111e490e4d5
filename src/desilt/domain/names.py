"""Names of repositories, branches and tags, by lakeFS's rules; and text that every database can keep."""

import re

from desilt.errors import BadRequest, InvalidName

MAX_NAME = 256
REPOSITORY = re.compile(r"[a-z0-9][a-z0-9-]{2,62}", re.ASCII)
BRANCH = re.compile(r"\w[-\w]*", re.ASCII)
TAG_FORBIDS = re.compile(r"[\x00-\x20^:?*\[\\/]|\.\.|@\{|\.$|\.lock$|^@$")


def check_repository(name: str) -> str:
    if not REPOSITORY.fullmatch(name):
        raise InvalidName("repository", name, "use 3 to 63 of a-z, 0-9 and -, beginning with a letter or digit")
    return name


def check_branch(name: str) -> str:
    if not BRANCH.fullmatch(name) or len(name) > MAX_NAME:
        raise InvalidName("branch", name, "use up to 256 letters, digits, _ and -, not beginning with -")
    return name


def check_tag(name: str) -> str:
    """As git's refs, without a slash."""
    if not name or TAG_FORBIDS.search(name) or len(name) > MAX_NAME or not _storable(name):
        rule = r"use up to 256 characters without space, / ^ : ? * [ \ or .. or @{, not ending in . or .lock"
        raise InvalidName("tag", name, rule)
    return name


def check_text(what: str, text: str) -> str:
    """``text`` (a message, a committer, metadata) if a database can keep it: UTF-8 without NUL."""
    if not _storable(text):
        raise BadRequest(f"{what} must be UTF-8 without NUL; take the odd bytes out")
    return text


def _storable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text)
