"""The seam: what the engine asks of a repository of any kind.

A :class:`Source` reads, a :class:`Gate` is where things are removed, a
:class:`HistoryEditor` changes history where a kind of repository lets anybody do
that, a :class:`Witness` looks single things up, and :class:`Holds` are what people order.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from desilt.clock import Clock
from desilt.columns.layout import Layout
from desilt.domain.modes import Mode
from desilt.executors.executor import Executor
from desilt.objects.store import ObjectStore
from desilt.records.database import Database
from desilt.records.holds import Hold, HoldKind
from desilt.repository.assets import Assets
from desilt.repository.editor import HistoryEditor
from desilt.repository.findings import Findings, Progress
from desilt.repository.gate import Gate
from desilt.repository.hard_delete import HardDelete
from desilt.repository.source import Source
from desilt.repository.witness import Witness


class Holds(Protocol):
    """What people order to be kept, and policies: both count from the transaction on that writes them."""

    def add(self, kind: HoldKind, value: str, *, reason: str, until: datetime | None) -> Hold: ...

    def lift(self, hold_id: str) -> None: ...

    def every(self) -> list[Hold]: ...

    def set_policy(self, job: str, document: Mapping[str, Any], agreed: Iterable[str]) -> datetime: ...


class Repository(Protocol):
    """Identity, store, clock, layout, records, and the ways in."""

    @property
    def name(self) -> str: ...

    @property
    def uid(self) -> str: ...

    @property
    def uri(self) -> str: ...

    @property
    def argument(self) -> str:
        """What commands call it."""

    @property
    def prefix(self) -> str: ...

    @property
    def default_branch(self) -> str: ...

    @property
    def secret(self) -> str:
        """Signs plans."""

    @property
    def grace(self) -> timedelta:
        """How long an upload may take until it is staged."""

    @property
    def store(self) -> ObjectStore: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def records(self) -> Database: ...

    @property
    def layout(self) -> Layout: ...

    @property
    def gate(self) -> Gate: ...

    @property
    def editor(self) -> HistoryEditor | None: ...

    @property
    def hard_delete(self) -> HardDelete | None:
        """None: repositories of this kind drop nothing at once."""

    @property
    def reports(self) -> str:
        """The folder in which others look for reports of collections, below the prefix; "": nobody does."""

    @property
    def refuses(self) -> Mapping[str, str]:
        """Jobs, and other commands, that cannot be done in a repository of this kind, and why, in one line."""

    @property
    def assets(self) -> Assets | None:
        """None: what no ref reaches is on record, and no listing is asked which there is."""

    @property
    def modes(self) -> Sequence[Mode]:
        """The ways in which its history can be made shorter, its own first."""

    @property
    def orders(self) -> Holds: ...

    @property
    def witness(self) -> Witness: ...

    def source(self, executor: Executor) -> Source: ...

    def fsck(self, *, deep: bool, progress: Progress) -> Findings:
        """Whether all of it is sound; ``deep`` reads every object, too, and tells how far it is."""

    @property
    def handle(self) -> Callable[[], "Repository"]:
        """How an executor opens it for itself: small, and can be sent there."""
