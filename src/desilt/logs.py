"""Log lines under ``desilt.*``, each with the run it belongs to.

Every module takes its logger from here. What is logged while a run is :func:`under_way` has its id as ``run``, whoever
logs it; ``-`` where there is none. Who listens, and how loud, is the program's to say.
"""

import logging
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

NO_RUN = "-"
FORMAT = "%(asctime)s %(levelname)s %(run)s %(name)s: %(message)s"

_run: ContextVar[str] = ContextVar("run", default=NO_RUN)

if TYPE_CHECKING:
    Adapter = logging.LoggerAdapter[logging.Logger]
else:
    Adapter = logging.LoggerAdapter


class RunLogger(Adapter):
    """A logger whose every record has ``run``."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        return msg, {**kwargs, "extra": {"run": _run.get(), **(kwargs.get("extra") or {})}}


def logger(name: str) -> RunLogger:
    """The logger of a module; of another package too, if it brings a job."""
    return RunLogger(logging.getLogger(name), {})


@contextmanager
def under_way(run: str) -> Iterator[None]:
    """In the block, and in this thread, records are those of ``run``."""
    before = _run.set(run)
    try:
        yield
    finally:
        _run.reset(before)


def formatter() -> logging.Formatter:
    """Lines that begin with the time, how grave it is, and the run."""
    return logging.Formatter(FORMAT, defaults={"run": NO_RUN})
