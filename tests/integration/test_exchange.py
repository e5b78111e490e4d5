"""A repository copied to a lakeFS server, or from one, reads the same there, and has nothing that is garbage."""

import hashlib
import json
from datetime import timedelta

import pyarrow.parquet as pq
import pytest

from desilt.clock import ManualClock
from desilt.domain.entry import AddressType
from desilt.errors import AlreadyExists, BadRequest, Refused, StorageFailed
from desilt.executors.executor import HERE
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.runner import plan
from desilt.lake.fsck import check
from desilt.lakefs.layout import LAYOUT as SERVER
from desilt.lakefs.opening import open_repository
from desilt.objects.file import ObjectFile
from desilt.records.opening import open_records
from exchanging import OUTSIDE, START, give, lake_reads, new_lake, server_reads, snapshot, take, with_a_past
from lakefs_model import LakefsModel

MONTH = timedelta(days=30)


@pytest.fixture
def model(tmp_path, monkeypatch):
    with LakefsModel(tmp_path / "blocks") as found:
        (tmp_path / "blocks").mkdir(exist_ok=True)
        monkeypatch.setenv("LAKEFS_BLOCKSTORE_LOCAL_PATH", str(found.root))
        found.ways.raggedness = 3
        yield found


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture
def lake(tmp_path, clock):
    found = new_lake(tmp_path / "lake", clock)
    yield found
    found.close()


def served(model):
    """A server's repository with a past like the lake's."""
    repo = model.create("theirs")
    for n in range(12):
        repo.upload("main", b"t/%02d" % n, b"first %d" % n, content_type="text/plain", metadata={"n": str(n)})
    repo.upload("main", b"caf\xe9/\xff", b"odd")
    repo.make_commit("main", "twelve", metadata={"a": "b", "c": "d"})
    model.wait(timedelta(hours=2))
    repo.create_branch("dev", "main")
    repo.create_branch("hidden", "main", hidden=True)
    md5 = hashlib.md5(b"linked").hexdigest()
    uri = repo.link_address("dev", b"linked")
    repo.place.put(uri.removeprefix(repo.place.shown), b"linked")
    repo.stage("dev", b"linked", uri, size=6, checksum=md5)
    repo.place.put("0" * 32, b"root")
    repo.stage("dev", b"old", repo.place.namespace + "/" + "0" * 32, size=4, checksum=hashlib.md5(b"root").hexdigest())
    repo.stage("dev", b"else/where", OUTSIDE, size=7, checksum="abc")
    repo.make_commit("dev", "linked")
    repo.delete("main", b"t/03")
    repo.make_commit("main", "less")
    repo.create_tag("v1", "main")
    repo.merge("dev", "main", "merged", {})
    repo.create_branch("gone", "main")
    repo.upload("gone", b"lonely", b"yes")
    repo.make_commit("gone", "nobody reaches this")
    repo.delete_branch("gone")
    repo.upload("main", b"staged", b"not committed")
    return repo


def going(repository):
    """What a plan of garbage would remove."""
    report = plan(uncommitted.job, repository, HERE)
    folder = f"{repository.prefix}_desilt/runs/gc/{report.run}/plan/"
    keys = [key for batch in repository.store.list(folder) for key in batch["key"].to_pylist()]
    return [row["address"] for key in keys for row in pq.read_table(ObjectFile(repository.store, key)).to_pylist()]


# ---- to a server


def test_every_commit_reads_the_same_on_a_server(lake, model):
    repo = with_a_past(lake)
    made = give(repo, model)
    ids = json.loads(model.repositories["theirs"].place.store.get("_desilt/commit-ids.json"))
    there, seen = model.repositories["theirs"], snapshot(repo)
    assert len(seen.commits) == made.commits == len(there.commits)
    for old, commit in seen.commits.items():
        new = there.commits[ids.get(old, old)]
        assert server_reads(there, new.id) == lake_reads(repo, old)
        assert new.parents == tuple(ids.get(parent, parent) for parent in commit.parents)
        assert (new.message, new.committer, new.created_at, new.metadata) == (
            commit.message,
            commit.committer,
            commit.created_at,
            commit.metadata,
        )
    assert {one.name: one.head for one in there.branches.values()} == {
        branch.name: ids.get(branch.head, branch.head) for branch in seen.branches
    }
    assert there.tags == {tag.name: ids[tag.target] for tag in seen.tags}
    assert (made.elsewhere, made.left_staged, made.missing, made.gone) == (1, ("main",), 0, 0)
    assert made.renamed == len(ids)
    assert made.commit_ids.endswith("/theirs/_desilt/commit-ids.json")


