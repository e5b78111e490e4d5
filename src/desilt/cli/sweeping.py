"""What commands share that plan and sweep: their options, where the work is done, and signs of life."""

import functools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import click

from desilt import spark
from desilt.cli.params import Share, Span
from desilt.cli.progress import Progress
from desilt.sources.spread import OnSpark
from desilt.sweep.guard import Limits

Command = Callable[..., None]
DEFAULT = Limits()

master_option = click.option("--master", help="A Spark cluster; by default, all cores of this machine.")


class Told:
    """Tells a terminal which stage it is in, how many objects it has dealt with, and how fast."""

    def __init__(self) -> None:
        self._progress = Progress("starting")

    def begins(self, stage: str) -> None:
        self._progress.finish()
        self._progress = Progress(stage)

    def advance(self, objects: int) -> None:
        self._progress.advance(objects)

    def finish(self) -> None:
        self._progress.finish()


def on_spark(master: str | None, told: Told) -> OnSpark:
    """The executors, watched."""
    told.begins("starting Spark")
    return OnSpark(spark.session(master=master), told)


def with_limits(command: Command) -> Command:
    """The guards as options; the command gets ``limits``."""

    @click.option("--max-plan-age", type=Span(), default=DEFAULT.max_plan_age, help="Refuse an older plan.  [1d]")
    @click.option(
        "--max-share", type=Share(), default=DEFAULT.max_share, help="Of all objects or bytes, within a day.  [30%]"
    )
    @click.option("--max-objects", type=click.IntRange(0), help="Refuse to remove more objects than this.")
    @click.option("--allow-empty", is_flag=True, help="Go on although nothing at all is held.")
    @click.option("--confirm", is_flag=True, help="I have seen a plan of this; needed the first time.")
    @click.option("--after-restore", is_flag=True, help="I know that the database was restored from a copy.")
    @click.option("--clock-is-right", is_flag=True, help="The clock of the last run was wrong, this one is not.")
    @functools.wraps(command)
    def wrapped(
        *values: Any,
        max_plan_age: timedelta,
        max_share: float,
        max_objects: int | None,
        allow_empty: bool,
        confirm: bool,
        after_restore: bool,
        clock_is_right: bool,
        **rest: Any,
    ) -> None:
        limits = Limits(max_plan_age, max_share, max_objects, allow_empty, confirm, after_restore, clock_is_right)
        command(*values, limits=limits, **rest)

    return wrapped
