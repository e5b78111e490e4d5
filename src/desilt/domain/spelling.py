"""Moments, lengths of time, shares and counts as people write them: on a command line, in a notebook, in a file."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from desilt.domain.keep_rules import BUCKETS, KeepCounts
from desilt.errors import BadRequest

LONGEST = timedelta(days=36_500)
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def read_moment(text: str) -> datetime:
    """``2026-01-31``, its first moment in UTC; or ``2026-01-31T12:00:00Z``, with a time zone."""
    day = re.fullmatch(r"\d{4}-\d\d-\d\d", text.strip())
    try:
        found = datetime.fromisoformat(f"{text.strip()}T00:00:00Z" if day else re.sub(r"\s*UTC$", "Z", text.strip()))
    except ValueError:
        fact = "is not a time: there is no such day" if day else "is not a time"
        raise BadRequest(f"{text!r} {fact}; write 2026-01-31, or 2026-01-31T12:00:00Z") from None
    if found.tzinfo is None:
        raise BadRequest(f"{text!r} has no time zone; write 2026-01-31, or 2026-01-31T12:00:00Z")
    return found


def read_span(text: str) -> timedelta:
    """``90m``, ``12h``, ``7d``."""
    match = re.fullmatch(r"(\d{1,6})([smhdw])", "0s" if text.strip() == "0" else text.strip())
    if match is None:
        raise BadRequest(f"{text!r} is not a length of time; write 90m, 12h or 7d")
    found = timedelta(**{UNITS[match[2]]: int(match[1])})
    if found > LONGEST:
        raise BadRequest(f"{text!r} is longer than a hundred years; write less")
    return found


def read_day_or_span(text: str) -> datetime | timedelta:
    """``2026-01-31``, or ``30d`` ago."""
    if re.fullmatch(r"\d+[a-z]", text.strip()):
        return read_span(text)
    if not re.match(r"\d{4}-", text.strip()):
        raise BadRequest(f"{text!r} is neither a date nor a length of time; write 2026-01-31, or 30d")
    return read_moment(text)


def read_end(text: str) -> datetime | timedelta:
    """``2026-01-31``, or ``30d`` from now."""
    if re.fullmatch(r"\d+[a-z]", text.strip()):
        return read_span(text)
    try:
        return read_moment(text)
    except BadRequest as error:
        raise BadRequest(f"{error}, or 30d") from None


def read_share(text: str) -> float:
    """``30%``."""
    match = re.fullmatch(r"(\d{1,3}(?:\.\d+)?)%", text.strip())
    if match is None or float(match[1]) > 100:
        raise BadRequest(f"{text!r} is not a share; write 30%")
    return float(match[1]) / 100


def read_counts(text: str) -> dict[str, int]:
    """``daily=7,weekly=4``."""
    found: dict[str, int] = {}
    for part in text.split(","):
        match = re.fullmatch(rf"\s*({'|'.join(BUCKETS)})\s*=\s*(\d{{1,6}})\s*", part)
        if match is None:
            raise BadRequest(f"{text!r} is not so many of {', '.join(BUCKETS)}; write daily=7,weekly=4")
        if match[1] in found:
            raise BadRequest(f"{text!r} has {match[1]} twice; write it once")
        found[match[1]] = int(match[2])
    return found


def read_keep(given: object) -> KeepCounts:
    """``daily=7,weekly=4``, or the same as a mapping."""
    counts = read_counts(given) if isinstance(given, str) else given
    if isinstance(counts, KeepCounts):
        return counts
    if not isinstance(counts, Mapping):
        raise BadRequest(f"'keep' is {given!r}; give {{'daily': 7}}, or 'daily=7,weekly=4'")
    for rule, count in counts.items():
        if rule not in BUCKETS:
            raise BadRequest(f"{rule!r} is not a rule of what to keep; there are {', '.join(BUCKETS)}")
        if isinstance(count, bool) or not isinstance(count, int):
            raise BadRequest(f"keep {rule} is {count!r}; write how many to keep, 0 for none")
    return KeepCounts(**counts)
