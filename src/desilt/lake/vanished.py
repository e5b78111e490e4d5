"""Commits that are collected while somebody reads them: they are gone, not damaged."""

from collections.abc import Iterator
from contextlib import contextmanager

from desilt.errors import MissingTable
from desilt.lake import commits
from desilt.lake.core import Core


@contextmanager
def telling_gone(core: Core, *commit_ids: str) -> Iterator[None]:
    """While tables of these commits are read: one that is missing since its commit was collected is told so."""
    try:
        yield
    except MissingTable:
        with core.database.read() as tx:  # not the snapshot of whoever reads: in that one they are all there
            commits.require(tx, core.uid, commit_ids)
        raise
