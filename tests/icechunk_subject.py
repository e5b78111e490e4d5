"""Somebody who works on an Icechunk repository through its own library: sessions, and desilt beside them."""

from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from desilt.clock import ManualClock
from desilt.icechunk import nodes
from desilt.icechunk.opening import open_repository
from desilt.objects import open_store
from desilt.records.opening import open_records
from icechunk_world import WRITES_BOTH, icechunk, zarr


class IcechunkSubject:
    """A :class:`~desilt.testing.subject.Subject`: what is uploaded is an array of one chunk, in an open session.

    A session that is unstaged is laid aside, as by a writer who comes back to it much later.
    """

    shows_staged = False

    def __init__(self, place, version, db):
        self.root, self.shows_unreached = Path(place), version == 2
        config = icechunk.RepositoryConfig.default()
        config.inline_chunk_threshold_bytes = 0
        words = {"spec_version": version} if WRITES_BOTH else {}
        self.repo = icechunk.Repository.create(
            icechunk.local_filesystem_storage(str(self.root)), config=config, **words
        )
        self.clock = ManualClock(datetime.now(UTC))
        self.db = db
        self.repository = open_repository(open_store(str(self.root)), open_records(db), clock=self.clock)
        self._sessions, self._aside = {}, {}

    def upload(self, branch, path, body):
        if branch not in self._sessions:
            self._sessions[branch] = self.repo.writable_session(branch)
        before = self._chunks()
        group = zarr.open_group(self._sessions[branch].store, mode="a")
        shape = (len(body),)
        array = group.create_array(path, shape=shape, chunks=shape, dtype="u1", compressors=None, overwrite=True)
        array[:] = np.frombuffer(body, "u1")
        (made,) = self._chunks() - before
        return f"chunks/{made}"

    def unstage(self, branch):
        self._aside[branch] = self._sessions.pop(branch)

    def begin_upload(self, branch, path):
        """Nobody can know of sessions."""

    def stage_again(self, branch, _path, _address):
        self._sessions[branch] = self._aside.pop(branch)

    def uploaded_as(self, path):
        store = self.repository.store
        for snapshot in (self.root / "snapshots").iterdir():
            path = nodes.fetch(store, snapshot.name).called(path)
        return path.removesuffix("/c/0")

    def commit(self, branch, message):
        return self._sessions.pop(branch).commit(message)

    def branch(self, name, source):
        self.repo.create_branch(name, self.repo.lookup_branch(source))

    def delete_branch(self, name):
        self.repo.delete_branch(name)

    def tag(self, name, source):
        self.repo.create_tag(name, self.repo.lookup_branch(source))

    def wait(self, time):
        """Only our clock goes on, not the library's."""
        self.clock.now += time

    def now(self):
        return self.clock()

    def lose_commit(self, commit):
        """In format 2 all commits are in one file, which is damaged instead."""
        return self._without(self.root / "snapshots" / commit) if not self.shows_unreached else self._damaged("repo")

    def lose_branches(self):
        return self._without(self.root / ("repo" if self.shows_unreached else "refs"))

    @contextmanager
    def _without(self, path):
        aside = path.rename(self.root.parent / f"{path.name}.lost")
        try:
            yield
        finally:
            aside.rename(path)

    @contextmanager
    def _damaged(self, name):
        whole = (self.root / name).read_bytes()
        (self.root / name).write_bytes(whole[: len(whole) // 2])
        try:
            yield
        finally:
            (self.root / name).write_bytes(whole)

    def _chunks(self):
        return {path.name for path in (self.root / "chunks").glob("*")}
