"""The document's sample as an Icechunk repository, made by its library, and desilt beside it."""

from contextlib import contextmanager

from desilt.executors.executor import HERE
from desilt.icechunk.edits.editor import IcechunkEditor
from desilt.icechunk.opening import open_repository
from desilt.jobs.expire import job as expiration
from desilt.jobs.runner import plan, run
from desilt.objects import open_store
from desilt.records.opening import open_records
from desilt.sweep.limits import Limits
from desilt.testing.faults import Proxy

SURE = Limits(max_share=1.0, confirm=True)
STEPS = (
    *((1, "main"), (2, "main"), (3, "develop"), (4, "main"), (5, "main"), (6, "develop"), (7, "test"), (8, "qa")),
    *((9, "test"), (10, "develop"), (11, "develop"), (12, "main"), (13, "main"), (14, "main")),
)
BRANCHES = {3: ("develop", 2), 7: ("test", 6), 8: ("qa", 7)}  # made before that commit, at which
TAGS = {3: "tag1", 5: "tag2"}
LINES = {"main": "14,13,12,0", "develop": "11,10,0", "test": "9,0", "qa": "8,0"}
RESULTS = {
    "design": {**LINES, "tag1": "3,2,1,0", "tag2": "5,4,2,1,0"},
    "v1": {**LINES, "tag1": "3,0", "tag2": "5,0"},
    "v2": {**LINES, "main": "14,13,12,5,0", "tag1": "3,0", "tag2": "5,0"},
}


class Sample:
    """The sample in ``world``, by the document's numbers; ``cut`` is between 7 and 8."""

    def __init__(self, world):
        self.world, self.made = world, {0: world.repo.lookup_branch("main")}
        for number, branch in STEPS:
            if number in BRANCHES:
                name, at = BRANCHES[number]
                world.repo.create_branch(name, self.made[at])
            self.commit(number, branch)
            if number in TAGS:
                world.repo.create_tag(TAGS[number], self.made[number])
        self.cut = world.ancestry(self.made[8])[0][2]

    def commit(self, number, branch):
        self.made[number] = self.world.commit(str(number), branch=branch, **{f"a{number}": [number, branch == "main"]})

    def number(self, snapshot):
        return next(number for number, name in self.made.items() if name == snapshot)

    def lines(self):
        """By ref, what the library says it descends from."""
        self.world.reopen()
        branches, tags = self.world.heads()
        return {
            name: ",".join(str(self.number(one[0])) for one in self.world.ancestry(head))
            for name, head in {**branches, **tags}.items()
        }


def opened(place, root, *, store=None):
    """desilt's side of it; its records are beside the repository."""
    found = open_repository(store or open_store(str(root)), open_records(f"sqlite://{place}/records.db"))
    found.editor = IcechunkEditor(found._core, pause=lambda _: None)
    return found


def asked(sample, **words):
    return expiration.job.ask(before=sample.cut, sizes=False, **words)


def expired(repository, sample, **words):
    return run(expiration.job, repository, HERE, asked(sample, **words), SURE)[-1]


def planned(repository, sample, **words):
    return plan(expiration.job, repository, HERE, asked(sample, **words))


class Crash(BaseException):
    """The process is gone."""


class Watched(Proxy):
    """A store that calls ``happens(number, moment)`` before and after each of its writes below ``watched`` folders."""

    def __init__(self, store, happens, *, besides="_desilt/"):
        self._happens, self._besides, self.writes = happens, besides, []
        super().__init__(store, self._plain)
        self._conditional = _Conditional(store.conditional, self) if store.conditional is not None else None

    @property
    def conditional(self):
        return self._conditional

    @contextmanager
    def _plain(self):
        yield

    def put(self, key, body):
        with self._write(key):
            return self._real.put(key, body)

    def put_new(self, key, body):
        with self._write(key):
            return self._real.put_new(key, body)

    def delete_many(self, keys, **words):
        with self._write(keys[0]):
            return self._real.delete_many(keys, **words)

    @contextmanager
    def _write(self, key):
        if key.startswith(self._besides):
            yield
            return
        number = len(self.writes)
        self.writes.append(key)
        self._happens(number, "before")
        yield
        self._happens(number, "after")


class _Conditional:
    def __init__(self, real, watched):
        self.real, self.watched = real, watched

    def read(self, key):
        return self.real.read(key)

    def put_over(self, seen, body):
        with self.watched._write(seen.key):
            return self.real.put_over(seen, body)
