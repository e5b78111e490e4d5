"""Kinds of values that several commands take: moments, lengths of time, shares."""

import re
from datetime import datetime, timedelta

import click

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Moment(click.ParamType[datetime]):
    """``2026-01-31T12:00:00Z``, with a time zone."""

    name = "time"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a time; write 2026-01-31T12:00:00Z", param, ctx)
        if moment.tzinfo is None:
            self.fail(f"{value!r} has no time zone; write 2026-01-31T12:00:00Z", param, ctx)
        return moment


class Day(Moment):
    """``2026-01-31``, its first moment in UTC; or a moment with a time zone."""

    name = "day"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", value.strip()):
            return super().convert(value, param, ctx)
        try:
            return datetime.fromisoformat(f"{value.strip()}T00:00:00Z")
        except ValueError:
            self.fail(f"{value!r} is not a time: there is no such day; write 2026-01-31", param, ctx)


class Span(click.ParamType[timedelta]):
    """``90m``, ``12h``, ``7d``."""

    name = "span"

    def convert(self, value: str | timedelta, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        match = re.fullmatch(r"(\d{1,6})([smhdw])", value.strip())
        if match is None:
            self.fail(f"{value!r} is not a length of time; write 90m, 12h or 7d", param, ctx)
        return timedelta(**{UNITS[match[2]]: int(match[1])})


class Share(click.ParamType[float]):
    """``30%``."""

    name = "share"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d{1,3}(?:\.\d+)?)%", value.strip())
        if match is None or float(match[1]) > 100:
            self.fail(f"{value!r} is not a share; write 30%", param, ctx)
        return float(match[1]) / 100
