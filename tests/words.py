"""Short words for tests of lakes: what people do there, what time does, and history edited as jobs do it."""

from datetime import timedelta

import pytest

from desilt.jobs.collect import job as collection
from desilt.lake import commits, refs, staging
from desilt.lake.changes import CommitsCollected, HistoryEdited, HoldLifted, hold_made
from desilt.lake.dropping import By, Dropping
from desilt.lake.moves import moving
from desilt.records.holds import Hold, HoldKind
from desilt.sstable.values import encode_entry
from desilt.testing import oracle


def put(repo, branch, path, text="x"):
    """The address of a new object."""
    return repo.put(branch, path, text.encode()).address


def write(repo, branch, **files):
    """Put ``files`` on ``branch``: keyword names are paths, values are contents."""
    for path, text in files.items():
        repo.put(branch, path, text.encode())


def committed(repo, branch, message="a commit", **files):
    write(repo, branch, **files)
    return repo.commit(branch, message)


def stage(repo, branch, *entries):
    """Stage entries as they are, past every check."""
    with repo.database.write() as tx:
        on = refs.branch(tx, repo.uid, branch)
        for one in entries:
            dropping = Dropping(repo.uid, on.uid, on.head, By.OVERWRITTEN, repo.clock())
            staging.stage(tx, on.token, one.path.encode(errors="surrogateescape"), encode_entry(one), dropping)


def read(repo, ref, path):
    return b"".join(repo.get(ref, path)).decode()


def contents(repo, ref):
    """Every path and what it reads as."""
    return {entry.path: read(repo, ref, entry.path) for entry in repo.list(ref)}


def changes(found):
    """``+path``, ``-path`` and ``~path``, as a set."""
    marks = {"added": "+", "removed": "-", "changed": "~"}
    return {marks[change.kind] + change.path for change in found}


def seal(repo, branch):
    """Leave a commit behind that died right after it sealed what was staged."""

    def killed(_):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repo.ranges, "put", killed)
        patch.setattr(repo.ranges, "put_metarange", killed)
        with pytest.raises(KeyboardInterrupt):
            repo.commit(branch, "killed")


def days(repo, count):
    """Time passes, by the clock of the repository."""
    later(repo, days=count)


def later(repo, **time):
    repo.set_clock(repo.clock() + timedelta(**time))


def stored(repo):
    """The addresses of all objects in the store."""
    return set(oracle.stored(repo))


# ---- history edited and commits collected, as jobs do it


def reparent(repo, commit, *parents):
    """Give ``commit`` these parents, as expiration does."""
    with moving(repo.core) as move:
        now = commits.fetching(move.tx, repo.uid)(commit.id).parents
        move.do(HistoryEdited(((commit.id, now, tuple(parent.id for parent in parents)),)))


def collect(repo, *gone):
    """Take commits away; their files stay, for now."""
    with moving(repo.core) as move:
        move.do(CommitsCollected(tuple(commit.id for commit in gone), "run-9"))


def hold(repo, commit, until=None):
    add_hold(repo, Hold(f"hold-{commit.id[:4]}", HoldKind.REF, commit.id, "a reason", repo.clock(), until))


def add_hold(repo, made):
    """A hold as it is, whatever it names."""
    with moving(repo.core) as move:
        move.do(hold_made(made))


def lift_hold(repo, hold_id):
    with moving(repo.core) as move:
        move.do(HoldLifted(hold_id))


def collecting(**options):
    """What a collection is asked that leaves nothing alone for having been released lately."""
    return collection.job.ask(**{"unreached_for": timedelta(0), **options})


def root(repo):
    return list(repo.log("main"))[-1]


def tables(repo, commit):
    """The names of the files that ``commit`` needs."""
    return {commit.metarange, *(listed.id for listed in repo.ranges.metarange(commit.metarange))} - {""}


def forget_files(repo, names):
    """Remove tables from the store, and from what is remembered of them."""
    for name in names:
        repo.store._objects.pop(f"{repo.prefix}_lakefs/{name}")
    repo.ranges.metarange.cache_clear()
    repo.ranges.table.cache_clear()
