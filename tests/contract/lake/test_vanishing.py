"""Readers of a commit that is collected under them are told that it is gone."""

import pytest

from desilt.errors import CommitGone, CorruptTable, InvalidRef, MissingTable, NotFound
from desilt.lake import listing
from desilt.objects.memory import MemoryStore
from desilt.records import removals as tombstones
from desilt.records.removals import Tombstone
from desilt.sstable.ranges import Ranges
from desilt.sstable.records import paired
from desilt.sstable.table import RAW
from words import collect, committed, contents, forget_files, reparent, root, tables, write

MANY = {f"path/{number:03}": str(number) for number in range(40)}  # several ranges, as the fixtures cut them

READERS = {
    "stat": lambda repo, ref: repo.stat(ref, "path/007"),
    "get": lambda repo, ref: b"".join(repo.get(ref, "path/007")),
    "list": lambda repo, ref: list(repo.list(ref)),
    "diff": lambda repo, ref: list(repo.diff(ref, "main")),
    "diff from": lambda repo, ref: list(repo.diff("main", ref)),
    "diff since base": lambda repo, ref: list(repo.diff("main", ref, since_base=True)),
    "count": lambda repo, ref: repo.count_gone(ref),
    "merge": lambda repo, ref: repo.merge(ref, "main"),
    "revert": lambda repo, ref: repo.revert("main", ref),
    "copy": lambda repo, ref: repo.copy(ref, "path/007", "main", "copy"),
}
ON_A_BRANCH = {
    "uncommitted": lambda repo: list(repo.uncommitted("dev")),
    "commit": lambda repo: repo.commit("dev", "late"),
    "remove": lambda repo: repo.remove("dev", "path/007"),
    "list": lambda repo: list(repo.list("dev")),
}


@pytest.fixture
def dev(repo):
    """A commit on a branch of its own, with no table that another one needs."""
    committed(repo, "main", kept="1")
    repo.create_branch("live", "main")
    committed(repo, "live", more="1")
    repo.create_branch("dev", "main~1")
    made = committed(repo, "dev", **MANY)
    gone = repo.put("main", "gone", b"")
    repo.reset("main", path="gone")
    condemn(repo, gone.address)
    return made


def condemn(repo, address):
    with repo.database.write() as tx:
        tombstones.condemn(tx, repo.uid, [Tombstone(address, "run-7", "x", repo.clock())])


def at_the_first_table(repo, monkeypatch, action):
    """Run ``action`` once a reader knows its commit, and before it opens the first table."""
    real = repo.ranges.metarange

    def metarange(name):
        monkeypatch.setattr(repo.ranges, "metarange", real)
        action()
        return real(name)

    monkeypatch.setattr(repo.ranges, "metarange", metarange)


def collected(repo, commit):
    names = tables(repo, commit)

    def act():
        repo.delete_branch("dev", force=True)
        collect(repo, commit)
        forget_files(repo, names)

    return act


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_of_a_commit_that_goes_under_it_is_told_so(repo, dev, monkeypatch, reader):
    at_the_first_table(repo, monkeypatch, collected(repo, dev))
    with pytest.raises(CommitGone, match=rf"{dev.id} is gone.*run-9"):
        READERS[reader](repo, dev.id)
    assert contents(repo, "main") == {"kept": "1"}


def test_so_is_a_merge_whose_base_goes_under_it(repo, dev, monkeypatch):
    names = tables(repo, dev)
    for name in ("left", "right"):
        repo.create_branch(name, dev.id)
        made = committed(repo, name, **{name: "1"})
        reparent(repo, made, root(repo))
        names -= tables(repo, made)

    def goes():
        repo.delete_branch("dev")
        collect(repo, dev)
        forget_files(repo, names)

    at_the_first_table(repo, monkeypatch, goes)
    with pytest.raises(CommitGone, match=rf"{dev.id} is gone.*run-9"):
        repo.merge("left", "right", base=dev.id)


@pytest.mark.parametrize("reader", ON_A_BRANCH)
def test_so_is_a_reader_of_a_branch_that_is_deleted_under_it(repo, dev, monkeypatch, reader):
    write(repo, "dev", staged="1")
    at_the_first_table(repo, monkeypatch, collected(repo, dev))
    with pytest.raises(CommitGone, match=dev.id):
        ON_A_BRANCH[reader](repo)


def test_a_reader_on_its_way_is_told_so(repo, dev, monkeypatch):
    monkeypatch.setattr(listing, "PAGE", 5)
    found, names = repo.list(dev.id), tables(repo, dev)
    next(found)
    repo.delete_branch("dev")
    collect(repo, dev)
    forget_files(repo, names)
    with pytest.raises(CommitGone):
        list(found)


@pytest.mark.usefixtures("unsound")
@pytest.mark.parametrize("reader", READERS)
def test_a_table_that_a_commit_has_lost_is_damage(repo, dev, reader):
    forget_files(repo, tables(repo, dev))
    with pytest.raises(CorruptTable, match="its file is missing"):
        READERS[reader](repo, dev.id)


def test_what_goes_from_an_open_table_is_missing_too():
    store = MemoryStore()
    ranges = Ranges(store, "p/")
    rows = [(f"{number:06}".encode(), bytes(40)) for number in range(20_000)]
    (listed,) = map(ranges.put, [*(writer := ranges.writer()).add(paired(rows, RAW)), *writer.finish()])
    table = ranges.table(listed.id)
    store._objects.clear()
    with pytest.raises(MissingTable):
        table.get(b"000001")
    with pytest.raises(MissingTable):
        ranges.read(listed)


# ---- names


def test_a_collected_commit_is_gone_by_every_name_it_had(repo, dev):
    repo.delete_branch("dev")
    collect(repo, dev)
    for name in (dev.id, dev.id[:12], dev.id[:4], f"{dev.id[:12]}~1", f"{dev.id}@"):
        with pytest.raises(CommitGone, match=dev.id):
            repo.resolve(name)
    for make in (repo.create_branch, repo.create_tag):
        with pytest.raises(CommitGone):
            make("again", dev.id)


def renamed(repo, commit, name):
    with repo.database.write() as tx:
        tx.execute("UPDATE collected SET id = ? WHERE id = ?", name, commit.id)


def test_a_commit_that_is_there_wins_over_one_that_is_gone(repo, dev):
    repo.delete_branch("dev")
    collect(repo, dev)
    main = repo.resolve("main").commit
    renamed(repo, dev, main.id[:12] + "f" * 52)
    assert repo.resolve(main.id[:12]).commit == main
    with pytest.raises(CommitGone):
        repo.resolve(main.id[:12] + "f" * 10)


def test_a_beginning_that_several_collected_commits_have_is_no_name(repo, dev):
    more = committed(repo, "dev", more="1")
    repo.delete_branch("dev")
    collect(repo, dev, more)
    renamed(repo, more, dev.id[:12] + "0" * 52)
    with pytest.raises(InvalidRef, match="more than one"):
        repo.resolve(dev.id[:12])


def test_collected_commits_of_another_repository_are_not_known(lake, repo, dev):
    repo.delete_branch("dev")
    collect(repo, dev)
    with pytest.raises(NotFound):
        lake.create_repository("other").resolve(dev.id)


def test_the_way_up_goes_by_the_parents_of_today(repo, dev):
    reparent(repo, repo.resolve("main").commit, root(repo))
    assert repo.resolve("main~1").commit == root(repo)
    reparent(repo, dev)
    with pytest.raises(NotFound):
        repo.resolve("dev~1")
    assert [commit.id for commit in repo.log("dev")] == [dev.id]
