"""A repository under test, of whatever kind: what the contracts of Source and Gate ask somebody to do to it.

A backend brings a :class:`Subject`, and subclasses
:class:`~desilt.testing.source_contract.SourceContract` and
:class:`~desilt.testing.gate_contract.GateContract` in a test module of its own, with a
fixture ``subject``.
"""

from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Protocol

from desilt.repository.protocol import Repository


class Subject(Protocol):
    """Somebody who works on a repository whose default branch is ``main``. Addresses are below its prefix."""

    repository: Repository
    shows_staged: bool  # whether anybody but the one who staged something can know of it
    shows_unreached: bool  # whether commits that no ref reaches are told apart from ones that never were

    def upload(self, branch: str, path: str, body: bytes) -> str:
        """Put an object and stage it at ``path``; its address."""

    def unstage(self, branch: str) -> None:
        """Forget what is staged there."""

    def begin_upload(self, branch: str, path: str) -> str | None:
        """An address that somebody is about to put an object to; None where nobody can know of that."""

    def stage_again(self, branch: str, path: str, address: str) -> None:
        """Stage what lies at ``address``, which something staged before."""

    def uploaded_as(self, path: str) -> str:
        """At which path an entry was uploaded that the repository has at ``path``: often the same."""

    def commit(self, branch: str, message: str) -> str:
        """What is staged, made a commit; its id."""

    def branch(self, name: str, source: str) -> None: ...

    def delete_branch(self, name: str) -> None: ...

    def tag(self, name: str, source: str) -> None: ...

    def wait(self, time: timedelta) -> None:
        """Let the repository's clock go on."""

    def lose_commit(self, commit: str) -> AbstractContextManager[None]:
        """In the block, the repository lacks a commit that others need: as after a bad restore."""

    def lose_branches(self) -> AbstractContextManager[None]:
        """In the block, it has no branches at all."""

    def now(self) -> datetime: ...
