"""Signs of life on stderr for what takes more than a moment; silent for what does not."""

import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import click

from desilt.cli.verbosity import shows_progress
from desilt.domain.units import size
from desilt.errors.base import told

T = TypeVar("T")
QUIET_SECONDS = 2.0
EVERY_SECONDS = {True: 0.2, False: 10.0}  # on a terminal one line is rewritten, elsewhere lines add up
CLEAR = "\r\x1b[K"


class Progress:
    """How far something is, said now and then, whether it gets on or not."""

    def __init__(
        self, label: str, *, total: int | None = None, in_bytes: bool = False, quiet: float = QUIET_SECONDS
    ) -> None:
        self.total, self._quiet = total, quiet
        self._label, self._in_bytes = told(label), in_bytes
        self._began = time.monotonic()
        self._done = 0
        self.spoke_at: float | None = None
        self._terminal = sys.stderr.isatty()
        self._over = threading.Event()

    def begin(self) -> "Progress":
        """Say something now and then until it is finished."""
        if shows_progress():
            threading.Thread(target=self._say_now_and_then, name="progress", daemon=True).start()
        return self

    def advance(self, amount: int) -> None:
        self._done += amount

    def finish(self) -> None:
        self._over.set()
        if self.spoke_at is not None and self._terminal:
            click.echo(CLEAR, nl=False, err=True)

    def line(self, seconds: float) -> str:
        """How far it is after so many seconds: what was done, of how much, how fast, and how long the rest may take."""
        if not self._done:
            return f"{self._label}: {seconds:.0f} s"
        rate = self._done / seconds
        said = f"{self._label}: {self._amount(self._done)}"
        if self.total is None or self.total < self._done:
            return f"{said}, {self._amount(int(rate))}/s"
        left = about((self.total - self._done) / rate)
        return f"{said} of {self._amount(self.total)}, {self._amount(int(rate))}/s, {left} left"

    def _say_now_and_then(self) -> None:
        wait = self._quiet
        while not self._over.wait(wait):
            wait, self.spoke_at = EVERY_SECONDS[self._terminal], time.monotonic()
            line = self.line(time.monotonic() - self._began)
            click.echo(f"{CLEAR}{line}" if self._terminal else line, nl=not self._terminal, err=True)

    def _amount(self, count: int) -> str:
        return size(count) if self._in_bytes else f"{count:,}"


def about(seconds: float) -> str:
    """A time that nobody knows exactly."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    return f"about {round(seconds / 60)} min" if seconds < 5400 else f"about {round(seconds / 3600)} h"


class Told:
    """Tells a terminal which stage work is in, how many objects it has dealt with, and how fast."""

    def __init__(self) -> None:
        self._speaks_at = time.monotonic() + QUIET_SECONDS
        self._progress = Progress("starting").begin()

    def begins(self, stage: str) -> None:
        """Many short stages are a long time, too: who has waited is told of the next at once, a file now and then."""
        self._progress.finish()
        if (spoke_at := self._progress.spoke_at) is not None:
            self._speaks_at = spoke_at + EVERY_SECONDS[sys.stderr.isatty()]
        quiet = max(self._speaks_at - time.monotonic(), 0.0)
        self._progress = Progress(stage, quiet=quiet).begin()

    def expects(self, objects: int) -> None:
        self._progress.total = objects

    def advance(self, objects: int) -> None:
        self._progress.advance(objects)

    def ends(self) -> None:
        self._progress.finish()


def counted(items: Sequence[T], label: str) -> Iterator[T]:
    """``items``, counted as they are used."""
    yield from tracked(items, label, total=len(items))


def tracked(items: Iterable[T], label: str, *, total: int | None = None, of_bytes: int | None = None) -> Iterator[T]:
    """``items``, counted as they pass: one by one, or by length where they are bytes."""
    progress = Progress(label, total=total if of_bytes is None else of_bytes, in_bytes=of_bytes is not None).begin()
    try:
        for item in items:
            yield item
            progress.advance(len(item) if isinstance(item, bytes) else 1)
    finally:
        progress.finish()
