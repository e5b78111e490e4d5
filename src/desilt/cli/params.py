"""Kinds of values that several commands take: moments, lengths of time, shares."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

from desilt.domain import spelling
from desilt.errors import BadRequest

T = TypeVar("T")


class Spelled(click.ParamType[T]):
    """What people write, read by ``read``; the default is left as it is, and nothing else that is no text."""

    def __init__(self, name: str, read: Callable[[str], T]) -> None:
        self.name, self._read = name, read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        if not isinstance(value, str):
            if param is None or value is not param.default:  # a file says it
                self.fail(f"{value!r} is not a text; write it in quotes", param, ctx)
            return cast("T", value)
        try:
            return self._read(value)
        except BadRequest as error:
            self.fail(str(error), param, ctx)


MOMENT = Spelled("date|time", spelling.read_moment)
SPAN = Spelled("span", spelling.read_span)
DAY_OR_SPAN = Spelled("date|time|span", spelling.read_day_or_span)
END = Spelled("date|time|span", spelling.read_end)
SHARE = Spelled("share", spelling.read_share)
COUNTS = Spelled("rules", spelling.read_counts)
