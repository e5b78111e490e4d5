"""History edited and commits collected, as jobs do it, in one word each."""

from desilt.lake import commits
from desilt.lake.changes import CommitsCollected, HistoryEdited, HoldLifted, hold_made
from desilt.lake.holds import Hold, Kind
from desilt.lake.moves import moving


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
    add_hold(repo, Hold(f"hold-{commit.id[:4]}", Kind.REF, commit.id, "a reason", repo.clock(), until))


def add_hold(repo, made):
    """A hold as it is, whatever it names."""
    with moving(repo.core) as move:
        move.do(hold_made(made))


def lift_hold(repo, hold_id):
    with moving(repo.core) as move:
        move.do(HoldLifted(hold_id))


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
