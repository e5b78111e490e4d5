"""What a repository's snapshots have, decoded once in its life, and what it has stored; here and in other processes."""

from collections import Counter

import numpy as np
import pytest

from desilt.cache.metaranges import TO_A_FILE
from desilt.columns.buckets import every
from desilt.columns.files import Files
from desilt.domain.run import new_run
from desilt.errors import BadRequest, DamagedAsset, MissingAsset
from desilt.executors.executor import HERE
from desilt.executors.processes import Processes
from desilt.icechunk import listed
from desilt.icechunk.opening import open_repository
from desilt.objects.local import LocalStore
from desilt.records.opening import open_records
from icechunk_world import natives


@pytest.fixture
def repository(world, place):
    found = open_repository(world.store, open_records(f"sqlite://{place}/records.db"))
    yield found
    found.records.close()


def entries(repository, source):
    """Every entry of any snapshot, by address."""
    lists = source.lists(source.snapshot(repository.clock()).in_time)
    files, found = Files(repository.store), {}
    for placed in source.entries(list(lists.ranges.values())):
        for bucket in every(placed.file.buckets):
            rows = files.rows(placed.held, bucket, ["hash", "owner", "address", "size_bytes", "created_at", "path"])
            found |= {row["address"]: row for row in rows.to_pylist()}
    return found


@pytest.fixture
def read(monkeypatch):
    """How often each key is read, by anybody."""
    counts, real = Counter(), LocalStore.stream

    def stream(store, key, **words):
        counts[key] += 1
        return real(store, key, **words)

    monkeypatch.setattr(LocalStore, "stream", stream)
    return counts


def below(read, folder):
    return {key for key in read if key.startswith(folder)}


def test_native_chunks_are_entries_and_inline_and_virtual_ones_are_not(world, repository):
    world.commit("first", a=np.arange(9.0).reshape(3, 3), small=np.ones(1, "i1"))
    world.virtual("v", 7)
    found = entries(repository, repository.source(HERE))
    names = natives(world.store, [world.repo.lookup_branch("main")])
    assert found.keys() == {f"chunks/{name}" for name in names}
    assert len(names) == 4
    for address, row in found.items():
        assert row["size_bytes"] == len(world.file(address))
        assert row["created_at"] is None
    assert sorted(row["path"].partition(b"/")[2] for row in found.values()) == [b"c/0/0", b"c/0/1", b"c/1/0", b"c/1/1"]


def test_a_second_look_reads_no_snapshot_and_no_manifest_again(world, repository, read):
    for number in range(TO_A_FILE - 1):  # with the first one, which has nothing
        world.commit(f"number {number}", a=np.arange(number, number + 4))
    first = entries(repository, repository.source(HERE))
    assert len(below(read, "snapshots/")) == TO_A_FILE
    assert len(below(read, "manifests/")) == TO_A_FILE - 1
    for more in (0, 1):
        if more:
            world.commit("one more", a=np.arange(100, 104))
        read.clear()
        found = entries(repository, repository.source(HERE))
        assert len(found) == len(first) + 2 * more
        assert len(below(read, "manifests/")) == more
        if world.version == 2:
            assert len(below(read, "snapshots/")) == more
        else:  # where a snapshot's file may have got another parent
            assert {read[key] for key in below(read, "snapshots/")} == {1}


def test_a_snapshot_that_got_another_parent_lists_what_it_did(world, repository):
    for number in range(5):
        world.commit(f"number {number}", a=np.arange(number, number + 4))
    head = world.repo.lookup_branch("main")
    source = repository.source(HERE)
    before = source.lists(source.snapshot(repository.clock()).in_time)
    world.repo.expire_snapshots(next(world.repo.ancestry(branch="main")).written_at)
    seen = source.snapshot(repository.clock())
    assert len(seen.below(seen.tips)) == 2
    assert source.lists([seen.commits[head]]).of[head] == before.of[head]


def test_other_processes_decode_and_list_the_same(world, repository):
    world.commit("first", a=np.arange(100.0).reshape(10, 10))
    source = repository.source(Processes(2))
    found = entries(repository, source)
    run = new_run("contract", now=repository.clock(), started_at=repository.clock(), entropy=b"made")
    assert source.inventory(run).listed[0].file.rows == len(found) == len(world.files("chunks"))


def test_many_chunks_are_listed_in_parts_that_have_each_once(world, repository, monkeypatch):
    world.commit("first", a=np.arange(400.0).reshape(20, 20))
    monkeypatch.setattr(LocalStore, "moves_cheaply", False)
    monkeypatch.setattr(listed, "FEW", 10)
    run = new_run("contract", now=repository.clock(), started_at=repository.clock(), entropy=b"made")
    parts = repository.source(HERE).inventory(run).listed
    assert len(parts) == 32
    files, found = Files(repository.store), []
    for part in parts:
        for bucket in every(part.file.buckets):
            found += files.rows(part.file, bucket, ["hash", "folder", "name"])["name"].to_pylist()
    assert sorted(found) == sorted(world.files("chunks"))
    assert len(found) == 100


@pytest.mark.parametrize("folder", ["manifests", "snapshots"])
@pytest.mark.parametrize("lost", [False, True])
def test_what_is_damaged_or_missing_is_never_taken_for_empty(world, repository, folder, lost):
    head = world.commit("first", a=np.arange(10))
    name = head if folder == "snapshots" else world.manifests(head)[0][0]
    path = world.root / folder / name
    path.unlink() if lost else path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(MissingAsset if lost else DamagedAsset, match=f"{folder}/{name}"):
        entries(repository, repository.source(HERE))


def test_there_are_no_rules_of_its_own(repository):
    source = repository.source(HERE)
    with pytest.raises(BadRequest, match="desilt expire"):
        source.kept_by_rules(source.snapshot(repository.clock()), repository.clock(), tags=False)