def test_a_servers_collectors_know_the_objects_that_were_given(lake, model, tmp_path):
    give(with_a_past(lake), model)
    there = model.repositories["theirs"]
    inside = {
        entry.address
        for commit in there.commits
        for entry in there.entries(commit).values()
        if entry.address_type is AddressType.RELATIVE
    }
    assert inside
    assert all(SERVER.is_object(address) for address in inside)
    stored = {key for batch in there.place.store.list("data/") for key in batch["key"].to_pylist()}
    assert stored == inside
    there.place.put("data/" + "0" * 20 + "/" + "0" * 20, b"garbage")
    model.wait(MONTH)
    repository = open_repository(
        model.settings("theirs"), open_records(f"sqlite://{tmp_path}/records.db"), clock=ManualClock(model.clock.now)
    )
    assert going(repository) == ["data/" + "0" * 20 + "/" + "0" * 20]
    repository.records.close()


def test_commits_of_a_lake_are_not_touched(lake, model, tmp_path):
    repo = with_a_past(lake)
    before = {path: path.read_bytes() for path in (tmp_path / "lake" / "repos").rglob("*") if path.is_file()}
    give(repo, model)
    assert before == {path: path.read_bytes() for path in (tmp_path / "lake" / "repos").rglob("*") if path.is_file()}


def test_a_copy_that_was_cut_off_goes_on(lake, model, monkeypatch):
    repo = with_a_past(lake)
    whole, left = type(repo.store).stream, [5]

    def cut(self, key, **more):
        left[0] -= "/branches/" in key
        if left[0] < 0:
            raise StorageFailed("cut off")
        return whole(self, key, **more)

    with monkeypatch.context() as patch:
        patch.setattr(type(repo.store), "stream", cut)
        with pytest.raises(StorageFailed):
            give(repo, model)
    assert not model.repositories["theirs"].commits
    made = give(repo, model)
    assert 0 < made.copied_before < made.objects
    ids = json.loads(model.repositories["theirs"].place.store.get("_desilt/commit-ids.json"))
    for old in snapshot(repo).commits:
        assert server_reads(model.repositories["theirs"], ids.get(old, old)) == lake_reads(repo, old)


def test_refs_that_were_restored_though_the_answer_was_lost_are_restored(lake, model):
    repo = with_a_past(lake)
    model.misbehave("PUT", ".*/refs/restore", status=400, times=1)
    with pytest.raises(Exception, match="restore refs"):
        give(repo, model)
    assert give(repo, model).commits == len(snapshot(repo).commits)


def test_a_server_that_has_a_history_is_refused(lake, model):
    model.create("theirs")
    with pytest.raises(AlreadyExists, match="history of its own"):
        give(with_a_past(lake), model)


def test_a_place_that_is_not_empty_is_refused_and_nothing_is_made(lake, model, tmp_path):
    (tmp_path / "blocks" / "full").mkdir()
    (tmp_path / "blocks" / "full" / "mine.txt").write_text("mine")
    with pytest.raises(BadRequest, match="not empty"):
        give(with_a_past(lake), model, namespace="local://full")
    assert not model.repositories


@pytest.mark.parametrize("below", ["blocks/theirs", "blocks/theirs/lake", "blocks"])
def test_one_place_for_both_is_refused(below, model, tmp_path, clock):
    (tmp_path / below).mkdir(parents=True, exist_ok=True)
    lake = new_lake(tmp_path / below, clock)
    with pytest.raises(BadRequest, match="one place, or one is inside the other"):
        give(with_a_past(lake), model)
    assert not model.repositories
    served(model)
    with pytest.raises(BadRequest, match="one place, or one is inside the other"):
        take(model, "theirs", lake)
    lake.close()


def test_an_object_that_is_missing_is_refused_and_may_be_allowed(lake, model, tmp_path):
    repo = with_a_past(lake)
    address = repo.stat("v1", "z").address
    (tmp_path / "lake" / repo.prefix / address).unlink()
    with pytest.raises(Refused, match="1 objects that commits point to"):
        give(repo, model)
    assert give(repo, model, may_miss=True).missing == 1


