"""The embedded lake as a kind of repository: it keeps the contracts of Source and Gate, on both databases."""

from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from desilt.lake import Lake, schema
from desilt.objects import open_store
from desilt.records.database import open_database
from desilt.testing.gate_contract import GateContract
from desilt.testing.source_contract import SourceContract
from words import stage

START = datetime(2026, 1, 1, tzinfo=UTC)


class LakeSubject:
    """Somebody who works on a repository of a lake."""

    shows_staged = shows_unreached = True

    def __init__(self, repository):
        self.repository = repository
        self._entries = {}

    def upload(self, branch, path, body):
        entry = self.repository.put(branch, path, body)
        self._entries[entry.address] = entry
        return entry.address

    def unstage(self, branch):
        self.repository.reset(branch)

    def begin_upload(self, branch, path):
        return self.repository.physical_address(branch, path).ticket.address

    def stage_again(self, branch, path, address):
        stage(self.repository, branch, replace(self._entries[address], path=path))

    def uploaded_as(self, path):
        return path

    def commit(self, branch, message):
        return self.repository.commit(branch, message).id

    def branch(self, name, source):
        self.repository.create_branch(name, source)

    def delete_branch(self, name):
        self.repository.delete_branch(name, force=True)

    def tag(self, name, source):
        self.repository.create_tag(name, source)

    def wait(self, time):
        self.repository.set_clock(self.repository.clock() + time)

    def now(self):
        return self.repository.clock()

    def lose_commit(self, commit):
        return self._lost("commits", "id", commit)

    def lose_branches(self):
        return self._lost("branches", "repository", self.repository.uid)

    @contextmanager
    def _lost(self, table, column, value):
        with self.repository.database.write() as tx:
            assert tx.execute(f"UPDATE {table} SET repository = 'lost' WHERE {column} = ?", value)
        yield
        with self.repository.database.write() as tx:
            tx.execute(f"UPDATE {table} SET repository = ? WHERE repository = 'lost'", self.repository.uid)


@pytest.fixture
def subject(new_url, tmp_path):
    database = open_database(new_url(), create=True)
    schema.create(database, storage="")
    yield LakeSubject(Lake(database, open_store(str(tmp_path))).create_repository("demo", clock_at=START))
    database.close()


class TestLakeSource(SourceContract):
    pass


class TestLakeGate(GateContract):
    pass
