"""Where a command does its work: here as long as that is quickest, on Spark where it is large or somebody says so."""

import functools
import os
import re
from collections.abc import Callable
from typing import Any

import click

from desilt.cli.progress import Told
from desilt.executors import connect
from desilt.executors.by_size import WITHOUT_SPARK, BySize
from desilt.executors.executor import Executor, Watch

Command = Callable[..., None]
MASTER = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?|local-cluster\[.+\]|(spark|k8s)://.+|yarn")
ALWAYS = -1  # nothing is done without Spark; yet it is not started before there is something to do
SUBMITTED = "PYSPARK_GATEWAY_PORT"  # what spark-submit tells whom it starts


def with_executor(command: Command) -> Command:
    """What to choose by, as options; the command gets ``executor``, watched."""

    @click.option("--spark", "on_spark", is_flag=True, help="Work on Spark, however little there is to do.")
    @click.option(
        "--master",
        metavar="URL",
        callback=checked,
        help="Work on this Spark cluster; local[*] is all cores of this machine.",
    )
    @click.option(
        "--remote",
        metavar="URL",
        callback=server,
        help="Work on the Spark behind this Spark Connect server, sc://HOST:PORT; SPARK_REMOTE says so, too.",
    )
    @functools.wraps(command)
    def wrapped(*values: Any, on_spark: bool, master: str | None, remote: str | None, **rest: Any) -> None:
        if master is not None and remote is not None:
            raise click.UsageError("--master starts a Spark of its own, --remote uses another's; leave one out")
        told = Told()
        remote = remote or (None if master else connect.named())
        wanted = on_spark or master is not None or remote is not None or SUBMITTED in os.environ
        begin = functools.partial(started, master=master, remote=remote)
        executor = BySize(told, spark=begin, without_spark=ALWAYS if wanted else WITHOUT_SPARK)
        try:
            command(*values, executor=executor, **rest)
        finally:
            told.ends()
            executor.close()

    return wrapped


def checked(_context: click.Context, _option: click.Parameter, master: str | None) -> str | None:
    """What Spark takes seconds to refuse, in ten lines of Java."""
    if master is not None and not MASTER.fullmatch(master):
        raise click.BadParameter(f"{master!r} is no Spark; write local[*], spark://HOST:PORT, yarn or k8s://URL")
    return master


def server(_context: click.Context, _option: click.Parameter, remote: str | None) -> str | None:
    """The same of a server."""
    if remote is not None:
        connect.address(remote)
    return remote


def started(watch: Watch, master: str | None = None, remote: str | None = None) -> Executor:
    """Spark, which takes seconds to load and to start."""
    from desilt.executors import session
    from desilt.executors.on_spark import OnSpark

    watch.begins("connecting to Spark" if remote else "starting Spark")
    return OnSpark(connect.connect(remote) if remote else session.session(master=master), watch)
