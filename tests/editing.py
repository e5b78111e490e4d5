"""History edited and commits collected, as jobs do it, in one word each."""

from desilt.lake import commits, holds, repositories
from desilt.lake.holds import Hold, Kind


def reparent(repo, commit, *parents):
    """Give ``commit`` these parents, as expiration does."""
    with repo.database.write() as tx:
        repositories.edit(tx, repo.uid)
        now = commits.fetching(tx, repo.uid)(commit.id).parents
        assert commits.edit(tx, repo.uid, commit.id, seen=now, parents=[parent.id for parent in parents])


def collect(repo, *gone):
    """Take commits away; their files stay, for now."""
    with repo.database.write() as tx:
        repositories.edit(tx, repo.uid)
        commits.collect(tx, repo.uid, [commit.id for commit in gone], run="run-9", at=repo.clock())


def hold(repo, commit, until=None):
    with repo.database.write() as tx:
        holds.add(tx, repo.uid, Hold(f"hold-{commit.id[:4]}", Kind.REF, commit.id, "a reason", repo.clock(), until))


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
