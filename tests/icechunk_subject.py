"""Somebody who works on an Icechunk repository through its own library: sessions, and desilt beside them."""

from contextlib import contextmanager
from datetime import UTC, datetime

import numpy as np

from desilt.clock import ManualClock
from desilt.icechunk.format import nodes
from desilt.icechunk.opening import open_repository
from desilt.objects import open_store
from desilt.records.opening import open_records
from icechunk_world import WRITES_BOTH, icechunk, zarr


def in_directory(place):
    """Storage for its library, and where it is for us."""
    return icechunk.local_filesystem_storage(str(place)), f"file://{place}"


def in_bucket(server, bucket, prefix="some/where"):
    """The same; the environment must have the server's keys meanwhile."""
    server.create_bucket(bucket)
    storage = icechunk.s3_storage(
        bucket=bucket,
        prefix=prefix,
        endpoint_url=server.endpoint,
        access_key_id=server.access_key,
        secret_access_key=server.secret_key,
        region=server.region,
        allow_http=True,
        force_path_style=True,
    )
    return storage, f"s3://{bucket}/{prefix}"


class IcechunkSubject:
    """A :class:`~desilt.testing.subject.Subject`: what is uploaded is an array of one chunk, in an open session.

    A session that is unstaged is laid aside, as by a writer who comes back to it much later.
    """

    shows_staged = False

    def __init__(self, storage, uri, version, db):
        self.shows_unreached = version == 2
        config = icechunk.RepositoryConfig.default()
        config.inline_chunk_threshold_bytes = 0
        words = {"spec_version": version} if WRITES_BOTH else {}
        self.repo = icechunk.Repository.create(storage, config=config, **words)
        self.clock = ManualClock(datetime.now(UTC))
        self.store = open_store(uri)
        self.repository = open_repository(self.store, open_records(db), clock=self.clock)
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
        for snapshot in self._below("snapshots/"):
            path = nodes.fetch(store, snapshot).called(path)
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
        if self.shows_unreached:
            return self._changed({"repo": self.store.get("repo")[:100]})
        return self._changed({f"snapshots/{commit}": None})

    def lose_branches(self):
        if self.shows_unreached:
            return self._changed({"repo": None})
        return self._changed({f"refs/{name}": None for name in self._below("refs/")})

    @contextmanager
    def _changed(self, bodies):
        """In the block, these objects are others, or (None) not there."""
        whole = {key: self.store.get(key) for key in bodies}
        self.store.delete_many([*bodies])
        for key, body in bodies.items():
            if body is not None:
                self.store.put(key, [body])
        try:
            yield
        finally:
            for key, body in whole.items():
                self.store.put(key, [body])

    def _below(self, folder):
        return {key.removeprefix(folder) for batch in self.store.list(folder) for key in batch["key"].to_pylist()}

    def _chunks(self):
        return self._below("chunks/")
