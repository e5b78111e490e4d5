"""Runs that are over, one after the other, and what jobs are told of their removals: compared with plain sets."""

import uuid
from contextlib import contextmanager

from desilt.columns.buckets import HASH, Bucket
from desilt.columns.files import Files
from desilt.columns.hashing import address_hash
from desilt.errors import NotReadBack
from desilt.executors.executor import HERE
from desilt.jobs.collect.tidy import replaced_sets
from desilt.jobs.removed import distrust, removed
from desilt.jobs.removed.past import runs_over
from desilt.jobs.removed.sets import FOLDER, listed, sound
from desilt.lake import Lake, schema
from desilt.objects import open_store
from desilt.records import ledger
from desilt.records import removals as tombstones
from desilt.records.database import open_database
from desilt.records.ledger import RunRow, RunState
from desilt.records.removals import State, Tombstone


@contextmanager
def in_memory(directory, at):
    """A repository with objects in memory, and its past."""
    database = open_database(f"sqlite://{directory}/{uuid.uuid4().hex}.db", create=True)
    schema.create(database, storage="")
    yield PastRuns(Lake(database, open_store(f"memory://{uuid.uuid4().hex}")).create_repository("demo", clock_at=at))
    database.close()


class PastRuns:
    """Runs of a repository, and what each has removed."""

    def __init__(self, repo):
        self.repo, self.store = repo, repo.store
        self.folder = repo.prefix + FOLDER
        self.known = {}  # by run: its addresses
        self.wanted = []

    def add(self, count=3, *, job="collect", state=RunState.SWEPT, addresses=()):
        """A run that removed so many objects."""
        number = len(self.known)
        run = f"{10**13 - number:014d}-{number:08x}"
        addresses = {*addresses, *(f"branches/b/{number % 3}_x/{number}-{row}" for row in range(count))}
        at, uid = self.repo.clock(), self.repo.uid
        with self.repo.database.write() as tx:
            ledger.begin(tx, uid, RunRow(run, job, "p", "delete", at, at, state, max(1, len(addresses)), 1))
            stones = [Tombstone(one, run, "r", at, 1, 0, State.REMOVED) for one in sorted(addresses)]
            tombstones.condemn(tx, uid, stones)
        self.known[run] = addresses
        self.wanted += [run] if state is not RunState.SWEEPING and job != "gc" else []
        return run

    def resume(self, run):
        """It is at work again."""
        with self.repo.database.write() as tx:
            ledger.end(tx, self.repo.uid, run, RunState.SWEEPING, at=self.repo.clock(), fence=0)
        self.wanted = [one for one in self.wanted if one != run]

    def end(self, run):
        with self.repo.database.write() as tx:
            ledger.end(tx, self.repo.uid, run, RunState.SWEPT, at=self.repo.clock(), fence=0)
        self.wanted.append(run)

    def forget(self, run):
        """The database is one that does not know of it."""
        with self.repo.database.write() as tx:
            tx.execute("DELETE FROM runs WHERE repository = ? AND id = ?", self.repo.uid, run)
        self.wanted = [one for one in self.wanted if one != run]

    def told(self):
        """The addresses that a job is told of; it stops at what is damaged, and another begins."""
        for _ in range(100):
            files = removed(HERE, self.repo)
            assert len({file.key for file in files}) == len(files)
            try:
                return self.rows(files)
            except NotReadBack as error:
                distrust(self.store, self.repo.prefix, {error.name})
        raise AssertionError("what is damaged is used again and again")

    def rows(self, files):
        found = set()
        for file in files:
            rows = Files(self.store).rows(file, Bucket(0, 1), [HASH, "address", "owner"])
            assert rows[HASH].to_pylist() == sorted(address_hash(rows["address"].combine_chunks()).tolist())
            found |= set(rows["address"].to_pylist())
        return found

    def straight(self):
        """The same, from what was done."""
        return set().union(*(self.known[run] for run in self.wanted))

    def names(self):
        return listed(self.store, self.folder)

    def sets(self):
        return sound(self.store, self.folder, self.names(), runs_over(self.repo).keys())

    def replaced(self, before):
        return {self.repo.prefix + key for key in replaced_sets(self.repo, before)}

    def tidy(self, before):
        """What a collection does with them."""
        self.store.delete_many(sorted(self.replaced(before)))

    def damage(self, key):
        data = bytearray(self.store.get(key))
        data[len(data) // 3] ^= 0xFF
        self.store.put(key, [bytes(data)])
