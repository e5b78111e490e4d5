"""Signs of life on stderr for what takes more than a moment; silent for what does not."""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import click

from desilt.domain.units import size
from desilt.errors.base import told

T = TypeVar("T")
QUIET_SECONDS = 2.0
EVERY_SECONDS = {True: 0.2, False: 10.0}  # on a terminal one line is rewritten, elsewhere lines add up


class Progress:
    """How far something is, said now and then."""

    def __init__(self, label: str, *, total: int | None = None, in_bytes: bool = False) -> None:
        self._label, self._total, self._in_bytes = told(label), total, in_bytes
        self._began = self._said = time.monotonic()
        self._terminal = sys.stderr.isatty()
        self._done = 0
        self._spoke = False

    def advance(self, amount: int) -> None:
        self._done += amount
        now = time.monotonic()
        if now - self._began > QUIET_SECONDS and now - self._said > EVERY_SECONDS[self._terminal]:
            self._said, self._spoke = now, True
            rate = self._amount(int(self._done / (now - self._began)))
            of = f" of {self._amount(self._total)}" if self._total else ""
            line = f"{self._label}: {self._amount(self._done)}{of}, {rate}/s"
            click.echo(f"\r\x1b[K{line}" if self._terminal else line, nl=not self._terminal, err=True)

    def finish(self) -> None:
        if self._spoke and self._terminal:
            click.echo("\r\x1b[K", nl=False, err=True)

    def _amount(self, count: int) -> str:
        return size(count) if self._in_bytes else f"{count:,}"


def counted(items: Sequence[T], label: str) -> Iterator[T]:
    """``items``, counted as they are used."""
    progress = Progress(label, total=len(items))
    for item in items:
        yield item
        progress.advance(1)
    progress.finish()


def tracked(items: Iterable[T], label: str, *, of_bytes: int | None = None) -> Iterator[T]:
    """``items``, counted as they pass: one by one, or by length where they are bytes."""
    in_bytes = of_bytes is not None
    progress = Progress(label, total=of_bytes, in_bytes=in_bytes)
    for item in items:
        yield item
        progress.advance(len(item) if isinstance(item, bytes) else 1)
    progress.finish()
