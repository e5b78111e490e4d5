"""Whether the workers of a Spark session can do our work: they have this very desilt, or are sent it."""

import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from desilt.errors import WorkersDiffer
from desilt.executors import package, task
from desilt.logs import logger

LOOKS_TO_A_CORE = 2  # so that each worker is likely to be looked at; those that come later look at themselves
LOOKED = "host string, version string, modules string"  # as a struct
INSTALL = f"pip install {package.NAME} there, or ship an environment that has it; docs/cluster.md tells how"
log = logger(__name__)
_prepared: set[str] = set()
_sent_from: "list[tempfile.TemporaryDirectory[str]]" = []  # until this process ends: workers that come later fetch it


def prepare(spark: Any, name: str, width: int) -> None:
    """Once for each session, by its ``name``: look at some workers, and send them the package if they lack it."""
    if name in _prepared:
        return
    found = looked_at(spark, width)
    if any(one["version"] == package.NAME and not one["modules"] for one in found):
        ship(spark)
        found = looked_at(spark, width)
    mine = package.this()
    for one in found:
        if not one["modules"]:
            raise WorkersDiffer(f"{one['host']} lacks {one['version']}", INSTALL)
        theirs = package.Package(one["version"], one["modules"])
        if theirs != mine:
            raise WorkersDiffer(f"{one['host']} has {theirs}", f"install the driver's {mine} there, or none")
    _prepared.add(name)


def sendable(run: task.Numbered, name: str) -> task.Numbered:
    """A function of :mod:`task` that goes to workers as it is, under a name that Spark shows."""
    from pyspark import cloudpickle

    as_it_is: Callable[[Any], None] = cloudpickle.register_pickle_by_value  # by name, they would look for desilt
    as_it_is(task)
    run.__name__ = name
    return run


def looked_at(spark: Any, width: int) -> Sequence[dict[str, str]]:
    """What some workers have."""
    asked = numbered(spark, LOOKS_TO_A_CORE * width, sendable(task.look, "look"), LOOKED)
    return [row["came"].asDict() for row in asked.collect()]


def numbered(spark: Any, count: int, run: task.Numbered, came: str) -> Any:
    """A frame of so many numbers, one to a task, and what ``run`` makes of each.

    By a plain function, not one of Arrow's: those need pandas, and each worker would take a second to load it.
    """
    made = functions_of(spark).udf(run, came, useArrow=False).asNondeterministic()  # whatever it does, it does once
    return spark.range(0, count, 1, max(1, count)).select("id", made("id").alias("came"))


def functions_of(spark: Any) -> Any:
    """Those that go with the session: Spark Connect has its own."""
    return import_module("pyspark.sql.connect.functions" if by_connect(spark) else "pyspark.sql.functions")


def by_connect(spark: Any) -> bool:
    """Whether it is a session of Spark Connect: asked of its class, for the session itself would raise."""
    return not hasattr(type(spark), "sparkContext")


def ship(spark: Any) -> None:
    """Send this package to all workers of the session, those too that come later."""
    _sent_from.append(tempfile.TemporaryDirectory(prefix="desilt-"))
    packed = str(package.archive(Path(_sent_from[-1].name)))
    log.info("workers are sent %s", package.this())
    if by_connect(spark):
        spark.addArtifacts(packed, pyfile=True)
    else:
        spark.sparkContext.addPyFile(packed)
