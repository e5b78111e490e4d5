"""Passwords of databases: a process knows them by its environment; they are never sent with a piece of work.

What is sent names a database without its password. Whoever opens it there finds the rest: in DESILT_DB of that
machine, in what the process was started with by ours, or where PostgreSQL's own programs look (PGPASSWORD, ~/.pgpass).
"""

import os
import re
from urllib.parse import unquote

KNOWN = "DESILT_DATABASES"  # URLs with passwords, a line each, for processes that this one starts
SECRETS = ("password=", "sslpassword=")
MISPLACED = re.compile(r"&?(ssl)?password=[^&]*")  # where PostgreSQL would not look for one


def without_password(url: str) -> str:
    """``url`` as it may be sent, logged and shown."""
    scheme, divided, rest = url.partition("://")
    if not divided or scheme == "sqlite":
        return url
    head, slash, tail = rest.partition("/")
    if "@" in head:  # up to there all is the user's, as PostgreSQL reads it: a question mark in a password too
        user, at, host = head.rpartition("@")
        place, asked, query = f"{host}{slash}{tail}".partition("?")
    else:
        place, asked, query = rest.partition("?")
        user, at, place = place.rpartition("@")
    plain = [one for one in query.split("&") if one and not unquote(one).startswith(SECRETS)]
    told = f"{scheme}://{user.partition(':')[0]}{at}{place}" + (f"{asked}{'&'.join(plain)}" if plain else "")
    return MISPLACED.sub("", told)


def with_password(url: str) -> str:
    """``url`` as this process knows it; as it is, if it knows no more."""
    known = [os.environ.get("DESILT_DB", ""), *os.environ.get(KNOWN, "").splitlines()]
    return next((one for one in known if one and without_password(one) == url), url)


def remember(url: str) -> None:
    """Let processes that this one starts from now on know it."""
    known = os.environ.get(KNOWN, "").splitlines()
    if without_password(url) != url and url not in known:
        others = [one for one in known if without_password(one) != without_password(url)]
        os.environ[KNOWN] = "\n".join([*others, url])