# ---- from a server


def test_every_commit_reads_the_same_in_a_lake(lake, model):
    there = served(model)
    made = take(model, "theirs", lake)
    repo = lake.repository("taken")
    seen = snapshot(repo)
    assert seen.commits.keys() == there.commits.keys()
    for name, commit in there.commits.items():
        assert lake_reads(repo, name) == {
            path: (*facts[:-1], OUTSIDE if facts[-1] == OUTSIDE else facts[-1])
            for path, facts in inside_read(there, name).items()
        }
        mine = seen.commits[name]
        assert (mine.parents, mine.message, mine.committer, mine.created_at.replace(microsecond=0), mine.metadata) == (
            commit.parents,
            commit.message,
            commit.committer,
            commit.created_at,
            commit.metadata,
        )
    assert {branch.name: branch.head for branch in seen.branches} == {
        one.name: one.head for one in there.branches.values()
    }
    assert {tag.name: tag.target for tag in seen.tags} == there.tags
    assert (made.elsewhere, made.left_staged, made.was_hidden) == (1, ("main",), ("hidden",))
    assert (made.renamed, made.commit_ids) == (0, "")
    assert made.redated == 3  # the model's clock stands still
    assert all(seen.commits[up].created_at < one.created_at for one in seen.commits.values() for up in one.parents)


def inside_read(there, commit):
    """What is inside and written as a whole address is inside all the same."""
    found = server_reads(there, commit)
    for path, facts in found.items():
        if isinstance(facts[-1], str) and facts[-1] != OUTSIDE:
            key = facts[-1].removeprefix(there.place.shown).removeprefix(there.place.namespace + "/")
            found[path] = (*facts[:-1], there.place.store.get(key))
    return found


def test_a_lake_knows_the_objects_that_were_taken_in(lake, model, clock):
    served(model)
    take(model, "theirs", lake)
    repo = lake.repository("taken")
    found = check(repo, deep=True)
    assert {one.kind for one in found.findings} == {"dangling-commit"}
    addresses = {
        entry.address
        for commit in snapshot(repo).commits
        for entry in repo.list(commit)
        if entry.address_type is AddressType.RELATIVE
    }
    assert all(repo.layout.is_object(address) for address in addresses)
    clock.now += MONTH
    assert going(repo) == []
    repo.put("main", "new", b"garbage soon")
    address = repo.stat("main", "new").address
    repo.reset("main")
    clock.now += MONTH
    assert going(repo) == [address]


def test_a_lake_goes_on_with_what_it_took_in(lake, model, clock):
    served(model)
    take(model, "theirs", lake)
    repo = lake.repository("taken")
    clock.now += MONTH
    repo.put("main", "mine", b"mine")
    repo.commit("main", "here")
    repo.merge("main", "hidden")
    assert b"".join(repo.get("hidden", "mine")) == b"mine"


def test_taking_in_that_was_cut_off_goes_on(lake, model, monkeypatch):
    there = served(model)
    whole, left = lake.store.put, [5]

    def cut(key, body):
        left[0] -= 1
        if left[0] < 0:
            raise StorageFailed("cut off")
        return whole(key, body)

    with monkeypatch.context() as patch:
        patch.setattr(lake.store, "put", cut)
        with pytest.raises(StorageFailed):
            take(model, "theirs", lake)
    assert lake.repositories() == []
    made = take(model, "theirs", lake)
    assert 0 < made.copied_before < made.objects
    assert snapshot(lake.repository("taken")).commits.keys() == there.commits.keys()
    assert len(lake.store.folders("repos/")) == 1


def test_a_name_that_a_lake_has_is_refused(lake, model):
    served(model)
    lake.create_repository("taken")
    with pytest.raises(AlreadyExists):
        take(model, "theirs", lake)


def test_there_and_back_again(lake, model):
    repo = with_a_past(lake)
    give(repo, model)
    ids = json.loads(model.repositories["theirs"].place.store.get("_desilt/commit-ids.json"))
    take(model, "theirs", lake)
    back = lake.repository("taken")
    for old in snapshot(repo).commits:
        assert lake_reads(back, ids.get(old, old)) == lake_reads(repo, old)
